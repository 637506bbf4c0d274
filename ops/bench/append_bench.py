"""Durable appends in process, beside bare apsw doing group commit of the same rows for the same clients.

Each figure is measured with encryption too, as the log of a data folder has it. A busy machine distorts the times; the
CPU of this process, printed below them, less so.
"""

from __future__ import annotations

import asyncio
import queue
import statistics
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import apsw
import texts
import uuid_utils
from table import compare, heading

from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.encryption.key_store import KeyStore
from recollect.events.envelope import EventDraft
from recollect.events.validation import draft

CLIENTS = (1, 16, 64, 256)
SECONDS = 1.5
ROUNDS = 3


_TABLE = """
CREATE TABLE events (position INTEGER PRIMARY KEY, id BLOB, type TEXT, schema_version INTEGER, occurred_at_us INTEGER,
    recorded_at_us INTEGER, session_id TEXT, actor TEXT, causation_id TEXT, correlation_id TEXT, encoding TEXT,
    payload BLOB, leaf BLOB, hash BLOB);
CREATE UNIQUE INDEX events_by_id ON events (position >> 36, id);
"""
_INSERT = "INSERT INTO events VALUES (?, ?, ?, 1, ?, ?, ?, NULL, NULL, NULL, 'json', ?, ?, ?)"
_HASH = bytes(32)


def bare(path: Path) -> apsw.Connection:
    """Return a database with the same table of events and the same index, and nothing else."""
    connection = apsw.Connection(str(path))
    for name, value in (("journal_mode", "WAL"), ("synchronous", "FULL"), ("wal_autocheckpoint", 4_000)):
        connection.pragma(name, value)
    connection.execute(_TABLE)
    return connection


def bare_row(position: int, one: EventDraft) -> tuple[Any, ...]:
    """Return the row of an event without a chain: its hashes are zeros."""
    now = time.time_ns() // 1_000
    return (position, uuid_utils.uuid7().bytes, one.type, now, now, one.session_id, one.payload, _HASH, _HASH)


class BareGroupCommit:
    """The floor: the same rows in the same table, one transaction for all who wait.

    No ids looked up, no hash chain, no heads, no triggers, no errors handled.
    """

    def __init__(self, path: Path) -> None:
        self._connection = bare(path)
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._version = 0
        threading.Thread(target=self._run, daemon=True).start()

    async def append(self, namespace: int, one: EventDraft) -> None:
        """Wait until `one` is on disk."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._queue.put((namespace, one, loop, future))
        await future

    def _run(self) -> None:
        while True:
            group = [self._queue.get()]
            while not self._queue.empty():
                group.append(self._queue.get())
            rows: list[tuple[Any, ...]] = []
            for namespace, one, *_ in group:
                self._version += 1
                rows.append(bare_row((namespace << 36) + self._version, one))
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany(_INSERT, rows)
            self._connection.execute("COMMIT")
            group[0][2].call_soon_threadsafe(finish, [future for *_, future in group])


def finish(futures: list[asyncio.Future[None]]) -> None:
    for future in futures:
        future.set_result(None)


async def rate(clients: int, append: Callable[[int], Awaitable[object]]) -> float:
    """Return the appends a second of `clients` tasks, each waiting for its own."""
    done = 0
    until = time.perf_counter() + SECONDS

    async def client(number: int) -> None:
        nonlocal done
        while time.perf_counter() < until:
            await append(number)
            done += 1

    started = time.perf_counter()
    await asyncio.gather(*(client(number) for number in range(clients)))
    return done / (time.perf_counter() - started)


def run(folder: Path) -> None:
    heading("Durable appends in process, one event each (floor: bare apsw group commit)")
    events = texts.unnamed(2_000)
    drafts = [draft(event) for event in events]
    log = SqliteLog(folder / "log.db")
    encrypted_log = SqliteLog(folder / "encrypted" / "log.db", keys=KeyStore(folder / "encrypted"))
    group_commit = BareGroupCommit(folder / "bare.db")
    at = 0

    async def ours(number: int) -> object:
        nonlocal at
        at += 1
        return await log.append_async(f"n{number % 16}", [drafts[at % len(drafts)]])

    async def encrypted(number: int) -> object:
        nonlocal at
        at += 1
        return await encrypted_log.append_async(f"n{number % 16}", [drafts[at % len(drafts)]])

    async def validated(number: int) -> object:
        nonlocal at
        at += 1
        return await log.append_async(f"n{number % 16}", [draft(events[at % len(events)])])

    async def floor(number: int) -> object:
        nonlocal at
        at += 1
        return await group_commit.append(number % 16, drafts[at % len(drafts)])

    for clients in CLIENTS:
        appends = {"floor": floor, "ours": ours, "encrypted": encrypted, "validated": validated}
        measured: dict[str, list[float]] = {name: [] for name in appends}
        cpu_us: dict[str, list[float]] = {name: [] for name in appends}
        for _ in range(ROUNDS):
            for name, append in appends.items():
                started, cpu_started = time.perf_counter(), time.process_time()
                measured[name].append(asyncio.run(rate(clients, append)))
                appended = measured[name][-1] * (time.perf_counter() - started)
                cpu_us[name].append((time.process_time() - cpu_started) / appended * 1_000_000)
        medians = {name: statistics.median(rates) for name, rates in measured.items()}
        compare(f"{clients} clients", medians["ours"], medians["floor"])
        compare(f"{clients} clients, encrypted", medians["encrypted"], medians["floor"])
        compare(f"{clients} clients, validation included", medians["validated"], medians["floor"])
        print(f"  CPU µs an event: {', '.join(f'{name} {statistics.median(us):.1f}' for name, us in cpu_us.items())}")
    _batches(folder, {"": log, ", encrypted": encrypted_log})
    log.close()
    encrypted_log.close()


def _batches(folder: Path, logs: dict[str, SqliteLog]) -> None:
    heading("Durable appends in batches (floor: the same rows in bare apsw transactions)")
    drafts = [draft(event) for event in texts.unnamed(1_000)]
    for size in (100, 1_000):
        batch = drafts[:size]
        connection = bare(folder / f"bare{size}.db")
        rates: dict[str, list[float]] = {name: [] for name in logs}
        floor: list[float] = []
        cpu_us: dict[str, list[float]] = {name: [] for name in ("floor", *logs)}
        version = 0
        for _ in range(20_000 // size):
            for name, log in logs.items():
                started, cpu_started = time.perf_counter(), time.process_time()
                log.append("batch", batch)
                rates[name].append(size / (time.perf_counter() - started))
                cpu_us[name].append((time.process_time() - cpu_started) / size * 1_000_000)
            started, cpu_started = time.perf_counter(), time.process_time()
            rows = [bare_row(version + at, one) for at, one in enumerate(batch)]
            version += size
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(_INSERT, rows)
            connection.execute("COMMIT")
            floor.append(size / (time.perf_counter() - started))
            cpu_us["floor"].append((time.process_time() - cpu_started) / size * 1_000_000)
        connection.close()
        for name, ours in rates.items():
            compare(f"batches of {size:,}{name}", statistics.median(ours), statistics.median(floor))
        medians = (f"{name.strip(', ') or 'ours'} {statistics.median(us):.1f}" for name, us in cpu_us.items())
        print(f"  CPU µs an event: {', '.join(medians)}")
