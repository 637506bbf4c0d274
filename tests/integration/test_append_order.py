"""Append order: no reader passes an append that is in flight, whatever commits first, waits or is killed."""

from __future__ import annotations

import os
import random
import subprocess
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg.sql import SQL, Identifier
from support.events import message_draft
from support.postgres import PostgresServer, new_database

from recollect.events.backends.postgres_log import PostgresLog
from recollect.events.envelope import Appended
from recollect.events.errors import DiskFull, StorageError
from recollect.events.integrity.verify import verify

#: Holds the commit of each append whose id begins with `held-`, until the advisory lock of that id is free.
_HOLD = """
CREATE FUNCTION recollect.hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtext(NEW.id));
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER hold AFTER INSERT ON recollect.events DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.id LIKE 'held-%') EXECUTE FUNCTION recollect.hold();
"""


class Machines:
    """Writers, each on a connection of its own, and a gate for appends."""

    def __init__(self, url: str, count: int) -> None:
        self.url = url
        self.logs = [PostgresLog(url, lock_seconds_max=30) for _ in range(count)]
        self._pool = ThreadPoolExecutor(2 * count)
        self.gates = psycopg.connect(url, autocommit=True)

    def append(self, machine: int, namespace: str, id: str) -> Future[list[Appended]]:
        return self._pool.submit(self.logs[machine].append, namespace, [message_draft(id, id=id)])

    def hold(self, id: str) -> None:
        self.gates.execute("SELECT pg_advisory_lock(hashtext(%s))", (id,))

    def release(self, id: str) -> None:
        self.gates.execute("SELECT pg_advisory_unlock(hashtext(%s))", (id,))

    def in_flight(self) -> list[int]:
        """Return the processes of the server that wait at a gate."""
        rows = self.gates.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'"
        )
        return [row[0] for row in rows.fetchall()]

    def kill_in_flight(self) -> None:
        """Kill the connections of the appends that wait at a gate."""
        for pid in self.in_flight():
            self.gates.execute("SELECT pg_terminate_backend(%s)", (pid,))

    def versions(self, namespace: str) -> list[tuple[int, str]]:
        return [(event.version, event.id) for event in self.logs[-1].read(namespace)]

    def close(self) -> None:
        self.gates.close()
        self._pool.shutdown()
        for log in self.logs:
            log.close()


@pytest.fixture
def small_tablespace(postgres_server: PostgresServer) -> Generator[Path]:
    """A folder of the server on a file system of 16 MiB."""
    folder = postgres_server.data.parent / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("this machine does not let the tests mount a small disk")
    owner = postgres_server.data.stat()
    os.chown(folder, owner.st_uid, owner.st_gid)
    folder.chmod(0o700)
    yield folder
    postgres_server.stop()
    subprocess.run(["umount", "-l", str(folder)], check=False)


@pytest.fixture
def machines(postgres_url: str) -> Generator[Machines]:
    url = new_database(postgres_url)
    machines = Machines(url, 3)
    with psycopg.connect(url) as connection:
        connection.execute(_HOLD)
    yield machines
    machines.close()


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_what_is_behind_an_append_in_flight_waits_and_other_namespaces_do_not(machines: Machines) -> None:
    machines.hold("held-1")
    first = machines.append(0, "a", "held-1")
    until(machines.in_flight)
    behind = machines.append(1, "a", "second")
    other = machines.append(2, "b", "other")
    assert other.result(20)[0].version == 1
    # The version of the append in flight is not passed, nor is a head shown that has it.
    time.sleep(0.1)
    assert (machines.versions("a"), machines.logs[2].head("a").version, behind.done()) == ([], 0, False)
    machines.release("held-1")
    assert (first.result(20)[0].version, behind.result(20)[0].version) == (1, 2)
    assert machines.versions("a") == [(1, "held-1"), (2, "second")]


