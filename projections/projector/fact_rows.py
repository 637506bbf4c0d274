"""Fact rows: reads and writes the tables `facts` and `preferences`, whose rows follow timelines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import apsw
import orjson
from msgspec import Struct

from recollect.events.envelope import DAY_US, RecordedEvent, parse_rfc3339
from recollect.projections.projector.stated_fact import StatedMemory, combined_confidence, group_of
from recollect.projections.schema.time_to_live import TTL_DAYS

#: Ranks of the source types; a better source has a higher rank (`003`).
SOURCE_RANKS = {"inferred": 0, "observed": 1, "stated": 2, "corrected": 3}
#: Most events in the list of a memory's sources.
SOURCES_MAX = 50

#: The columns that both tables have and an insert writes, each with its value in the row of a second time.
_COMMON_COLUMNS = {
    "id": ":id",
    "version": "version",
    "source_type": "source_type",
    "status": "'active'",
    "pinned": "0",
    "superseded_by": "NULL",
    "valid_from_us": ":valid_from_us",
    "valid_until_us": ":valid_until_us",
    "evidence_count": "1",
    "source_events": "source_events",
    "stale_at_us": "stale_at_us",
    "created_at_us": "created_at_us",
    "updated_at_us": "updated_at_us",
}


class RowTable(Struct, frozen=True, kw_only=True):
    """A table of memories whose rows follow timelines."""

    name: str
    #: The columns that only this table has.
    columns: tuple[str, ...]
    #: The column of the confidence.
    confidence: str
    #: Expression of the days until a row becomes stale.
    ttl_days: str
    #: Expressions of `topic` and `conflict_key` of a `StatedMemory`.
    topic: str
    conflict_key: str


_PREFERENCE_TOPIC = "concat_ws(char(31), 'preference', subject, category, name)"
FACT_TABLE = RowTable(
    name="facts",
    columns=tuple(
        "entity_id subject predicate object statement statement_kind evidence type layer confidence conflict_key "
        "ttl_days topic value stated_by".split()
    ),
    confidence="confidence",
    ttl_days="ttl_days",
    topic="topic",
    conflict_key="conflict_key",
)
PREFERENCE_TABLE = RowTable(
    name="preferences",
    columns=("subject", "category", "name", "value", "strength", "standing"),
    confidence="strength",
    ttl_days=str(TTL_DAYS["preference"]),
    topic=_PREFERENCE_TOPIC,
    conflict_key=_PREFERENCE_TOPIC,
)

# The replay of an event that was applied before changes nothing.
_INSERT = "INSERT OR IGNORE INTO {table} ({columns}) VALUES ({values})"
# A second time of the same value, with the words of the first one.
_COPY = "INSERT OR IGNORE INTO {table} ({columns}) SELECT {copied} FROM {table} WHERE id = :like"
# Independent evidence makes a fact more certain, and active again.
_STRENGTHEN = """
UPDATE {table} SET
    {confidence} = :confidence, source_type = :source_type, evidence_count = evidence_count + :evidence,
    source_events = :source_events, status = iif(:reactivates, 'active', status),
    superseded_by = iif(:reactivates, NULL, superseded_by),
    valid_until_us = iif(:reactivates AND status NOT IN ('active', 'stale'), NULL, valid_until_us),
    created_at_us = min(created_at_us, :occurred_at_us), updated_at_us = max(updated_at_us, :occurred_at_us),
    stale_at_us = max(stale_at_us, :occurred_at_us + {ttl_days} * :day_us)
WHERE key = :key
"""
_CONFIRM = "UPDATE {table} SET source_type = 'corrected', {confidence} = 1 WHERE key = :key"
_CLOSE = """
UPDATE {table} SET
    status = :status, superseded_by = :superseded_by, valid_until_us = :valid_until_us,
    updated_at_us = max(updated_at_us, :occurred_at_us)
