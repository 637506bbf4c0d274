"""A data folder whose log is gone, empty or another one: refused until the log is restored or the rest put aside."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import apsw
import orjson
import pytest
from support.command_line import recollect
from support.events import message, message_draft
from support.postgres import new_database
from support.server import serving

from recollect import Recollect
from recollect.api.settings import load_settings
from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.errors import LogMissing
from recollect.events.integrity.backup import backup
from recollect.events.integrity.log_identity import open_log_of_folder, read_log_id

COMMANDS = (
    ("verify",),
    ("backup", "copy"),
    ("export",),
    ("stats",),
    ("replay",),
    ("archive",),
    ("append", "a", orjson.dumps(message("x")).decode()),
    ("retrieve", "a", "tea"),
    ("serve", "--port", "0"),
    ("init",),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder with a read model, and a backup of its log beside it."""
    data = tmp_path / "data"
    with Recollect(settings=load_settings(data=data, embedding_model="none"), workers=False) as memory:
        memory.append("a", [message(f"I love tea number {number}") for number in range(3)])
        assert memory.retrieve("a", "tea").items
    backup(data / "log.db", tmp_path / "backup")
    return data


def deleted(data: Path) -> None:
    (data / "log.db").unlink()


def emptied(data: Path) -> None:
    (data / "log.db").write_bytes(b"")


def made_again(data: Path) -> None:
    """Leave what SQLite makes of a file that was opened and never written to."""
    (data / "log.db").unlink()
    connection = apsw.Connection(str(data / "log.db"))
    connection.pragma("journal_mode", "WAL")
    connection.close()


def exchanged(data: Path) -> None:
    (data / "log.db").unlink()
    with closing(SqliteLog(data / "log.db")) as other:
        other.append("a", [message_draft("of another log")])


LOSSES = [deleted, emptied, made_again, exchanged]


def without_id(data: Path) -> None:
    """Leave the folder as a version that did not remember the log made it."""
    (data / "log-id").unlink()


def files(data: Path) -> dict[str, bytes]:
    return {str(path.relative_to(data)): path.read_bytes() for path in data.rglob("*.db") if path.name != "log.db"}


@pytest.mark.parametrize(("lose", "commands"), [(deleted, COMMANDS), *((lose, COMMANDS[:1]) for lose in LOSSES[1:])])
def test_every_command_refuses_a_lost_log_and_touches_nothing(
    folder: Path, lose: Callable[[Path], None], commands: Sequence[Sequence[str]]
) -> None:
    lose(folder)
    before = files(folder)
    for command in commands:
        refused = recollect(*command, data=folder)
        assert refused.returncode == 2, command
        assert "recollect init --new-log" in refused.stderr, command
        assert "recollect restore FOLDER" in refused.stderr, command
    with pytest.raises(LogMissing):
        Recollect(settings=load_settings(data=folder, embedding_model="none"), workers=False)
    assert files(folder) == before


@pytest.mark.parametrize("lose", LOSSES)
def test_a_restore_brings_the_lost_log_back(folder: Path, tmp_path: Path, lose: Callable[[Path], None]) -> None:
    lose(folder)
    restored = recollect("restore", str(tmp_path / "backup"), data=folder)
    assert restored.returncode == 0, restored.stderr
    assert recollect("verify", data=folder).stdout.startswith("a: intact, 3 events")
    assert "tea number 2" in recollect("retrieve", "a", "tea number 2", data=folder).stdout


@pytest.mark.parametrize("lose", LOSSES)
def test_init_new_log_puts_what_was_made_from_the_lost_log_aside(folder: Path, lose: Callable[[Path], None]) -> None:
    [model] = folder.glob("namespaces/*/*/000001.db")
    content = model.read_bytes()
    lose(folder)
    begun = recollect("init", "--new-log", data=folder)
    assert begun.returncode == 0, begun.stderr
    [aside] = folder.glob("namespaces.replaced-*/*/*/000001.db")
    assert aside.read_bytes() == content
    assert str(aside.parents[2]) in begun.stdout
    assert list(folder.glob("log-id.replaced-*"))
    # A log that is there is never put aside: then the folder goes on with it.
    text = "of another log" if lose is exchanged else "has no events"
    answer = recollect("retrieve", "a", "another log", data=folder)
    assert text in answer.stdout + answer.stderr
    assert recollect("append", "a", orjson.dumps(message("hello")).decode(), data=folder).returncode == 0
    assert recollect("init", data=folder).returncode == 0


@pytest.mark.parametrize("lose", [deleted, emptied, made_again])
def test_a_folder_of_an_earlier_version_notices_a_lost_log_by_what_was_made_from_it(
    folder: Path, lose: Callable[[Path], None]
) -> None:
    without_id(folder)
    lose(folder)
    with pytest.raises(LogMissing, match="it holds namespaces"):
        open_log_of_folder(folder, load_settings(data=folder).storage.log_url)


def test_a_folder_of_an_earlier_version_is_adopted_silently(folder: Path) -> None:
    known = read_log_id(folder)
    without_id(folder)
    found = recollect("retrieve", "a", "tea number 2", data=folder)
    assert "tea number 2" in found.stdout
    assert "log" not in found.stderr
    assert read_log_id(folder) == known is not None


def test_a_damaged_id_is_written_again_and_a_stale_one_is_refused(folder: Path) -> None:
    known = read_log_id(folder)
    for content in (b"", b"\xff\x00", b"nonsense"):
        (folder / "log-id").write_bytes(content)
        assert recollect("verify", data=folder).returncode == 0
        assert read_log_id(folder) == known


