"""Records: fetch the rows of a statement as records, dicts, tuples or single values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import apsw
import orjson

Record = TypeVar("Record")

#: Values for the placeholders of a statement.
Bindings = Sequence[str | int | float | bytes | None]


def fetch_records(
    connection: apsw.Connection, record: type[Record], statement: str, bindings: Bindings = ()
) -> list[Record]:
    """Return the rows as records; the statement has one column for each field, with its name."""
    return [record(**row) for row in fetch_dicts(connection, statement, bindings)]


def fetch_dicts(connection: apsw.Connection, statement: str, bindings: Bindings = ()) -> Iterator[dict[str, Any]]:
    """Yield the rows as dicts by column name."""
    cursor = connection.execute(statement, tuple(bindings))
    names: list[str] | None = None
    for row in cursor:
        if names is None:
            names = [column[0] for column in cursor.get_description()]
        yield dict(zip(names, row, strict=True))


def fetch_tuples(connection: apsw.Connection, statement: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
    """Return the rows as tuples, for pairs and for hot loops."""
    return connection.execute(statement, tuple(bindings)).fetchall()


def fetch_values(connection: apsw.Connection, statement: str, bindings: Bindings = ()) -> list[Any]:
    """Return the values of the first column."""
    return [row[0] for row in fetch_tuples(connection, statement, bindings)]


def fetch_value(connection: apsw.Connection, statement: str, bindings: Bindings = ()) -> Any:
    """Return the first column of the first row; None: no row."""
    row: tuple[Any, ...] | None = connection.execute(statement, tuple(bindings)).fetchone()
    return None if row is None else row[0]


def json_list(values: Iterable[str | int]) -> str:
    """Return values for `json_each(?)`: a statement for lists of any length is prepared once."""
    return orjson.dumps([*values]).decode()


def placeholders(count: int) -> str:
    """Return `count` placeholders separated by commas."""
    return ", ".join("?" * count)
