from __future__ import annotations

import threading
from pathlib import Path

import apsw
import httpx
import pytest
from support.command_line import recollect
from support.events import message, message_draft
from support.server import serving

from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.encryption.key_store import KEYS_NAME
from recollect.events.errors import ForeignFile, InvalidInput, LogRewound
from recollect.events.integrity.backup import backup, restore
from recollect.events.integrity.verify import verify
from recollect.projections.read_models.read_models import ReadModels


def test_a_backup_taken_while_others_append_is_the_log_at_one_moment(tmp_path: Path, log: SqliteLog) -> None:
    stop = threading.Event()

    def append() -> None:
        while not stop.is_set():
            log.append("a", [message_draft("x" * 500) for _ in range(20)])

    log.append("a", [message_draft("x")])
    writer = threading.Thread(target=append)
    writer.start()
    counts = [backup(tmp_path / "log.db", tmp_path / f"backup-{number}") for number in range(3)]
    stop.set()
    writer.join()

    assert counts == sorted(counts)
    for number, count in enumerate(counts):
        copy = SqliteLog(tmp_path / f"backup-{number}" / "log.db")
        assert copy.log_id == log.log_id
        assert copy.head("a").version == count
        assert count % 20 == 1, "no half batches"
        assert copy.read("a", limit=count) == log.read("a", limit=count)
        copy.close()


def test_a_restored_log_is_the_backup_and_what_was_there_is_kept(tmp_path: Path) -> None:
    log = SqliteLog(tmp_path / "log.db")
    log.append("a", [message_draft("kept")])
    backup(tmp_path / "log.db", tmp_path / "backup")
    log.append("a", [message_draft("after the backup")])
    log.close()

    assert restore(tmp_path / "backup", tmp_path / "log.db") == 1
    log = SqliteLog(tmp_path / "log.db")
    assert [event.data()["text"] for event in log.read("a")] == ["kept"]
    log.close()
    [aside] = tmp_path.glob("log.db.replaced-*")
    log = SqliteLog(aside)
    assert log.head("a").version == 2
    log.close()


def test_a_read_model_that_knows_more_than_the_log_refuses_until_it_is_rebuilt(tmp_path: Path) -> None:
    log = SqliteLog(tmp_path / "log.db")
    log.append("a", [message_draft("kept")])
    log.append("b", [message_draft("kept")])
    backup(tmp_path / "log.db", tmp_path / "backup")
    log.append("a", [message_draft("lost with the disk")])
    models = ReadModels(tmp_path, log)
    models.catch_up("a")
    models.catch_up("b")
    models.close()
    log.close()
    restore(tmp_path / "backup", tmp_path / "log.db")

    log = SqliteLog(tmp_path / "log.db")
    models = ReadModels(tmp_path, log)
    with pytest.raises(LogRewound, match="recollect replay"):
        models.catch_up("a")
    assert [parked.namespace for parked in models.live.parked()] == ["a"]
    # Other events in the place of the lost ones make no difference.
    log.append("a", [message_draft("another 2"), message_draft("another 3")])
    with pytest.raises(LogRewound), models.reading("a"):
        pass
    assert models.catch_up("b").version == 1

    assert models.replay("a") == 3
    assert models.catch_up("a").behind == 0
    assert models.live.parked() == []
    assert models.check("a").is_equal
    models.close()
    log.close()


def test_a_log_that_goes_back_under_an_open_read_model_is_noticed(tmp_path: Path, log: SqliteLog) -> None:
    log.append("a", [message_draft("x"), message_draft("y")])
    models = ReadModels(tmp_path, log)
    models.catch_up("a")
    thief = apsw.Connection(str(tmp_path / "log.db"))
    thief.execute("DROP TRIGGER events_refuse_delete; DELETE FROM events WHERE position & 255 = 2")
    thief.execute("UPDATE heads SET version = 1, hash = (SELECT hash FROM events)")
    thief.close()
    with pytest.raises(LogRewound):
        models.catch_up("a")
    models.close()


def test_a_damaged_backup_is_refused_and_the_log_stays(tmp_path: Path, log: SqliteLog) -> None:
    log.append("a", [message_draft(f"text {number}") for number in range(50)])
    backup(tmp_path / "log.db", tmp_path / "backup")
    thief = apsw.Connection(str(tmp_path / "backup" / "log.db"))
    thief.execute("DROP TRIGGER events_refuse_update; UPDATE events SET actor = 'eve' WHERE position & 255 = 9")
    thief.close()
    with pytest.raises(ForeignFile, match="broken at version 9"):
        restore(tmp_path / "backup", tmp_path / "log.db")
    assert verify(log, "a").is_intact
    assert log.head("a").version == 50


def test_a_folder_that_is_there_and_one_that_is_no_backup_are_refused(tmp_path: Path, log: SqliteLog) -> None:
    log.append("a", [message_draft("x")])
    with pytest.raises(InvalidInput, match="exists already"):
        backup(tmp_path / "log.db", tmp_path)
    with pytest.raises(InvalidInput, match="no log"):
        backup(tmp_path / "nothing.db", tmp_path / "backup")
    with pytest.raises(InvalidInput, match="not a backup"):
        restore(tmp_path / "nowhere", tmp_path / "log.db")


