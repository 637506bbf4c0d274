"""Fact queries: read the history of a fact."""

from __future__ import annotations

from typing import Any

import apsw

from recollect.projections.queries.records import fetch_dicts, fetch_value

_COLUMNS = """
id, subject, predicate, object, type, confidence, source_type, status, coalesce(valid_from_us, created_at_us)
AS valid_from_us, valid_until_us, superseded_by, evidence_count, source_events, created_at_us, updated_at_us
"""
_FACT = "SELECT topic, value, conflict_key FROM facts WHERE id = ?"
# The facts that cannot hold at the same time: those of one conflict key, or else those of one value.
_CONFLICTING = f"SELECT {_COLUMNS} FROM facts WHERE conflict_key = ? AND status <> 'rejected'"
_EQUAL = f"SELECT {_COLUMNS} FROM facts WHERE topic = ? AND value = ? AND conflict_key IS NULL AND status <> 'rejected'"
_ORDER = " ORDER BY coalesce(valid_from_us, created_at_us), key LIMIT ?"
_FIRST_STATED = "SELECT created_at_us FROM facts WHERE id = ?"


class FactQueries:
    """Queries on the table of facts."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def history(self, fact_id: str, limit: int) -> list[dict[str, Any]]:
        """Return the facts that held in turn with a fact, by start of validity; an empty list: no such fact."""
        fact: tuple[str, str, str | None] | None = self._connection.execute(_FACT, (fact_id,)).fetchone()
        if fact is None:
            return []
        topic, value, conflict_key = fact
        if conflict_key is None:
            return list(fetch_dicts(self._connection, _EQUAL + _ORDER, (topic, value, limit)))
        return list(fetch_dicts(self._connection, _CONFLICTING + _ORDER, (conflict_key, limit)))

    def first_stated(self, fact_id: str) -> int | None:
        """Return the time of the first statement of a fact, in microseconds; None: no such fact."""
        return fetch_value(self._connection, _FIRST_STATED, (fact_id,))
