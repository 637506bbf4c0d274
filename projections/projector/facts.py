"""Facts: merges each new fact with the facts of the read model.

A repeated fact strengthens the existing one. Of two conflicting facts, one supersedes the other: the better source wins
(corrected, stated, observed, inferred), then the newer fact. The superseded fact keeps its row, with an end of
validity. Facts that are extracted later do not override a correction or retraction by a user.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import apsw
import orjson

from recollect.events.envelope import DAY_US, RecordedEvent, parse_rfc3339
from recollect.projections.projector.predicates import canonical, has_one_value, normalised
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
    :superseded_by, :conflict_key, :valid_from_us, :valid_until_us, 1, :source_events, :ttl_days, :stale_at_us,
    :occurred_at_us, :occurred_at_us, :topic, :value
)
"""
# Independent evidence makes a fact more certain, and active again.
_STRENGTHEN = """
UPDATE facts SET
    confidence = :confidence, source_type = :source_type, evidence_count = evidence_count + 1,
    source_events = :source_events, status = 'active', updated_at_us = max(updated_at_us, :occurred_at_us),
    stale_at_us = max(stale_at_us, :occurred_at_us + ttl_days * :day_us)
WHERE key = :key
"""
# An existing fact that a user confirms by a correction.
_CONFIRM = """
UPDATE facts SET
    source_type = 'corrected', status = 'active', confidence = 1, updated_at_us = :occurred_at_us,
    stale_at_us = :occurred_at_us + ttl_days * :day_us
WHERE key = :key
"""
_INVALIDATE = """
UPDATE facts SET
    status = 'invalidated', valid_until_us = coalesce(valid_until_us, :occurred_at_us), updated_at_us = :occurred_at_us
WHERE id = :id
"""
_SUPERSEDE = """
UPDATE facts SET
    status = 'superseded', superseded_by = :superseded_by, updated_at_us = :occurred_at_us,
    valid_until_us = coalesce(valid_until_us, :valid_until_us)
WHERE id = :id AND id <> :superseded_by
"""
# The correction of this value, or else the one of the whole topic, whose value is empty.
_CORRECTION = """
SELECT coalesce(fact_id, '') FROM corrections WHERE topic = ? AND value IN (?, '') ORDER BY value DESC
"""
_SET_CORRECTION = "INSERT OR REPLACE INTO corrections (topic, value, fact_id) VALUES (?, ?, ?)"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedFact:
    """A fact of an event, before it is merged into the table."""

    id: str
    #: The entity of its subject.
    entity_id: int
    #: Its fields in the event's payload.
    payload: dict[str, Any]
    #: inferred, observed, stated or corrected.
    source_type: str
    #: Whether it was extracted from other events; an extracted fact does not undo a retraction.
    extracted: bool

    @property
    def topic(self) -> str:
        """Return subject and predicate, normalised."""
        return topic_of(self.payload)

    @property
    def value(self) -> str:
        """Return the object, normalised."""
        return normalised(self.payload["object"])

    @property
    def conflict_key(self) -> str | None:
        """Return the key that only one active fact can have; None: the fact conflicts with no other."""
        explicit = self.payload.get("conflict_key")
        single = has_one_value(canonical(self.payload["predicate"]))
        return normalised(explicit) if explicit else self.topic if single else None

    def sources(self, event: RecordedEvent) -> list[str]:
        """Return the ids of its source events; `event` itself when it names none."""
        return list(self.payload.get("source_events") or [event.id])


@dataclass(frozen=True, slots=True, kw_only=True)
class _FactRow:
    """Columns of a row of the table `facts`; every field has the name of its column."""

    key: int
    id: str
    confidence: float
    #: inferred, observed, stated or corrected.
    source_type: str
    #: active, stale, superseded, invalidated or rejected.
    status: str
    #: Start of validity; None: not stated.
    valid_from_us: int | None
    created_at_us: int
    #: JSON list of event ids.
    source_events: str
    #: The object, normalised.
    value: str


_COLUMNS = tuple(field.name for field in fields(_FactRow))


