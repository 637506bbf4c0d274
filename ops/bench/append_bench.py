"""Durable appends in process, beside bare apsw doing group commit of the same rows for the same clients."""

from __future__ import annotations

import asyncio
import queue
import statistics
import threading
import time
from collections.abc import Awaitable, Callable
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import apsw
import texts
import uuid_utils
from table import compare, heading

from recollect.events.sqlite import SqliteLog
from recollect.events.validation import draft

CLIENTS = (1, 16, 64, 256)
SECONDS = 1.5
ROUNDS = 3


class BareGroupCommit:
    """The floor: one thread, one transaction for all who wait; no ids looked up, no chain, no heads, no triggers."""

    def __init__(self, path: Path) -> None:
        self._connection = apsw.Connection(str(path))
        self._connection.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=4000")
        self._connection.execute(
            "CREATE TABLE events (namespace TEXT, version INTEGER, id BLOB, payload BLOB, "
            "PRIMARY KEY (namespace, version)) WITHOUT ROWID; CREATE UNIQUE INDEX ids ON events (namespace, id)"
        )
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._version = 0
        threading.Thread(target=self._run, daemon=True).start()

    async def append(self, payload: bytes) -> None:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._queue.put((payload, loop, future))
        await future

    def _run(self) -> None:
        while True:
            group = [self._queue.get()]
            while not self._queue.empty():
                group.append(self._queue.get())
            rows: list[tuple[Any, ...]] = []
            for payload, *_ in group:
                self._version += 1
                rows.append(("a", self._version, uuid_utils.uuid7().bytes, payload))
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?)", rows)
            self._connection.execute("COMMIT")
            group[0][1].call_soon_threadsafe(_finish, [future for *_, future in group])


def _finish(futures: list[asyncio.Future[None]]) -> None:
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
    events = list(islice(texts.unnamed(), 2_000))
    drafts = [draft(event) for event in events]
    log = SqliteLog(folder / "log.db")
    bare = BareGroupCommit(folder / "bare.db")
    at = 0

    async def ours(number: int) -> object:
        nonlocal at
        at += 1
        return await log.append_async(f"n{number % 16}", [drafts[at % len(drafts)]])

    async def validated(number: int) -> object:
        nonlocal at
        at += 1
        return await log.append_async(f"n{number % 16}", [draft(events[at % len(events)])])

    async def floor(_: int) -> object:
        nonlocal at
        at += 1
        return await bare.append(drafts[at % len(drafts)].payload)

    for clients in CLIENTS:
        measured: dict[str, list[float]] = {"ours": [], "validated": [], "floor": []}
        for _ in range(ROUNDS):
            for name, append in (("floor", floor), ("ours", ours), ("validated", validated)):
                measured[name].append(asyncio.run(rate(clients, append)))
        medians = {name: statistics.median(rates) for name, rates in measured.items()}
        compare(f"{clients} clients", medians["ours"], medians["floor"])
        compare(f"{clients} clients, validation included", medians["validated"], medians["floor"])
    _batches(folder, log)
    log.close()


def _batches(folder: Path, log: SqliteLog) -> None:
    heading("Durable appends in batches (floor: the same rows in bare apsw transactions)")
    drafts = [draft(event) for event in islice(texts.unnamed(), 1_000)]
    for size in (100, 1_000):
        batch = drafts[:size]
        connection = apsw.Connection(str(folder / f"bare{size}.db"))
        connection.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=4000")
        connection.execute("CREATE TABLE events (version INTEGER PRIMARY KEY, id BLOB UNIQUE, payload BLOB, leaf BLOB)")
        ours: list[float] = []
        floor: list[float] = []
        version = 0
        for _ in range(20_000 // size):
            started = time.perf_counter()
            log.append("batch", batch)
            ours.append(size / (time.perf_counter() - started))
            started = time.perf_counter()
            rows: list[tuple[Any, ...]] = []
            for one in batch:
                version += 1
                rows.append((version, uuid_utils.uuid7().bytes, one.payload, sha256(one.payload).digest()))
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?)", rows)
            connection.execute("COMMIT")
            floor.append(size / (time.perf_counter() - started))
        connection.close()
        compare(f"batches of {size:,}", statistics.median(ours), statistics.median(floor))