def test_an_append_that_is_killed_in_flight_leaves_no_gap_and_is_recorded_once(machines: Machines) -> None:
    machines.logs[0].append("a", [message_draft("zero", id="zero")])
    machines.hold("held-1")
    first = machines.append(0, "a", "held-1")
    until(machines.in_flight)
    behind = machines.append(1, "a", "second")
    machines.kill_in_flight()
    # The killed one is sent again with the same id, and comes after the one that waited, or before it.
    until(behind.done)
    machines.release("held-1")
    recorded = {event.id: event.version for event in (*first.result(20), *behind.result(20))}
    assert {id: version for version, id in machines.versions("a")} == recorded | {"zero": 1}
    assert sorted(recorded.values()) == [2, 3]
    assert verify(machines.logs[1], "a").is_intact


def test_a_batch_over_several_machines_with_held_and_killed_appends_is_read_in_order(machines: Machines) -> None:
    """A reader polls from its cursor, as followers and projectors do, while commits are held, reordered and killed."""
    names = ("a", "b")
    with _reader(machines, names) as seen:
        for step in range(12):
            held = f"held-{step}"
            machines.hold(held)
            waiting = [machines.append(step % 3, names[step % 2], held)]
            until(machines.in_flight)
            waiting += [
                machines.append((step + more) % 3, name, f"{step}-{more}-{name}") for more, name in ((1, "a"), (2, "b"))
            ]
            if step % 3 == 1:
                machines.kill_in_flight()
            time.sleep(0.01)
            machines.release(held)
            for append in waiting:
                assert append.result(30)
    for name in names:
        assert [version for version, _ in seen[name]] == [*range(1, len(seen[name]) + 1)]
        assert seen[name] == machines.versions(name)
        assert verify(machines.logs[0], name).is_intact
    assert sum(map(len, seen.values())) == 36


@pytest.mark.parametrize("knows_head", [False, True])
def test_an_append_that_the_server_ends_by_its_time_limit_is_not_recorded_and_says_why(
    machines: Machines, knows_head: bool
) -> None:
    database = Identifier(machines.gates.info.dbname)
    machines.gates.execute(SQL("ALTER DATABASE {} SET statement_timeout = '200ms'").format(database))
    limited = PostgresLog(machines.url)
    before = int(knows_head) and limited.append("a", [message_draft("zero")])[0].version
    machines.hold("held-1")
    first = machines.append(0, "a", "held-1")
    until(machines.in_flight)
    with pytest.raises(StorageError, match="nothing was recorded; raise its statement_timeout"):
        limited.append("a", [message_draft("second", id="second")])
    assert limited.head("a").version == before
    machines.release("held-1")
    assert first.result(20)[0].version == before + 1
    assert limited.append("a", [message_draft("second", id="second")])[0].version == before + 2
    assert verify(limited, "a").is_intact
    limited.close()


def test_a_full_tablespace_is_a_full_disk_and_costs_no_acknowledged_event(
    postgres_server: PostgresServer, small_tablespace: Path
) -> None:
    url = new_database(postgres_server.url, tablespace=small_tablespace)
    log = PostgresLog(url)
    recorded: list[str] = []
    with pytest.raises(DiskFull, match="free some space"):
        for number in range(1_000):
            text = random.Random(number).randbytes(20_000).hex()
            recorded.append(log.append("a", [message_draft(text, id=f"f{number}")])[0].id)
    assert [event.id for event in log.read("a", limit=1_000)] == recorded
    subprocess.run(["mount", "-o", "remount,size=60m", str(small_tablespace)], check=True)
    assert log.append("a", [message_draft("after")])[0].version == len(recorded) + 1
    assert verify(log, "a").is_intact
    log.close()


@contextmanager
def _reader(machines: Machines, names: tuple[str, ...]) -> Generator[dict[str, list[tuple[int, str]]]]:
    """Yield what a reader sees by namespace; at the end it has read all."""
    seen: dict[str, list[tuple[int, str]]] = {name: [] for name in names}
    stop = threading.Event()
    log = PostgresLog(machines.url)

    def read() -> None:
        while True:
            is_last = stop.is_set()
            for name in names:
                after = seen[name][-1][0] if seen[name] else 0
                seen[name] += [(event.version, event.id) for event in log.read(name, after=after, limit=2)]
            if is_last and all(log.head(name).version == len(seen[name]) for name in names):
                return

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read)
        yield seen
        stop.set()
        reading.result(30)
    log.close()