class Facts:
    """The tables `facts` and `corrections`, updated in the order of the log."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def upsert(self, event: RecordedEvent, fact: StatedFact) -> None:
        """Add a fact, or strengthen the same one; a conflict decides whether it is active or superseded."""
        correct_id = self._correction(fact)
        if correct_id is not None and correct_id != fact.id:
            self._upsert_corrected(event, fact, correct_id)
            return
        rows = self._rows("topic = ? AND value = ?", fact.topic, fact.value)
        same = [row for row in rows if row.status != "rejected"]
        alive = next((row for row in same if row.status in ("active", "stale")), None)
        if alive is not None:
            self._strengthen(event, fact, alive)
            return
        ended = parse_rfc3339(fact.payload.get("valid_until"))
        if ended is not None and ended <= event.occurred_at_us:
            # A fact of the past supersedes no fact and is superseded by none.
            if not same:
                self._insert(event, fact, "active")
            return
        holder = self._holder(fact)
        if holder is None or self._wins(event, fact, holder):
            self._insert(event, fact, "active")
            if holder is not None:
                self.supersede(event, holder.id, fact.id, parse_rfc3339(fact.payload.get("valid_from")))
        elif not same:
            self._insert(event, fact, "superseded", superseded_by=holder.id)

    def reject(self, event: RecordedEvent, fact: StatedFact) -> None:
        """Add a fact that failed the quality gate, unless the table has it already."""
        if not self._rows("topic = ? AND value = ?", fact.topic, fact.value):
            self._insert(event, fact, "rejected")

    def correct(self, event: RecordedEvent, fact: StatedFact) -> None:
        """Add a correction, which supersedes the wrong facts; only a later correction or retraction overrides it."""
        wrong = self._rows("id = ?", fact.payload["corrects"]) if fact.payload.get("corrects") else []
        whole_topic = not wrong or fact.conflict_key is not None
        if whole_topic:
            wrong += self._rows("topic = ? AND status IN ('active', 'stale')", fact.topic)
            self._connection.execute("DELETE FROM corrections WHERE topic = ?", (fact.topic,))
        same = next((row for row in wrong if row.value == fact.value and row.status in ("active", "stale")), None)
        if same is None:
            self._insert(event, fact, "active")
        else:
            bindings = {"occurred_at_us": event.occurred_at_us, "day_us": DAY_US, "key": same.key}
            self._connection.execute(_CONFIRM, bindings)
        correct_id = fact.id if same is None else same.id
        for row in wrong:
            if row.id != correct_id:
                self.supersede(event, row.id, correct_id, parse_rfc3339(fact.payload.get("valid_from")))
                if not whole_topic:
                    self._set_correction(fact.topic, row.value, correct_id)
        if whole_topic:
            self._set_correction(fact.topic, "", correct_id)

    def retract(self, event: RecordedEvent, fact_id: str) -> None:
        """Invalidate a fact; extraction does not add it again."""
        row: Any = self._connection.execute("SELECT topic, value FROM facts WHERE id = ?", (fact_id,)).fetchone()
        if row is not None:
            topic, value = row
            self._connection.execute(_INVALIDATE, {"occurred_at_us": event.occurred_at_us, "id": fact_id})
            self._connection.execute("DELETE FROM corrections WHERE topic = ? AND fact_id = ?", (topic, fact_id))
            self._set_correction(topic, value, None)

    def supersede(self, event: RecordedEvent, fact_id: str, by: str, until_us: int | None) -> None:
        """End a fact that the fact `by` replaces.

        Parameters:
            until_us: end of validity unless the fact has one; None: the time of the event.
        """
        bindings = {
            "superseded_by": by,
            "occurred_at_us": event.occurred_at_us,
            "valid_until_us": until_us or event.occurred_at_us,
            "id": fact_id,
        }
        self._connection.execute(_SUPERSEDE, bindings)

    def decay(self, event: RecordedEvent, fact_id: str, confidence: float) -> None:
        """Set the decayed confidence of a fact."""
        self._connection.execute(
            "UPDATE facts SET confidence = ?, updated_at_us = ? WHERE id = ?",
            (confidence, event.occurred_at_us, fact_id),
        )

    def _upsert_corrected(self, event: RecordedEvent, fact: StatedFact, correct_id: str) -> None:
        """Add a fact that contradicts a correction or, when `correct_id` is empty, a retraction."""
        holder = next(iter(self._rows("id = ?", correct_id)), None) if correct_id else None
        if holder is not None and holder.value == fact.value:
            self._strengthen(event, fact, holder)
        elif not correct_id and not fact.extracted:
            # The user states the retracted fact again, which undoes the retraction.
            self._connection.execute("DELETE FROM corrections WHERE topic = ? AND value = ?", (fact.topic, fact.value))
            self.upsert(event, fact)
        elif not self._rows("topic = ? AND value = ?", fact.topic, fact.value):
            status = "superseded" if correct_id else "invalidated"
            self._insert(event, fact, status, superseded_by=correct_id or None)

    def _correction(self, fact: StatedFact) -> str | None:
        """Return the id of the fact that corrects this one; empty: this one was retracted; None: no correction."""
        row: Any = self._connection.execute(_CORRECTION, (fact.topic, fact.value)).fetchone()
        return None if row is None else row[0]

    def _set_correction(self, topic: str, value: str, fact_id: str | None) -> None:
        """Set the correct fact for a value; an empty `value` is the whole topic, no fact is a retraction."""
        self._connection.execute(_SET_CORRECTION, (topic, value, fact_id))

    def _holder(self, fact: StatedFact) -> _FactRow | None:
        """Return the active fact that `fact` conflicts with, or None."""
        if fact.conflict_key is None:
            return None
        return next(iter(self._rows("conflict_key = ? AND status = 'active'", fact.conflict_key)), None)

    def _wins(self, event: RecordedEvent, fact: StatedFact, holder: _FactRow) -> bool:
        """Return whether a new fact supersedes the active one: better source first, then later start of validity."""
        since_us = parse_rfc3339(fact.payload.get("valid_from")) or event.occurred_at_us
        holder_since_us = holder.valid_from_us or holder.created_at_us
        return (SOURCE_RANKS[fact.source_type], since_us) >= (SOURCE_RANKS[holder.source_type], holder_since_us)

    def _strengthen(self, event: RecordedEvent, fact: StatedFact, row: _FactRow) -> None:
        """Raise the confidence of a fact that was stated again, unless the sources are the same."""
        old_sources: list[str] = orjson.loads(row.source_events)
        sources = [id for id in fact.sources(event) if id not in old_sources]
        if not sources:
            return
        bindings = {
            "confidence": combined_confidence(row.confidence, fact.payload.get("confidence", 1.0)),
            "source_type": max(row.source_type, fact.source_type, key=lambda name: SOURCE_RANKS[name]),
            "source_events": orjson.dumps([*old_sources, *sources][:SOURCES_MAX]).decode(),
            "occurred_at_us": event.occurred_at_us,
            "day_us": DAY_US,
            "key": row.key,
        }
        self._connection.execute(_STRENGTHEN, bindings)

    def _insert(self, event: RecordedEvent, fact: StatedFact, status: str, *, superseded_by: str | None = None) -> None:
        """Add a row for a fact; nothing when the table has a row with its id."""
        payload, at_us = fact.payload, event.occurred_at_us
        memory_type: str = payload.get("type", "fact")
        ttl_days: int = payload.get("ttl_days") or TTL_DAYS[memory_type]
        ended = status in ("superseded", "invalidated")
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
            "superseded_by": superseded_by,
            "conflict_key": fact.conflict_key,
            "valid_from_us": parse_rfc3339(payload.get("valid_from")),
            "valid_until_us": parse_rfc3339(payload.get("valid_until")) or (at_us if ended else None),
            "source_events": orjson.dumps(fact.sources(event)[:SOURCES_MAX]).decode(),
            "ttl_days": ttl_days,
            "stale_at_us": at_us + ttl_days * DAY_US,
            "occurred_at_us": at_us,
            "topic": fact.topic,
            "value": fact.value,
        }
        self._connection.execute(_INSERT, bindings)

    def _rows(self, condition: str, *values: str) -> list[_FactRow]:
        """Return the facts that meet a condition, in the order of the log."""
        rows: list[tuple[Any, ...]] = self._connection.execute(
            f"SELECT {', '.join(_COLUMNS)} FROM facts WHERE {condition} ORDER BY key", values
        ).fetchall()
        return [_FactRow(**dict(zip(_COLUMNS, row, strict=True))) for row in rows]


def topic_of(payload: dict[str, Any]) -> str:
    """Return subject and canonical predicate of a fact, normalised: facts with one topic are compared."""
    return f"{normalised(payload['subject'])}|{canonical(payload['predicate'])}"


def combined_confidence(first: float, second: float) -> float:
    """Return the confidence in a memory that two independent sources state (noisy or)."""
    return 1 - (1 - first) * (1 - second)
