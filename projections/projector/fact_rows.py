"""Fact rows: reads and writes the table `facts`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import apsw
import orjson

from recollect.events.envelope import DAY_US, RecordedEvent, parse_rfc3339
from recollect.projections.projector.stated_fact import StatedFact, combined_confidence, group_of
from recollect.projections.schema.time_to_live import TTL_DAYS

#: Ranks of the source types; a better source has a higher rank (`003`).
SOURCE_RANKS = {"inferred": 0, "observed": 1, "stated": 2, "corrected": 3}
#: Most events in the list of a memory's sources.
SOURCES_MAX = 50

# The replay of an event that was applied before changes nothing.
_INSERT = """
INSERT OR IGNORE INTO facts (
    id, version, entity_id, subject, predicate, object, type, layer, confidence, source_type, status, pinned,
    superseded_by, conflict_key, valid_from_us, valid_until_us, evidence_count, source_events, ttl_days, stale_at_us,
    created_at_us, updated_at_us, topic, value
) VALUES (
    :id, :version, :entity_id, :subject, :predicate, :object, :type, :layer, :confidence, :source_type, :status, 0,
    NULL, :conflict_key, :valid_from_us, :valid_until_us, 1, :source_events, :ttl_days, :stale_at_us,
    :occurred_at_us, :occurred_at_us, :topic, :value
)
"""
# Independent evidence makes a fact more certain, and active again.
_STRENGTHEN = """
UPDATE facts SET
    confidence = :confidence, source_type = :source_type, evidence_count = evidence_count + :evidence,
    source_events = :source_events, status = iif(:reactivates, 'active', status),
    superseded_by = iif(:reactivates, NULL, superseded_by),
    valid_until_us = iif(:reactivates AND status NOT IN ('active', 'stale'), NULL, valid_until_us),
    created_at_us = min(created_at_us, :occurred_at_us), updated_at_us = max(updated_at_us, :occurred_at_us),
    stale_at_us = max(stale_at_us, :occurred_at_us + ttl_days * :day_us)
WHERE key = :key
"""
_CONFIRM = "UPDATE facts SET source_type = 'corrected', confidence = 1 WHERE key = :key"
_CLOSE = """
UPDATE facts SET
    status = :status, superseded_by = :superseded_by, valid_until_us = :valid_until_us,
    updated_at_us = max(updated_at_us, :occurred_at_us)
WHERE key = :key AND status <> 'forgotten'
"""
#: The condition that a fact belongs to a group.
OF_GROUP = "id IN (SELECT fact_id FROM fact_statements WHERE group_key = ? AND kind IN ('state', 'past', 'correct'))"
# A fact that another one of its group superseded, which a later event undoes.
_REOPEN = """
UPDATE facts SET status = 'active', superseded_by = NULL, valid_until_us = :valid_until_us
WHERE id = :id AND status = 'superseded'
AND superseded_by IN (SELECT fact_id FROM fact_statements WHERE group_key = :group)
"""
# A fact that an event replaced or ended which is forgotten now.
_REOPEN_ANY = """
UPDATE facts SET status = 'active', superseded_by = NULL, valid_until_us = ?
WHERE id = ? AND status IN ('superseded', 'ended')
"""
# What the statements of a fact say after some of them moved to another fact.
_SET_EVIDENCE = """
UPDATE facts SET
    confidence = :confidence, source_type = :source_type, evidence_count = :evidence_count,
    source_events = :source_events, created_at_us = :first_us, updated_at_us = :last_us,
    stale_at_us = :last_us + ttl_days * :day_us
WHERE id = :id
"""
# A second time of the same value, with the words of the first one.
_COPY = """
INSERT OR IGNORE INTO facts (
    id, version, entity_id, subject, predicate, object, type, layer, confidence, source_type, status, pinned,
    superseded_by, conflict_key, valid_from_us, valid_until_us, evidence_count, source_events, ttl_days, stale_at_us,
    created_at_us, updated_at_us, topic, value
)
SELECT :id, version, entity_id, subject, predicate, object, type, layer, confidence, source_type, 'active', 0,
    NULL, conflict_key, :valid_from_us, :valid_until_us, 1, source_events, ttl_days, stale_at_us, created_at_us,
    updated_at_us, topic, value
