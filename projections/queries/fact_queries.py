"""Fact queries: read the history of a fact or a preference."""

from __future__ import annotations

from typing import Any

import apsw

from recollect.projections.queries.page_queries import PREFERENCE_SUBJECT
from recollect.projections.queries.records import fetch_dicts, fetch_value

_COLUMNS = """
id, subject, predicate, object, type, confidence, source_type, status, coalesce(valid_from_us, created_at_us)
AS valid_from_us, valid_until_us, superseded_by, evidence_count, source_events, created_at_us, updated_at_us
"""
_FACT = "SELECT topic, value, conflict_key, entity_id FROM facts WHERE id = ?"
# The facts that cannot hold at the same time: those of one conflict key, or else those of one value. A predicate with
# one value has one for all names of an entity.
_CONFLICTING = f"""
SELECT {_COLUMNS} FROM current_facts WHERE status <> 'rejected' AND (conflict_key = ?1 OR (
    ?1 = ?2 AND conflict_key = topic AND substr(topic, instr(topic, '|')) = substr(?2, instr(?2, '|'))
    AND entity_id IN (SELECT entity_id FROM entity_groups WHERE group_id = (
        SELECT group_id FROM entity_groups WHERE entity_id = ?3
    ))
))
"""
# The facts of one value, and those that a correction replaced by one another, of which one has 20 at most: each step
# reads the facts of the namespace.
_EQUAL = f"""
WITH RECURSIVE corrected (id) AS (
    SELECT id FROM facts WHERE topic = ?1 AND value = ?2 AND conflict_key IS NULL
    UNION
    SELECT other.id FROM corrected JOIN facts AS fact ON fact.id = corrected.id
    JOIN facts AS other ON other.id = fact.superseded_by OR other.superseded_by = fact.id
    LIMIT 20
)
SELECT {_COLUMNS} FROM current_facts WHERE status <> 'rejected' AND conflict_key IS NULL AND id IN corrected
"""
_ORDER = " ORDER BY coalesce(valid_from_us, created_at_us), key LIMIT ?"
_FIRST_STATED = "SELECT created_at_us FROM facts WHERE id = ?"


# The values of one subject, category and name.
_PREFERENCES = f"""
SELECT id, {PREFERENCE_SUBJECT} AS subject, category, name, value, strength, standing, source_type, status,
    coalesce(valid_from_us, created_at_us) AS valid_from_us, valid_until_us, superseded_by, evidence_count,
    source_events, created_at_us, updated_at_us
FROM preferences WHERE (subject, category, name) = (SELECT subject, category, name FROM preferences WHERE id = ?)
"""


class FactQueries:
    """Queries on the histories of facts and preferences."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def history(self, fact_id: str, limit: int) -> list[dict[str, Any]]:
        """Return the facts that held in turn with a fact, by start of validity; an empty list: no such fact."""
        fact: tuple[str, str, str | None, int] | None = self._connection.execute(_FACT, (fact_id,)).fetchone()
        if fact is None:
            return []
        topic, value, conflict_key, entity_id = fact
        if conflict_key is None:
            return list(fetch_dicts(self._connection, _EQUAL + _ORDER, (topic, value, limit)))
        return list(fetch_dicts(self._connection, _CONFLICTING + _ORDER, (conflict_key, topic, entity_id, limit)))

    def first_stated(self, fact_id: str) -> int | None:
        """Return the time of the first statement of a fact, in microseconds; None: no such fact."""
        return fetch_value(self._connection, _FIRST_STATED, (fact_id,))

    def preference_history(self, preference_id: str, limit: int) -> list[dict[str, Any]]:
        """Return the values that held in turn of a preference, as `history` does."""
        return list(fetch_dicts(self._connection, _PREFERENCES + _ORDER, (preference_id, limit)))
