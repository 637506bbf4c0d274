"""Quarantine queries: the memories that wait for a review, and those that were reviewed."""

from __future__ import annotations

from typing import Any

import apsw
import orjson
from msgspec import Struct

# Documents that were reviewed are shown, as they are or in the form without instructions.
_DOCUMENTS = "SELECT memory_id FROM quarantine WHERE kind = 'document' AND status = 'waiting'"
_PAGE = """
SELECT memory_id, kind, reasons, status, version, at_us FROM quarantine
WHERE version > ?1 AND (status = ?2 OR ?2 IS NULL) ORDER BY version, memory_id LIMIT ?3
"""
_FIND = "SELECT memory_id, kind, reasons, status, version, at_us FROM quarantine WHERE memory_id = ?"


class QuarantineRow(Struct, frozen=True, kw_only=True):
    """A memory in quarantine."""

    memory_id: str
    #: memory or document.
    kind: str
    reasons: tuple[str, ...]
    #: waiting, or the decision: approve, reject, redact.
    status: str
    #: Of the event that put it there.
    version: int
    at_us: int

    @classmethod
    def from_row(cls, row: tuple[Any, ...]) -> QuarantineRow:
        """Return a row of the table `quarantine` as a record."""
        memory_id, kind, reasons, status, version, at_us = row
        return cls(
            memory_id=memory_id,
            kind=kind,
            reasons=tuple(orjson.loads(reasons)),
            status=status,
            version=version,
            at_us=at_us,
        )


class QuarantineQueries:
    """Queries on the table `quarantine`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def documents(self) -> frozenset[str]:
        """Return the ids of the documents that wait for a review."""
        return frozenset(str(id) for (id,) in self._connection.execute(_DOCUMENTS))

    def page(self, after: int, limit: int, status: str | None = None) -> list[QuarantineRow]:
        """Return the memories that were put there by events after a version, oldest first; of one status if given."""
        return [QuarantineRow.from_row(row) for row in self._connection.execute(_PAGE, (after, status, limit))]

    def find(self, memory_id: str) -> QuarantineRow | None:
        """Return the row of one memory; None: it never was in quarantine."""
        row: tuple[Any, ...] | None = self._connection.execute(_FIND, (memory_id,)).fetchone()
        return None if row is None else QuarantineRow.from_row(row)