WHERE key = :key AND status <> 'forgotten'
"""
#: The condition that a fact belongs to a group.
OF_GROUP = "id IN (SELECT fact_id FROM fact_statements WHERE group_key = ? AND kind IN ('state', 'past', 'correct'))"
# A fact that another one of its group superseded, which a later event undoes.
_REOPEN = """
UPDATE {table} SET status = 'active', superseded_by = NULL, valid_until_us = :valid_until_us
WHERE id = :id AND status = 'superseded'
AND superseded_by IN (SELECT fact_id FROM fact_statements WHERE group_key = :group)
"""
# A fact that an event replaced or ended which is forgotten now.
_REOPEN_ANY = """
UPDATE {table} SET status = 'active', superseded_by = NULL, valid_until_us = ?
WHERE id = ? AND status IN ('superseded', 'ended')
"""
# What the statements of a fact say after some of them moved to another fact.
_SET_EVIDENCE = """
UPDATE {table} SET
    {confidence} = :confidence, source_type = :source_type, evidence_count = :evidence_count,
    source_events = :source_events, created_at_us = :first_us, updated_at_us = :last_us,
    stale_at_us = :last_us + {ttl_days} * :day_us
WHERE id = :id
"""


class FactRow(Struct, frozen=True, kw_only=True):
    """A row of `facts` or `preferences`; of a preference, `confidence` is its strength."""

    key: int
    id: str
    confidence: float
    #: inferred, observed, stated or corrected.
    source_type: str
    #: active, stale, superseded, ended, invalidated or, of a fact, rejected.
    status: str
    superseded_by: str | None
    conflict_key: str | None
    #: End of validity; None: still valid.
    valid_until_us: int | None
    #: JSON list of event ids.
    source_events: str
    #: As in `StatedMemory`.
    topic: str
    value: str

    @property
    def group(self) -> str:
        """Return the key of the memories that it is compared with."""
        return group_of(self.topic, self.value, self.conflict_key)


_COLUMNS = FactRow.__struct_fields__
_DECAY = "UPDATE {table} SET {confidence} = ?, updated_at_us = ? WHERE id = ?"
_SELECT = (
    "SELECT key, id, {confidence} AS confidence, source_type, status, superseded_by, {conflict_key} AS conflict_key, "
    "valid_until_us, source_events, {topic} AS topic, value FROM {table}"
)
_TEMPLATES = (_INSERT, _COPY, _STRENGTHEN, _CONFIRM, _CLOSE, _REOPEN, _REOPEN_ANY, _SET_EVIDENCE, _DECAY, _SELECT)


@cache
def _statements_of(table: RowTable) -> Mapping[str, str]:
    """Return the statements of a table, by template."""
    columns = [*_COMMON_COLUMNS, *table.columns]
    return {
        template: template.format(
            table=table.name,
            confidence=table.confidence,
            ttl_days=table.ttl_days,
            topic=table.topic,
            conflict_key=table.conflict_key,
            columns=", ".join(columns),
            values=", ".join(f":{column}" for column in columns),
            copied=", ".join([*_COMMON_COLUMNS.values(), *table.columns]),
        )
        for template in _TEMPLATES
    }


#: Changes of one batch that are counted: more than 2,000 events make, and little memory in a replay.
_CHANGES_MAX = 20_000


class FactRows:
    """The rows of one table, `facts` or `preferences`."""

    def __init__(self, connection: apsw.Connection, table: RowTable) -> None:
        self._connection = connection
        self._statements = _statements_of(table)
        #: What happened to rows in this batch, for the metrics: asserted, superseded, ended or invalidated, and the id.
        self.changes: set[tuple[str, str]] = set()

    def record_change(self, change: str, id: str) -> None:
        """Count a change for the metrics; a replay, whose batch is the whole log, is not counted."""
        if len(self.changes) < _CHANGES_MAX:
            self.changes.add((change, id))

    def set_evidence(self, id: str, evidence: Sequence[tuple[float, str, list[str], int]]) -> None:
        """Compute the evidence of a fact from its statements: confidence, source type, sources and time of each."""
        sources: list[str] = []
        if not evidence:
            return
        doubt, count = 1.0, 0
        for confidence, _, named, _ in evidence:
            new = [source for source in named if source not in sources]
            if new or not named:
                doubt *= 1 - confidence
                count += 1
                sources += new
        bindings = {
            "id": id,
            "confidence": 1 - doubt,
            "source_type": max((entry[1] for entry in evidence), key=lambda name: SOURCE_RANKS[name]),
            "evidence_count": max(count, 1),
            "source_events": orjson.dumps(sources[:SOURCES_MAX]).decode(),
            "first_us": min(entry[3] for entry in evidence),
            "last_us": max(entry[3] for entry in evidence),
            "day_us": DAY_US,
        }
        self._execute(_SET_EVIDENCE, bindings)

    def copy(self, id: str, like: str | None, span_from_us: int | None, span_until_us: int | None) -> None:
        """Add a row for a second time of the value of the fact `like`."""
        bindings = {"id": id, "like": like, "valid_from_us": span_from_us, "valid_until_us": span_until_us}
        self._execute(_COPY, bindings)

    def reopen(self, id: str, until_us: int | None, group: str | None) -> None:
        """Let a fact hold again that another one replaced.

        Parameters:
            until_us: end of validity, or None.
            group: only when a fact of this group replaced it; None: also when an event outside the group or an
                ending did.
        """
        if group is None:
            self._execute(_REOPEN_ANY, (until_us, id))
        else:
            self._execute(_REOPEN, {"id": id, "valid_until_us": until_us, "group": group})

    def decay(self, event: RecordedEvent, fact_id: str, confidence: float) -> None:
        """Set the decayed confidence of a fact."""
        self._execute(_DECAY, (confidence, event.occurred_at_us, fact_id))

    def close(
        self, event: RecordedEvent, row: FactRow, status: str, superseded_by: str | None, until_us: int | None
    ) -> None:
        """Set status and end of validity of a row."""
        bindings = {
            "status": status,
            "superseded_by": superseded_by,
            "valid_until_us": until_us,
            "occurred_at_us": event.occurred_at_us,
            "key": row.key,
        }
        self._execute(_CLOSE, bindings)
        self.record_change(status, row.id)

    def strengthen(self, memory: StatedMemory, row: FactRow, *, reactivates: bool) -> None:
        """Raise the confidence of a fact that was stated again, unless the sources are the same."""
        if memory.source_type == "corrected":
            self._execute(_CONFIRM, {"key": row.key})
        old_sources: list[str] = orjson.loads(row.source_events)
        sources = [id for id in memory.sources if id not in old_sources]
        if not sources and not (reactivates and row.status not in ("active", "stale")):
            return
        bindings = {
            "confidence": combined_confidence(row.confidence, memory.confidence) if sources else row.confidence,
            "source_type": max(row.source_type, memory.source_type, key=lambda name: SOURCE_RANKS[name]),
            "source_events": orjson.dumps([*old_sources, *sources][:SOURCES_MAX]).decode(),
            "evidence": int(bool(sources)),
            "occurred_at_us": memory.said_us,
            "reactivates": reactivates,
            "day_us": DAY_US,
            "key": row.key,
        }
        self._execute(_STRENGTHEN, bindings)

    def insert(self, event: RecordedEvent, memory: StatedMemory, status: str) -> None:
        """Add a row for a memory; nothing when the table has a row with its id."""
        bindings = memory.columns | {
            "id": memory.id,
            "version": event.version,
            "source_type": memory.source_type,
            "status": status,
            "pinned": 0,
            "superseded_by": None,
            "valid_from_us": parse_rfc3339(memory.payload.get("valid_from")),
            "valid_until_us": parse_rfc3339(memory.payload.get("valid_until")),
            "evidence_count": 1,
            "source_events": orjson.dumps(memory.sources[:SOURCES_MAX]).decode(),
            "stale_at_us": memory.said_us + memory.ttl_days * DAY_US,
            "created_at_us": memory.said_us,
            "updated_at_us": memory.said_us,
        }
        self._execute(_INSERT, bindings)
        if status != "rejected":
            self.record_change("asserted", memory.id)

    def select(self, condition: str, *values: str) -> list[FactRow]:
        """Return the rows that meet a condition, in the order of the log."""
        query = f"{self._statements[_SELECT]} WHERE {condition} ORDER BY key"
        rows: list[tuple[Any, ...]] = self._connection.execute(query, values).fetchall()
        return [FactRow(**dict(zip(_COLUMNS, row, strict=True))) for row in rows]

    def _execute(self, template: str, bindings: dict[str, Any] | tuple[Any, ...]) -> None:
        """Run the statement of this table that a template gives."""
        self._connection.execute(self._statements[template], bindings)