def test_a_lost_log_with_a_sealed_and_pruned_archive_is_refused_and_the_archive_is_kept(
    folder: Path, tmp_path: Path
) -> None:
    assert recollect("archive", "--min-events", "1", "--prune", data=folder).returncode == 0
    shutil.rmtree(tmp_path / "backup")
    assert recollect("backup", str(tmp_path / "backup"), data=folder).returncode == 0
    [segment] = folder.glob("archive/*/*/*.parquet")
    content = segment.read_bytes()
    shutil.rmtree(folder / "namespaces")
    without_id(folder)
    deleted(folder)
    assert "archive" in recollect("verify", data=folder).stderr
    assert segment.read_bytes() == content

    shutil.copytree(folder, tmp_path / "other")
    assert recollect("restore", str(tmp_path / "backup"), data=folder).returncode == 0
    assert recollect("verify", data=folder).stdout.startswith("a: intact, 3 events")

    assert recollect("init", "--new-log", data=tmp_path / "other").returncode == 0
    [aside] = (tmp_path / "other").glob("archive.replaced-*/*/*/*.parquet")
    assert aside.read_bytes() == content
    assert recollect("verify", data=tmp_path / "other").returncode == 0


def test_init_new_log_keeps_the_archive_of_a_log_that_was_put_in_the_place_of_another(tmp_path: Path) -> None:
    for name in ("one", "two"):
        event = orjson.dumps(message(f"from {name}", id="e1")).decode()
        assert recollect("append", "a", event, data=tmp_path / name).returncode == 0
        assert recollect("archive", "--min-events", "1", "--prune", data=tmp_path / name).returncode == 0
    shutil.rmtree(tmp_path / "two" / "archive")
    for name in ("log.db", "archive"):
        copy = shutil.copytree if name == "archive" else shutil.copy
        copy(tmp_path / "one" / name, tmp_path / "two" / name)
    assert recollect("verify", data=tmp_path / "two").returncode == 2
    assert recollect("init", "--new-log", data=tmp_path / "two").returncode == 0
    assert recollect("verify", data=tmp_path / "two").stdout.startswith("a: intact, 1 event,")


def test_a_killed_init_new_log_goes_on_when_it_is_called_again(folder: Path) -> None:
    deleted(folder)
    # As far as a kill may leave it: some things are aside, the id is not.
    (folder / "namespaces").rename(folder / "namespaces.replaced-1")
    assert recollect("verify", data=folder).returncode == 2
    assert recollect("init", "--new-log", data=folder).returncode == 0
    assert recollect("verify", data=folder).returncode == 0


def test_init_makes_a_folder_once_and_new_log_leaves_a_good_one_as_it_is(tmp_path: Path) -> None:
    first = recollect("init", data=tmp_path / "new")
    assert first.returncode == 0
    assert recollect("append", "a", orjson.dumps(message("a red kite")).decode(), data=tmp_path / "new").returncode == 0
    assert recollect("init", "--new-log", data=tmp_path / "new").stdout == first.stdout
    assert "a red kite" in recollect("retrieve", "a", "red kite", data=tmp_path / "new").stdout


def test_init_is_refused_while_a_server_uses_the_folder(tmp_path: Path) -> None:
    with serving(tmp_path):
        assert "stop it" in recollect("init", "--new-log", data=tmp_path).stderr


def test_restoring_the_backup_of_another_log_makes_it_the_folders_log_and_keeps_the_read_model(
    folder: Path, tmp_path: Path
) -> None:
    [model] = folder.glob("namespaces/*/*/000001.db")
    content = model.read_bytes()
    event = orjson.dumps(message("the password is swordfish")).decode()
    assert recollect("append", "a", event, data=tmp_path / "other").returncode == 0
    keys = ("--keys", str(tmp_path / "keys"))
    assert recollect("backup", str(tmp_path / "theirs"), *keys, data=tmp_path / "other").returncode == 0

    assert recollect("restore", str(tmp_path / "theirs"), *keys, data=folder).returncode == 0
    assert read_log_id(folder) == read_log_id(tmp_path / "other")
    assert "swordfish" in recollect("retrieve", "a", "which password?", data=folder).stdout
    # Two more generations: what is folded from the same log goes, what is of another one stays.
    for _ in range(3):
        assert recollect("replay", data=folder).returncode == 0
    [aside] = folder.glob("namespaces/*/*/000001.db.replaced-*")
    assert aside.read_bytes() == content
    assert len(list(folder.glob("namespaces/*/*/??????.db"))) == 2


def test_a_wal_without_its_log_is_put_aside_before_a_restore(folder: Path, tmp_path: Path) -> None:
    deleted(folder)
    (folder / "log.db-wal").write_bytes(b"of the log before")
    assert recollect("restore", str(tmp_path / "backup"), data=folder).returncode == 0
    [aside] = folder.glob("log.db.replaced-*-wal")
    assert aside.read_bytes() == b"of the log before"
    assert recollect("verify", data=folder).stdout.startswith("a: intact, 3 events")


def test_a_damaged_log_can_be_restored_over(folder: Path, tmp_path: Path) -> None:
    (folder / "log.db").write_bytes(b"no database" * 1_000)
    assert recollect("restore", str(tmp_path / "backup"), data=folder).returncode == 0
    assert recollect("verify", data=folder).stdout.startswith("a: intact, 3 events")


def test_another_database_of_postgresql_is_refused_until_init_new_log(postgres_url: str, tmp_path: Path) -> None:
    urls = [new_database(postgres_url) for _ in range(2)]
    open_log_of_folder(tmp_path, urls[0]).close()
    open_log_of_folder(tmp_path, urls[0]).close()
    with pytest.raises(LogMissing, match="init --new-log") as refused:
        open_log_of_folder(tmp_path, urls[1])
    assert "postgresql://" not in str(refused.value)
