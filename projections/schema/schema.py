"""Schema: creates the tables of a read model from SQL files, and reads the read model's state."""

from __future__ import annotations

from contextlib import closing
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import apsw
from msgspec import Struct

from recollect.events.chain import GENESIS
from recollect.events.storage.private_files import open_private

#: Raised with every change of the SQL files or of the rows that handlers write. A read model of another version is
#: rebuilt from the log.
SCHEMA_VERSION = 31

#: Bytes of a page of a read model's file. Most of its 60 tables and indexes are empty in a namespace of few messages,
#: and each takes a page: 20 messages take 96 KiB, with SQLite's default of 4,096 bytes 284 KiB. At 10,000 messages the
#: build, scans and keyword queries take as long as with larger pages.
PAGE_BYTES = 1_024

_ADD_STATE = """
INSERT INTO read_model (
    schema_version, log_id, namespace, checkpoint, checkpoint_hash, attempts, last_removal_version, knowledge_version,
    updating_version
) VALUES (?, ?, ?, 0, ?, 0, 0, 0, 0)
"""


class ReadModelState(Struct, frozen=True, kw_only=True):
    """The single row of the table `read_model`: the read model's identity and its checkpoint."""

    #: The `SCHEMA_VERSION` that built the file.
    schema_version: int
    log_id: str
    namespace: str
    #: Version of the last event applied.
    checkpoint: int
    #: The log's hash at the checkpoint; it differs when the log was replaced by another one.
    checkpoint_hash: bytes
    #: Unfinished attempts at the next batch.
    attempts: int
    #: Version of the event that could not be applied; None: projecting is not parked.
    parked_version: int | None
    #: The error of that event.
    parked_error: str | None
    #: Version of the last event that removed or summarised episodes; 0: none.
    last_removal_version: int
    #: Version of the last event that changed knowledge; 0: none.
    knowledge_version: int


def create_file(path: Path, *, indexed: bool) -> None:
    """Create the file of a read model with empty tables and an empty keyword index; `add_state` completes it.

    Parameters:
        indexed: whether it has the indexes of the episodes.
    """
    with open_private(path) as file:
        file.write(_empty_file(indexed))


def add_state(connection: apsw.Connection, *, log_id: str, namespace: str) -> None:
    """Add the state row of an empty read model."""
    connection.execute(_ADD_STATE, (SCHEMA_VERSION, log_id, namespace, GENESIS))


def set_wal(path: Path) -> None:
    """Set the journal mode WAL in the header of a closed SQLite file, as `PRAGMA journal_mode` does in 1 ms."""
    # https://www.sqlite.org/fileformat.html, "File format version numbers": the bytes 18 and 19 are 2 for WAL.
    with path.open("r+b") as file:
        file.seek(18)
        file.write(b"\2\2")


@cache
def _empty_file(indexed: bool) -> bytes:
    """Return the bytes of an empty read model: copying them takes 0.1 ms, the SQL of 60 tables and indexes 1.5 ms."""
    with closing(apsw.Connection(":memory:")) as connection:
        connection.pragma("page_size", PAGE_BYTES)
        connection.execute("BEGIN")
        _create_tables(connection)
        if indexed:
            create_indexes(connection)
        create_search(connection)
        connection.execute("COMMIT")
        return connection.serialize("main")


def _create_tables(connection: apsw.Connection) -> None:
    """Create the tables of an empty read model."""
    connection.execute(_sql("tables.sql"))
    connection.execute(_sql("knowledge.sql"))


def create_indexes(connection: apsw.Connection) -> None:
    """Create the indexes of the episodes."""
    connection.execute(_sql("indexes.sql"))


def create_search(connection: apsw.Connection) -> None:
    """Create the empty keyword index."""
    connection.execute(_sql("search.sql"))


def read_state(connection: apsw.Connection) -> ReadModelState:
    """Return the state of a read model.

    Raises:
        apsw.Error: the file is not a read model.
        LookupError: the table `read_model` is empty.
    """
    cursor = connection.execute("SELECT * FROM read_model")
    row: tuple[Any, ...] | None = cursor.fetchone()
    if row is None:
        raise LookupError("the table read_model is empty")
    # A file of an older schema version may lack the newer columns; only its version is used then.
    state = dict(zip([column[0] for column in cursor.get_description()], row, strict=True))
    return ReadModelState(
        schema_version=state["schema_version"],
        log_id=state["log_id"],
        namespace=state["namespace"],
        checkpoint=state["checkpoint"],
        checkpoint_hash=state["checkpoint_hash"],
        attempts=state["attempts"],
        parked_version=state["parked_version"],
        parked_error=state["parked_error"],
        last_removal_version=state.get("last_removal_version", 0),
        knowledge_version=state.get("knowledge_version", 0),
    )


def empty_read_model(log_id: str, namespace: str) -> apsw.Connection:
    """Return a connection to an empty read model in memory, as each read of a namespace without events opens one."""
    connection = apsw.Connection(":memory:")
    connection.deserialize("main", _empty_file(indexed=True))
    add_state(connection, log_id=log_id, namespace=namespace)
    return connection


def has_own_schema(connection: apsw.Connection) -> bool:
    """Return whether the tables and views of a read model are those of `SCHEMA_VERSION`."""
    with closing(apsw.Connection(":memory:")) as empty:
        empty.deserialize("main", _empty_file(indexed=True))
        return _tables(connection) == _tables(empty)


def _tables(connection: apsw.Connection) -> list[tuple[Any, ...]]:
    """Return the names and statements of the tables and views, by name."""
    statement = "SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
    return connection.execute(statement).fetchall()


@cache
def _sql(name: str) -> str:
    """Return the text of an SQL file of this folder."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
