"""Fact statements: stores what was said about each group of facts, so that a late statement finds its place in time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw
import orjson

from recollect.projections.projector.fact_timeline import DatedStatement
from recollect.projections.projector.stated_fact import group_of

#: Statements of one group that are kept. The rows of the table `facts` that only older ones state stay as they are.
#: It bounds the time of one statement: a group is read as a whole.
STATEMENTS_MAX = 200
#: Rank of the kinds that act on other statements of the same time.
ACT_RANK = 9

_COLUMNS = DatedStatement._fields
_ADD = """
INSERT INTO fact_statements (
    group_key, id, kind, value, at_us, from_us, until_us, is_assistant, rank, fact_id, confidence, source_type,
    source_events
) VALUES (
    :group_key, :id, :kind, :value, :at_us, :from_us, :until_us, :is_assistant, :rank, :fact_id, :confidence,
    :source_type, :source_events
)
"""
_GROUP = f"SELECT {', '.join(_COLUMNS)} FROM fact_statements WHERE group_key IN (?, ?) ORDER BY key"
_EVIDENCE = """
SELECT fact_id, confidence, source_type, source_events, at_us FROM fact_statements
WHERE group_key = ? AND fact_id = ? AND kind IN ('state', 'correct', 'past') ORDER BY key
"""
_OF_SOURCE = """
SELECT key, id, source_events FROM fact_statements
WHERE EXISTS (SELECT 1 FROM json_each(fact_statements.source_events) WHERE value = ?)
"""
_REMOVE = "DELETE FROM fact_statements WHERE id = ? RETURNING group_key"
_DROP_OLDEST = """
DELETE FROM fact_statements WHERE key IN (
    SELECT key FROM fact_statements WHERE group_key = ? AND kind IN ('state', 'past') ORDER BY at_us, key LIMIT ?
)
"""


class FactStatements:
    """The table `fact_statements`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def add(
        self, group: str, statement: DatedStatement, *, confidence: float, source_type: str, sources: list[str]
    ) -> None:
        """Add a statement to a group; its key is the next one."""
        bindings: dict[str, Any] = statement._asdict() | {
            "group_key": group,
            "is_assistant": int(statement.is_assistant),
            "confidence": confidence,
            "source_type": source_type,
            "source_events": orjson.dumps(sources).decode(),
        }
        self._connection.execute(_ADD, bindings)

    def has(self, group: str, statement: DatedStatement) -> bool:
        """Return whether a group has a statement of this id, kind and value."""
        query = "SELECT 1 FROM fact_statements WHERE group_key = ? AND id = ? AND kind = ? AND value IS ?"
        row = self._connection.execute(query, (group, statement.id, statement.kind, statement.value)).fetchone()
        return row is not None

    def of_group(self, group: str, topic: str) -> list[DatedStatement]:
        """Return the statements of a group, and the corrections of its whole topic."""
        rows: list[tuple[Any, ...]] = self._connection.execute(_GROUP, (group, topic)).fetchall()
        statements = [DatedStatement._make(row) for row in rows]
        if len(statements) > STATEMENTS_MAX:
            self._connection.execute(_DROP_OLDEST, (group, len(statements) - STATEMENTS_MAX))
        return statements

    def sources_at(self, group: str, at_us: int) -> list[str]:
        """Return the source events of what was stated in a group at a time."""
        query = "SELECT source_events FROM fact_statements WHERE group_key = ? AND at_us = ? AND kind = 'state'"
        return [id for (sources,) in self._connection.execute(query, (group, at_us)) for id in orjson.loads(sources)]

    def assign(self, group: str, statement_id: str, fact_id: str) -> None:
        """Set the fact that a statement belongs to."""
        self._connection.execute(
            "UPDATE fact_statements SET fact_id = ? WHERE group_key = ? AND id = ? AND kind <> 'end'",
            (fact_id, group, statement_id),
        )

    def fact_id(self, group: str, statement_id: str) -> str | None:
        """Return the fact that a statement belongs to, or None."""
        statement = "SELECT fact_id FROM fact_statements WHERE group_key = ? AND id = ? AND kind <> 'end'"
        row: tuple[str | None] | None = self._connection.execute(statement, (group, statement_id)).fetchone()
        return None if row is None else row[0]

    def evidence(self, group: str, fact_id: str) -> list[tuple[float, str, list[str], int]]:
        """Return confidence, source type, sources and time of each statement of a fact."""
        return [
            (confidence, source_type, orjson.loads(sources), at_us)
            for _, confidence, source_type, sources, at_us in self._connection.execute(_EVIDENCE, (group, fact_id))
        ]

    def forget(self, source_id: str, ending_ids: Sequence[str]) -> list[str]:
        """Remove the endings of these ids and what only the event `source_id` states; return the groups that change.

        Statements that other events make as well lose the event as a source.
        """
        removed_ids = [*ending_ids]
        rows: list[tuple[Any, ...]] = self._connection.execute(_OF_SOURCE, (source_id,)).fetchall()
        for key, id, source_events in rows:
            sources = [id for id in orjson.loads(source_events) if id != source_id]
            if sources:
                self._connection.execute(
                    "UPDATE fact_statements SET source_events = ? WHERE key = ?", (orjson.dumps(sources).decode(), key)
                )
            else:
                removed_ids.append(id)
        groups: set[str] = set()
        for id in removed_ids:
            # A correction also ends other values, in groups of their own.
            groups |= {group for (group,) in self._connection.execute(_REMOVE, (id,))}
        return sorted(groups)

    def limit_retractions(self, group: str, value: str, before_us: int) -> None:
        """Limit the retractions of a value to what was said before a time, since a producer states it again."""
        self._connection.execute(
            "UPDATE fact_statements SET at_us = min(at_us, ?) WHERE group_key = ? AND kind = 'retract' AND value = ?",
            (before_us - 1, group, value),
        )


def acting_on(statements: Sequence[DatedStatement], group: str, topic: str) -> list[DatedStatement]:
    """Return the statements of a group; a correction of the whole topic ends the other values of the group."""
    if group == topic:
        return [*statements]
    acting: list[DatedStatement] = []
    for statement in statements:
        if statement.kind == "correct" and statement.rank == ACT_RANK:
            if group != group_of(topic, statement.value or "", None):
                acting.append(statement._replace(kind="end", value=None))
        else:
            acting.append(statement)
    return acting