def test_verify_reads_the_backup_that_it_is_given_and_makes_no_file(tmp_path: Path, log: SqliteLog) -> None:
    log.append("a", [message_draft("x")])
    backup(tmp_path / "log.db", tmp_path / "backup")
    shown = recollect("verify", str(tmp_path / "backup"), data=tmp_path / "other")
    assert (shown.returncode, shown.stdout.startswith("a: intact, 1 event, hash ")) == (0, True), shown.stderr
    assert [path.name for path in (tmp_path / "backup").iterdir()] == ["log.db"]
    thief = apsw.Connection(str(tmp_path / "backup" / "log.db"))
    thief.execute("DROP TRIGGER events_refuse_update; UPDATE events SET actor = 'eve'")
    thief.close()
    assert recollect("verify", str(tmp_path / "backup"), data=tmp_path).returncode == 1
    refused = recollect("verify", "a", data=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "a namespace is given as --namespace NAME" in refused.stderr


def test_backup_and_restore_on_the_command_line(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with serving(data) as server:
        answer = httpx.post(f"{server.base}/v1/namespaces/ann/events", json=message("Good morning, Lisbon"))
        assert answer.status_code == 201
        done = recollect("backup", str(tmp_path / "backup"), data=data)
        assert (done.returncode, done.stdout.splitlines()[0]) == (
            0,
            f"{tmp_path / 'backup'} has 1 event, verified",
        ), done.stderr
        refused = recollect("restore", str(tmp_path / "backup"), data=data)
        assert refused.returncode == 2
        assert "another server" in refused.stderr
    assert (
        recollect(
            "append", "ann", '{"type":"message.added","payload":{"role":"user","text":"x"}}', data=data
        ).returncode
        == 0
    )
    assert recollect("replay", data=data).returncode == 0
    assert "recollect replay" in recollect("restore", str(tmp_path / "backup"), data=data).stdout
    refused = recollect("replay", "--check", data=data)
    assert (refused.returncode, "restored from a backup" in refused.stdout) == (1, True)
    assert recollect("replay", data=data).returncode == 0
    assert recollect("replay", "--check", data=data).returncode == 0


def test_a_backup_whose_keys_are_missing_is_restored_only_when_that_is_accepted(tmp_path: Path) -> None:
    old, new, copy, keys = (tmp_path / name for name in ("old", "new", "backup", "keys.copy"))
    event = '{"type":"message.added","payload":{"role":"user","text":"a red kite"}}'
    assert recollect("append", "ann", event, data=old).returncode == 0
    assert recollect("backup", str(copy), "--keys", str(keys), data=old).returncode == 0

    refused = recollect("restore", str(copy), data=new)
    assert refused.returncode == 2
    assert "1 of the keys of the backup" in refused.stderr
    assert "nothing was changed" in refused.stderr
    assert "--keys FILE" in refused.stderr
    assert [file.name for file in new.iterdir() if file.name.startswith("log.db")] == []

    for file in (Path(__file__), copy / "log.db"):
        refused = recollect("restore", str(copy), "--keys", str(file), data=new)
        assert (refused.returncode, f"{file}: is not a key store" in refused.stderr) == (2, True), refused.stderr

    restored = recollect("restore", str(copy), "--keys", str(keys), data=new)
    assert (restored.returncode, "cannot be read" in restored.stderr) == (0, False)
    assert "a red kite" in recollect("retrieve", "ann", "kite", data=new).stdout
    # The keys of another log do not open the backup.
    other = tmp_path / "other"
    assert recollect("append", "ann", event, data=other).returncode == 0
    assert recollect("restore", str(copy), data=other).returncode == 2
    assert recollect("verify", data=other).returncode == 0
    accepted = tmp_path / "accepted"
    restored = recollect("restore", str(copy), "--without-keys", data=accepted)
    assert restored.returncode == 0
    assert "warning: 1 of them cannot be read" in restored.stderr
    assert recollect("append", "bob", event, data=accepted).returncode == 0
    assert "a red kite" in recollect("retrieve", "bob", "kite", data=accepted).stdout


@pytest.mark.parametrize("namespace", ["ann", "bob"])
def test_a_lost_key_store_is_not_replaced_by_the_next_append(tmp_path: Path, namespace: str) -> None:
    data, kept = tmp_path / "data", tmp_path / "keys.kept"
    event = '{"type":"message.added","payload":{"role":"user","text":"a red kite"}}'
    assert recollect("append", "ann", event, data=data).returncode == 0
    (data / KEYS_NAME).rename(kept)

    refused = recollect("append", namespace, event, data=data)
    assert refused.returncode == 2
    assert "is missing, and the events of the log are encrypted with its keys" in refused.stderr
    assert not (data / KEYS_NAME).exists()
    assert recollect("verify", data=data).returncode == 0

    kept.rename(data / KEYS_NAME)
    assert recollect("append", namespace, event, data=data).returncode == 0
    assert "a red kite" in recollect("retrieve", namespace, "kite", data=data).stdout


def test_keys_of_archived_events_are_looked_for_and_destroyed_ones_are_not_missing(tmp_path: Path) -> None:
    data = tmp_path / "data"
    for name in ("ann", "bob"):
        event = '{"type":"message.added","payload":{"role":"user","text":"a red kite"}}'
        assert recollect("append", name, event, data=data).returncode == 0
    assert recollect("archive", "--min-events", "1", "--prune", data=data).returncode == 0
    assert recollect("backup", str(tmp_path / "backup"), data=data).returncode == 0
    refused = recollect("restore", str(tmp_path / "backup"), data=tmp_path / "new")
    assert "2 of the keys" in refused.stderr
    erased = recollect("erase", "bob", "--everything", "--yes", data=data)
    assert erased.returncode == 0, erased.stderr
    assert recollect("restore", str(tmp_path / "backup"), data=data).returncode == 0
