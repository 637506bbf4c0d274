"""What the SQLite file itself refuses, and what the log says when the disk or the file is at fault."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import pytest
from support.events import message_draft

from recollect.events.backends.open_log import open_log
from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.errors import DiskFull, ForeignFile, InvalidInput, NewerFile, ReadOnly, StorageError
from recollect.events.storage.database import connect


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET payload = x'00'",
        "DELETE FROM events",
        "INSERT OR REPLACE INTO events SELECT * FROM events LIMIT 1",
        "INSERT OR REPLACE INTO events SELECT position + 7, id, type, schema_version, occurred_at_us, recorded_at_us, "
        "session_id, actor, causation_id, correlation_id, encoding, payload, leaf, hash FROM events LIMIT 1",
    ],
)
def test_nobody_changes_or_removes_an_event(tmp_path: Path, statement: str) -> None:
    log = SqliteLog(tmp_path / "log.db")
    log.append("a", [message_draft("x", id="e1")])
    other = connect(tmp_path / "log.db")

    with pytest.raises(apsw.ConstraintError, match="immutable"):
        other.execute(statement)
    other.close()
    assert [event.id for event in log.read("a")] == ["e1"]
    log.close()


def test_two_processes_share_one_file_without_gaps(tmp_path: Path) -> None:
    mine, other = SqliteLog(tmp_path / "log.db"), SqliteLog(tmp_path / "log.db")
    for number in range(10):
        (mine if number % 2 else other).append("a", [message_draft(str(number))])
    assert [event.data()["text"] for event in mine.read("a")] == [str(number) for number in range(10)]
    mine.close()
    other.close()


def test_a_log_that_two_processes_create_at_once_opens_in_both(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    first = apsw.Connection(str(path))
    # The first process sets the journal of the new file: SQLite lets the second one not even wait.
    first.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(1) as threads:
        opening = threads.submit(SqliteLog, path)
        with pytest.raises(TimeoutError):
            opening.result(0.3)
        first.execute("COMMIT")
        second = opening.result(10)
    first.close()
    second.append("a", [message_draft("x")])
    assert second.head("a").version == 1
    second.close()


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    path.write_bytes(b"This is a diary, not a database. " * 100)
    with pytest.raises(ForeignFile, match="move it away"):
        SqliteLog(path)
    assert path.read_bytes().startswith(b"This is a diary")


def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE recipes (name TEXT)")
    other.close()
    with pytest.raises(ForeignFile, match="another program"):
        SqliteLog(path)


def test_a_log_of_a_newer_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    SqliteLog(path).close()
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(NewerFile, match="newer Recollect"):
        SqliteLog(path)


def test_a_damaged_file_is_named_when_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    log = SqliteLog(path)
    log.append("a", [message_draft("x" * 500) for _ in range(200)])
    log.close()
    content = bytearray(path.read_bytes())
    content[8_192:60_000] = bytes(60_000 - 8_192)
    path.write_bytes(content)

    with pytest.raises(ForeignFile, match="log.db"):
        log = SqliteLog(path)
        try:
            log.read("a")
        finally:
            log.close()


def test_a_payload_that_rotted_is_refused_with_its_namespace_and_version(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    log = SqliteLog(path)
    log.append("a", [message_draft("sound"), message_draft("swordfish")])
    log.close()
    content = path.read_bytes()
    assert content.count(b'"swordfish"') == 1
    path.write_bytes(content.replace(b'"swordfish"', b'"swordfish\x07'))
    log = SqliteLog(path)
    sound, rotten = log.read("a")
    assert sound.data()["text"] == "sound"
    with pytest.raises(ForeignFile, match="version 2 of namespace 'a' is damaged"):
        rotten.data()
    log.close()


def test_a_full_disk_refuses_appends_and_loses_nothing_acknowledged(small_disk: Path) -> None:
    log = SqliteLog(small_disk / "log.db")
    acknowledged: list[str] = []
    with pytest.raises(DiskFull, match="free some space"):
        for number in range(1_000):
            [one] = log.append("a", [message_draft(f"{number} " + "x" * 5_000, id=f"e{number}")])
            acknowledged.append(one.id)
    assert [event.id for event in log.read("a")] == acknowledged

    # With room again, the same log goes on.
    subprocess.run(["mount", "-o", "remount,size=4m", str(small_disk)], check=True)
    log.append("a", [message_draft("more")])
    assert log.head("a").version == len(acknowledged) + 1
    log.close()


def test_a_read_only_folder_is_named_with_what_to_check(small_disk: Path) -> None:
    SqliteLog(small_disk / "log.db").close()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises((ReadOnly, StorageError), match="cannot be (written|opened)"):
        SqliteLog(small_disk / "log.db").append("a", [message_draft("x")])


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(InvalidInput, match="sqlite:///"):
        open_log("mysql://somewhere")


def test_an_interrupted_append_records_nothing_and_the_next_one_goes_on(tmp_path: Path) -> None:
    interrupts = [False]

    def clock() -> int:
        if interrupts.pop():
            raise KeyboardInterrupt
        return 1

    log = SqliteLog(tmp_path / "log.db", clock=clock)
    log.append("a", [message_draft("before")])
    interrupts[:] = [False, True]
    with pytest.raises(KeyboardInterrupt):
        log.append("a", [message_draft("interrupted")])
    log.append("a", [message_draft("after")])
    assert [event.data()["text"] for event in log.read("a")] == ["before", "after"]
    log.close()
