"""The schema of a read model, in three SQL files: tables, indexes, keyword search."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import apsw

from recollect.events.chain import GENESIS

#: Changed with every change of the SQL files or of what handlers write; a model of another version is built anew.
SCHEMA_VERSION = 6


class ReadModelState(NamedTuple):
    """The one row of the table `read_model`: whose model it is and how far it has come."""

    schema_version: int
    log_id: str
    namespace: str
    #: Version of the last event folded.
    checkpoint: int
    #: The log's hash at that version: what the fold is of, whatever was restored meanwhile.
    checkpoint_hash: bytes
    #: Begun on the next batch and not finished.
    attempts: int
    #: The event that could not be folded, if any.
    parked_version: int | None
    parked_error: str | None
    #: Version of the last event that took episodes away.
    last_removal_version: int
    #: Version of the last event that changed what is known.
    knowledge_version: int


def create_tables(connection: apsw.Connection, *, log_id: str, namespace: str) -> None:
    """Make the tables of an empty model, its own row included."""
    connection.execute(_sql("tables.sql"))
    connection.execute(_sql("knowledge.sql"))
    connection.execute(
        "INSERT INTO read_model VALUES (?, ?, ?, 0, ?, 0, NULL, NULL, 0, 0)",
        (SCHEMA_VERSION, log_id, namespace, GENESIS),
    )


def create_indexes(connection: apsw.Connection) -> None:
    """Make the indexes."""
    connection.execute(_sql("indexes.sql"))


def create_search(connection: apsw.Connection) -> None:
    """Make the keyword index, empty."""
    connection.execute(_sql("search.sql"))


def read_state(connection: apsw.Connection) -> ReadModelState:
    """Return the model's own row; raise `apsw.Error` or `LookupError` when the file is no read model."""
    row: tuple[Any, ...] | None = connection.execute("SELECT * FROM read_model").fetchone()
    if row is None:
        raise LookupError("the table read_model is empty")
    # Of another version it may have fewer columns; which version is all that matters then.
    return ReadModelState(*row[: len(ReadModelState._fields)], *(0,) * (len(ReadModelState._fields) - len(row)))


@cache
def _sql(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