FROM facts WHERE id = :like
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactRow:
    """Columns of a row of the table `facts`; every field has the name of its column."""

    key: int
    id: str
    confidence: float
    #: inferred, observed, stated or corrected.
    source_type: str
    #: active, stale, superseded, ended, invalidated or rejected.
    status: str
    superseded_by: str | None
    conflict_key: str | None
    #: End of validity; None: still valid.
    valid_until_us: int | None
    #: JSON list of event ids.
    source_events: str
    #: Subject and predicate, normalised.
    topic: str
    #: The object, normalised.
    value: str

    @property
    def group(self) -> str:
        """Return the key of the facts that it is compared with."""
        return group_of(self.topic, self.value, self.conflict_key)


_COLUMNS = tuple(field.name for field in fields(FactRow))


class FactRows:
    """The table `facts`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

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
        self._connection.execute(_SET_EVIDENCE, bindings)

    def copy(self, id: str, like: str | None, span_from_us: int | None, span_until_us: int | None) -> None:
        """Add a row for a second time of the value of the fact `like`."""
        bindings = {"id": id, "like": like, "valid_from_us": span_from_us, "valid_until_us": span_until_us}
        self._connection.execute(_COPY, bindings)

    def reopen(self, id: str, until_us: int | None, group: str | None) -> None:
        """Let a fact hold again that another one replaced.

        Parameters:
            until_us: end of validity, or None.
            group: only when a fact of this group replaced it; None: also when an event outside the group or an
                ending did.
        """
        if group is None:
            self._connection.execute(_REOPEN_ANY, (until_us, id))
        else:
            self._connection.execute(_REOPEN, {"id": id, "valid_until_us": until_us, "group": group})

    def decay(self, event: RecordedEvent, fact_id: str, confidence: float) -> None:
        """Set the decayed confidence of a fact."""
        self._connection.execute(
            "UPDATE facts SET confidence = ?, updated_at_us = ? WHERE id = ?",
            (confidence, event.occurred_at_us, fact_id),
        )

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
        self._connection.execute(_CLOSE, bindings)

    def strengthen(self, fact: StatedFact, row: FactRow, *, reactivates: bool) -> None:
        """Raise the confidence of a fact that was stated again, unless the sources are the same."""
        said_us = fact.said_us
        if fact.source_type == "corrected":
            self._connection.execute(_CONFIRM, {"key": row.key})
        old_sources: list[str] = orjson.loads(row.source_events)
        sources = [id for id in fact.sources if id not in old_sources]
        if not sources and not (reactivates and row.status not in ("active", "stale")):
            return
        confidence = fact.payload.get("confidence", 1.0)
        bindings = {
            "confidence": combined_confidence(row.confidence, confidence) if sources else row.confidence,
            "source_type": max(row.source_type, fact.source_type, key=lambda name: SOURCE_RANKS[name]),
            "source_events": orjson.dumps([*old_sources, *sources][:SOURCES_MAX]).decode(),
            "evidence": int(bool(sources)),
            "occurred_at_us": said_us,
            "reactivates": reactivates,
            "day_us": DAY_US,
            "key": row.key,
        }
        self._connection.execute(_STRENGTHEN, bindings)

    def insert(self, event: RecordedEvent, fact: StatedFact, status: str) -> None:
        """Add a row for a fact; nothing when the table has a row with its id."""
        payload, at_us = fact.payload, fact.said_us
        memory_type: str = payload.get("type", "fact")
        ttl_days: int = payload.get("ttl_days") or TTL_DAYS[memory_type]
        bindings = {
            "id": fact.id,
            "version": event.version,
            "entity_id": fact.entity_id,
            "subject": payload["subject"],
            "predicate": payload["predicate"],
            "object": payload["object"],
            "type": memory_type,
            "layer": payload.get("layer", "conversational"),
            "confidence": payload.get("confidence", 1.0),
            "source_type": fact.source_type,
            "status": status,
            "conflict_key": fact.conflict_key,
            "valid_from_us": parse_rfc3339(payload.get("valid_from")),
            "valid_until_us": parse_rfc3339(payload.get("valid_until")),
            "source_events": orjson.dumps(fact.sources[:SOURCES_MAX]).decode(),
            "ttl_days": ttl_days,
            "stale_at_us": at_us + ttl_days * DAY_US,
            "occurred_at_us": at_us,
            "topic": fact.topic,
            "value": fact.value,
        }
        self._connection.execute(_INSERT, bindings)

    def select(self, condition: str, *values: str) -> list[FactRow]:
        """Return the facts that meet a condition, in the order of the log."""
        rows: list[tuple[Any, ...]] = self._connection.execute(
            f"SELECT {', '.join(_COLUMNS)} FROM facts WHERE {condition} ORDER BY key", values
        ).fetchall()
        return [FactRow(**dict(zip(_COLUMNS, row, strict=True))) for row in rows]
