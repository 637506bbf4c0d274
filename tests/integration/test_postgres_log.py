"""What PostgreSQL itself refuses, and what the log does when the server goes away."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from pathlib import Path

import psycopg
import pytest
from support.events import message_draft
from support.postgres import PostgresServer, new_database

from recollect.events.backends import postgres_log
from recollect.events.backends.open_log import open_log
from recollect.events.backends.postgres_log import PostgresLog
from recollect.events.encryption.key_store import KeyStore
from recollect.events.envelope import Appended
from recollect.events.errors import EventIdConflict, ForeignFile, InvalidInput, NewerFile, StorageError, VersionConflict
from recollect.events.integrity.verify import verify
from recollect.events.validation import draft


@pytest.fixture
def url(postgres_url: str) -> str:
    return new_database(postgres_url)


@pytest.fixture
def log(url: str) -> Generator[PostgresLog]:
    log = PostgresLog(url)
    yield log
    log.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE recollect.events SET payload = ''",
        "DELETE FROM recollect.events",
        "TRUNCATE recollect.events",
        "UPDATE recollect.events_{part} SET payload = ''",
        "DELETE FROM recollect.events_{part}",
        "TRUNCATE recollect.events_{part}",
        "INSERT INTO recollect.events TABLE recollect.events ON CONFLICT (namespace, version) DO UPDATE SET id = 'x'",
    ],
)
def test_nobody_changes_or_removes_an_event_not_even_a_superuser(url: str, log: PostgresLog, statement: str) -> None:
    log.append("a", [message_draft("x", id="e1")])
    with psycopg.connect(url, autocommit=True) as other:
        [[table]] = other.execute("SELECT tableoid::regclass::text FROM recollect.events").fetchall()
        with pytest.raises(psycopg.Error, match="immutable"):
            other.execute(statement.format(part=table.rpartition("_")[2]).encode())
    assert [event.id for event in log.read("a")] == ["e1"]


def test_the_owner_of_the_tables_has_no_privilege_to_change_events_except_to_erase(url: str, tmp_path: Path) -> None:
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(b"DROP ROLE IF EXISTS bot")
        admin.execute(b"CREATE ROLE bot LOGIN")
        admin.execute(f"GRANT CREATE ON DATABASE {admin.info.dbname} TO bot".encode())
    of_bot = url.replace("postgres@", "bot@")
    log = PostgresLog(of_bot, keys=KeyStore(tmp_path))
    log.append("a", [message_draft("x"), message_draft("y")])
    record = draft({"type": "events.erased", "id": "r", "payload": {"scope": "message", "versions": [[1, 1]]}})
    assert log.erase("a", [1], record, expected_version=2) is not None
    assert [event.is_erased for event in log.read("a")] == [True, False, False]
    assert verify(log, "a").is_intact
    with psycopg.connect(of_bot, autocommit=True) as bot:
        bot.execute(b"SELECT set_config('recollect.erasing', 'on', false)")
        for statement in (b"UPDATE recollect.events SET id = 'y'", b"DELETE FROM recollect.events"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                bot.execute(statement)
    log.close()
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(b"DROP OWNED BY bot CASCADE")
        admin.execute(b"DROP ROLE bot")


def test_two_machines_share_one_log_without_gaps_or_deadlocks(url: str) -> None:
    machines = [PostgresLog(url) for _ in range(3)]

    def write(machine: PostgresLog, number: int) -> None:
        for turn in range(20):
            for namespace in ("a", "b", "c") if (number + turn) % 2 else ("c", "b", "a"):
                machine.append(namespace, [message_draft(f"{number}.{turn}"), message_draft("x")])

    threads = [threading.Thread(target=write, args=(machine, number)) for number, machine in enumerate(machines * 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for namespace in ("a", "b", "c"):
        assert [event.version for event in machines[0].read(namespace)] == list(range(1, 241))
        assert verify(machines[1], namespace).is_intact
    for machine in machines:
        machine.close()


def test_a_server_that_restarts_is_found_again(postgres_server: PostgresServer) -> None:
    # On a busy machine a server takes long to come back.
    log = PostgresLog(new_database(postgres_server.url), reconnect_seconds_max=60)
    log.append("a", [message_draft("before")])
    log.read("a")
    postgres_server.kill()
    restart = threading.Timer(0.5, postgres_server.start)
    restart.start()
    [after] = log.append("a", [message_draft("after")])
    restart.join()

    assert (after.version, after.duplicate) == (2, False)
    assert [event.data()["text"] for event in log.read("a")] == ["before", "after"]
    log.close()


@pytest.mark.parametrize("commit", ["write_at_once", "write_and_commit"])
@pytest.mark.parametrize("id", [None, "e2"])
def test_a_commit_whose_answer_got_lost_is_found_and_not_repeated(
    commit: str, id: str | None, log: PostgresLog, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.append("a", [message_draft("x", id="e1")])
    # A writer that has not written yet reads the head first.
    writer = log if commit == "write_at_once" else PostgresLog(url)
    real: Callable[..., bool | None] = vars(postgres_log)[commit]
    lost: list[int] = []

    def commit_and_lose_the_answer(connection: psycopg.Connection[object], *rest: object) -> bool | None:
        outcome = real(connection, *rest)
        if not lost:
            lost.append(1)
            connection.close()
            raise psycopg.OperationalError("the connection is lost")
        return outcome

    # The network fails between the commit and its answer.
    monkeypatch.setattr(postgres_log, commit, commit_and_lose_the_answer)
    first = writer.append("a", [message_draft("y", id=id), message_draft("z")], expected_version=1)
    writer.append("a", [message_draft("then")])

    assert lost
    assert [one.version for one in first] == [2, 3]
    # Of an id that was given, another writer may have recorded it.
    assert [one.duplicate for one in first] == [id is not None, False]
    assert [event.data()["text"] for event in log.read("a")] == ["x", "y", "z", "then"]
    assert verify(log, "a").is_intact
    writer.close()


def test_an_id_that_is_recorded_is_found_by_a_writer_that_is_alone(
    log: PostgresLog, caplog: pytest.LogCaptureFixture
) -> None:
    for is_repeated in (False, True):
        recorded = [log.append("a", [message_draft(text, id=text)])[0] for text in ("one", "two")]
        assert [(one.version, one.duplicate) for one in recorded] == [(1, is_repeated), (2, is_repeated)]
    with pytest.raises(EventIdConflict):
        log.append("a", [message_draft("three"), message_draft("other", id="two")])
    [three] = log.append("a", [message_draft("three", id="three")])
    assert (three.version, three.duplicate) == (3, False)
    assert verify(log, "a").is_intact
    assert not caplog.records


def test_a_head_that_another_machine_has_moved_is_read_again(url: str, log: PostgresLog) -> None:
    other = PostgresLog(url)
    for text in ("one", "two"):
        log.append("a", [message_draft(text)])
    other.append("a", [message_draft("three")])
    # The first one knows that it left version 2, which is over.
    with pytest.raises(VersionConflict, match="3"):
        log.append("a", [message_draft("late")], expected_version=2)
    other.append("a", [message_draft("four")])
    [five] = log.append("a", [message_draft("five")], expected_version=4)
    [six] = log.append("a", [message_draft("six")])
    other.append("a", [message_draft("seven")])
    # Two namespaces in one transaction, of which the other machine has moved one.
    both = log.append_async("a", [message_draft("eight")]), log.append_async("b", [message_draft("first")])

    async def together() -> tuple[list[Appended], list[Appended]]:
        return await asyncio.gather(*both)

    [[eight], [first]] = asyncio.run(together())

    assert [one.version for one in (five, six, eight, first)] == [5, 6, 8, 1]
    expected = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
    assert [event.data()["text"] for event in log.read("a")] == expected
    assert verify(log, "a").is_intact
    assert verify(log, "b").is_intact
    other.close()


def test_a_server_that_stays_away_is_an_error_that_says_so(postgres_server: PostgresServer) -> None:
    log = PostgresLog(new_database(postgres_server.url), reconnect_seconds_max=0.3)
    log.append("a", [message_draft("x")])
    postgres_server.stop()
    try:
        with pytest.raises(StorageError, match="cannot be reached"):
            log.append("a", [message_draft("y")])
        with pytest.raises(StorageError, match="cannot be reached"):
            log.read("a")
        with pytest.raises(StorageError, match="cannot be reached"):
            PostgresLog("postgresql://postgres@/nothing?host=/tmp/nowhere")
    finally:
        postgres_server.start()
    assert log.append("a", [message_draft("z")])[0].version == 2
    log.close()


def test_an_append_behind_a_stuck_lock_gives_up_and_records_nothing(url: str) -> None:
    log = PostgresLog(url, lock_seconds_max=1)
    log.append("a", [message_draft("x")])
    with psycopg.connect(url) as stuck:
        stuck.execute("SELECT * FROM recollect.heads FOR UPDATE")
        with pytest.raises(StorageError, match="holds a lock"):
            log.append("a", [message_draft("y")])
        stuck.rollback()
    assert log.append("a", [message_draft("z")])[0].version == 2
    log.close()


def test_a_refused_first_append_leaves_no_namespace_behind(log: PostgresLog) -> None:
    with pytest.raises(VersionConflict):
        log.append("new", [message_draft("x")], expected_version=5)
    assert log.heads() == []


def test_a_log_of_a_newer_program_is_refused(url: str) -> None:
    PostgresLog(url).close()
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("UPDATE recollect.log SET migration = 99")
    with pytest.raises(NewerFile, match="newer Recollect"):
        PostgresLog(url)


def test_a_schema_of_somebody_else_is_refused_and_left_alone(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("CREATE SCHEMA recollect CREATE TABLE recipes (name text)")
    with pytest.raises(ForeignFile, match="of another program"):
        PostgresLog(url)


def test_a_url_that_is_none_is_refused_without_its_password() -> None:
    with pytest.raises(InvalidInput, match="PostgreSQL URL"):
        open_log("postgresql://a:secret@h/d?nonsense=1")
    with pytest.raises(StorageError) as refused:
        open_log("postgresql://a:secret@127.0.0.1:1/d")
    assert "secret" not in str(refused.value)


def test_programs_that_start_at_once_prepare_one_log(url: str) -> None:
    logs: list[PostgresLog] = []
    threads = [threading.Thread(target=lambda: logs.append(PostgresLog(url))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({log.log_id for log in logs}) == 1
    for log in logs:
        log.close()
