"""Folding: live and by replay, beside the bulk floor: read, decode, one episode row, indexes, FTS5 rebuild."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import apsw
import orjson
import texts
from table import compare, heading, seconds

from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.validation import drafts
from recollect.projections.read_models.read_models import ReadModels

EVENTS = 100_000
_TABLES = """
CREATE TABLE episodes (version INTEGER PRIMARY KEY, id TEXT, session TEXT, at INTEGER, role TEXT, speaker TEXT,
    text TEXT);
CREATE VIRTUAL TABLE search USING fts5 (text, content='episodes', content_rowid='version', tokenize='porter unicode61');
"""


def in_batches(events: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yield `events` by the thousand."""
    while batch := list(islice(events, 1_000)):
        yield batch


def run(folder: Path) -> None:
    heading(f"Projection and replay of {EVENTS:,} events in one namespace (floor: bare apsw bulk load)")
    log = SqliteLog(folder / "log.db")
    for batch in in_batches(texts.varied(EVENTS)):
        log.append("a", drafts(batch))
    models = ReadModels(folder, log)
    floor = EVENTS / seconds(lambda: bulk_load(log, folder / "bare.db"))
    compare("live, everything but embeddings", EVENTS / seconds(lambda: models.catch_up("a")), floor)
    compare("replay, everything but embeddings", EVENTS / seconds(lambda: models.replay("a")), floor)
    print(f"digests equal: {models.check('a').is_equal}")
    models.close()
    log.close()


def bulk_load(log: SqliteLog, path: Path, namespace: str = "a") -> None:
    """Load the messages into one table with six indexes and a keyword index, as fast as SQLite takes them."""
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "OFF")
    connection.pragma("synchronous", "OFF")
    connection.execute("BEGIN")
    connection.execute(_TABLES)
    after = 0
    while events := log.read(namespace, after=after, limit=5_000):
        rows: list[tuple[Any, ...]] = []
        for event in events:
            payload = orjson.loads(event.payload)
            rows.append(
                (
                    event.version,
                    event.id,
                    event.session_id,
                    event.occurred_at_us,
                    payload.get("role"),
                    payload.get("name"),
                    payload.get("text"),
                )
            )
        connection.executemany("INSERT INTO episodes VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        after = events[-1].version
    for columns in ("id", "session, version", "at", "role", "speaker", "speaker, at"):
        connection.execute(f"CREATE INDEX by_{columns.replace(', ', '_')} ON episodes ({columns})")
    connection.execute("INSERT INTO search (search, rank) VALUES ('hashsize', 16777216)")
    connection.execute("INSERT INTO search (search) VALUES ('rebuild')")
    connection.execute("COMMIT")
    connection.close()
