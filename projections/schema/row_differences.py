"""Row differences: compares the rows of two files of read models, which two versions of the code may have built.

Rows are compared over the columns that both have. A row of one side alone is paired with one of the other side by its
key, and shown with the columns that differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
from msgspec import Struct

from recollect.projections.schema.content_hash import hashed_tables

#: Tables of which nothing is shown: the versions and fingerprints of the code itself.
_OF_THE_CODE = frozenset({"read_model"})
#: Rows of a table that are compared; of more, the first ones by key.
_ROWS_MAX = 1_000_000


class RowDifference(Struct, frozen=True, kw_only=True):
    """A row that only one side has, or that differs."""

    table: str
    #: The columns of the row on each side; None: this side does not have it.
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None

    @property
    def changed_columns(self) -> list[str]:
        """Return the columns that differ; all where one side does not have the row."""
        before, after = self.before or {}, self.after or {}
        return [name for name in {**before, **after} if before.get(name) != after.get(name)]


def row_differences(before: Path, after: Path) -> list[RowDifference]:
    """Return the differences between two files of read models."""
    with closing(apsw.Connection(":memory:")) as connection:
        for side, file in (("a", before), ("b", after)):
            connection.execute(f"ATTACH ? AS {side}", (str(file),))
        return [*_differences(connection)]


def _differences(connection: apsw.Connection) -> Iterator[RowDifference]:
    """Yield the differences of the attached read models `a` and `b`, by table."""
    tables = {side: hashed_tables(connection, side) for side in "ab"}
    for table in sorted((tables["a"].keys() | tables["b"].keys()) - _OF_THE_CODE):
        of_a, of_b = tables["a"].get(table, {}), tables["b"].get(table, {})
        columns = [name for name in (of_a or of_b) if name in (of_b or of_a)]
        if "id" in columns:
            # The number of a row depends on the rows before it.
            columns = [name for name in columns if not (of_a or of_b)[name] or name == "id"]
        names = ", ".join(f'"{name}"' for name in columns)
        only: dict[str, list[tuple[Any, ...]]] = {"a": [], "b": []}
        for side, other in ("ab", "ba"):
            if not tables[side].get(table):
                continue
            without = f'EXCEPT SELECT {names} FROM {other}."{table}"' if tables[other].get(table) else ""
            only[side] = connection.execute(
                f'SELECT {names} FROM {side}."{table}" {without} LIMIT {_ROWS_MAX}'
            ).fetchall()
        yield from _paired(table, columns, _key(of_a or of_b, columns), only)


def _key(columns: Mapping[str, int], shared: list[str]) -> list[str]:
    """Return the columns that name a row: its id, which means the same on both sides, or else its primary key."""
    if "id" in shared:
        return ["id"]
    return sorted((name for name in shared if columns[name]), key=lambda name: columns[name]) or shared


def _paired(
    table: str, columns: list[str], key: list[str], only: Mapping[str, list[tuple[Any, ...]]]
) -> Iterator[RowDifference]:
    """Yield the rows of one side alone, those of one key as one difference."""
    rows = {side: [dict(zip(columns, row, strict=True)) for row in only[side]] for side in "ab"}
    after = {tuple(row[name] for name in key): row for row in rows["b"]}
    for row in rows["a"]:
        yield RowDifference(table=table, before=row, after=after.pop(tuple(row[name] for name in key), None))
    for row in after.values():
        yield RowDifference(table=table, before=None, after=row)
