"""Content hash: hashes all rows of a read model, to compare a live read model with one built by replay."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import apsw
import orjson

#: Tables that are not hashed, each with its reason. Those of the keyword index begin with its name.
EXCLUDED_TABLES = {
    "episodes_fts": "its segments depend on batches; `keyword_index_matches` compares it with the episodes",
}
#: Columns that are not hashed, each with its reason.
EXCLUDED_COLUMNS = {
    ("read_model", "checkpoint_hash"): "it hashes the log with its times of recording; each opening compares it",
    ("read_model", "attempts"): "it counts interrupted attempts, which a replay does not repeat",
    ("read_model", "parked_version"): "a replay stops with an error where projecting is parked",
    ("read_model", "parked_error"): "the same",
}

_TABLES = "SELECT name FROM {}.sqlite_master WHERE type = 'table' ORDER BY name"
#: Each column with its place in the primary key, from 1; 0: it is not part of it.
_COLUMNS = "SELECT name, pk FROM pragma_table_info(?, ?) ORDER BY cid"


def content_hash(connection: apsw.Connection) -> str:
    """Return the SHA-256 of all rows in hex; `keyword_index_matches` checks the keyword index."""
    total = sha256()
    for query in _queries(connection):
        total.update(query.encode())
        for row in connection.execute(query):
            total.update(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
    return total.hexdigest()


def hashed_tables(connection: apsw.Connection, schema: str = "main") -> dict[str, dict[str, int]]:
    """Return the columns of each hashed table of an attached file, with their places in the primary key; 0: none."""
    hashed: dict[str, dict[str, int]] = {}
    tables: list[tuple[Any, ...]] = connection.execute(_TABLES.format(schema)).fetchall()
    for (table,) in tables:
        if any(table == excluded or table.startswith(excluded + "_") for excluded in EXCLUDED_TABLES):
            continue
        columns: list[tuple[Any, ...]] = connection.execute(_COLUMNS, (table, schema)).fetchall()
        hashed[table] = {name: place for name, place in columns if (table, name) not in EXCLUDED_COLUMNS}
    return hashed


def _queries(connection: apsw.Connection) -> Iterator[str]:
    """Yield the query of each hashed table, by name; its rows are in the order of their primary key."""
    for table, columns in hashed_tables(connection).items():
        names = ", ".join(f'"{name}"' for name in columns)
        keys = sorted((place, name) for name, place in columns.items() if place)
        order = ", ".join(f'"{name}"' for _, name in keys) or names
        yield f'SELECT {names} FROM "{table}" ORDER BY {order}'


def keyword_index_matches(connection: apsw.Connection) -> bool:
    """Return whether the keyword index agrees with the episodes. FTS5 needs a writable `connection` for the check."""
    try:
        connection.execute("INSERT INTO episodes_fts (episodes_fts, rank) VALUES ('integrity-check', 1)")
    except apsw.CorruptError:
        return False
    return True
