"""How facts merge. Identical ones strengthen each other; of two that conflict, one supersedes the other.

The better source wins: corrected, stated, observed, inferred; among equals the newer one. The loser keeps its row, with
its end. What a user corrected or took back stays so, whatever is stated or extracted later.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import apsw
import orjson

from recollect.events.envelope import DAY_US, RecordedEvent, parse_rfc3339
from recollect.projections.projector.predicates import canonical, has_one_value, normalised
from recollect.projections.schema.time_to_live import TTL_DAYS

#: Better sources have higher ranks (`003`).
SOURCE_RANKS = {"inferred": 0, "observed": 1, "stated": 2, "corrected": 3}
#: Events kept as the sources of one memory.
SOURCES_MAX = 50

_COLUMNS = "key, id, object, confidence, source_type, status, valid_from_us, created_at_us, source_events, value"
_INSERT = (
    "INSERT OR IGNORE INTO facts VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?)"
)
_STRENGTHEN = """
UPDATE facts SET
    confidence = ?, source_type = ?, evidence_count = evidence_count + 1, source_events = ?, status = 'active',
    updated_at_us = max(updated_at_us, ?), stale_at_us = max(stale_at_us, ? + ttl_days * ?)
WHERE key = ?
"""


class StatedFact(NamedTuple):
    """A fact on its way into the read model."""

    id: str
    entity_id: int
    fields: dict[str, Any]
    source_type: str
    #: Read out of events, not told as a fact: it never brings back what was taken back.
    extracted: bool

    @property
    def topic(self) -> str:
        """Return what it is about: subject and predicate."""
        return topic_of(self.fields)

    @property
    def value(self) -> str:
        """Return what it says about that."""
        return normalised(self.fields["object"])

    @property
    def conflict_key(self) -> str | None:
        """Return what only one active fact can have."""
        given = self.fields.get("conflict_key")
        single = has_one_value(canonical(self.fields["predicate"]))
        return normalised(given) if given else self.topic if single else None

    def sources(self, event: RecordedEvent) -> list[str]:
        """Return the events it was read from; the one that told it when it names none."""
        return list(self.fields.get("source_events") or [event.id])


class _Row(NamedTuple):
    """A fact that is there."""

    key: int
    id: str
    object: str
    confidence: float
    source_type: str
    status: str
    valid_from_us: int | None
    created_at_us: int
    source_events: str
    value: str


class Facts:
    """The table `facts`, changed in the order of the log."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def upsert(self, event: RecordedEvent, fact: StatedFact) -> None:
        """Add a fact, or strengthen the one that says the same."""
        right = self._correction(fact)
        if right is not None and right != fact.id:
            self._state_against(event, fact, right)
            return
        same = [
            row for row in self._rows("topic = ? AND value = ?", fact.topic, fact.value) if row.status != "rejected"
        ]
        alive = next((row for row in same if row.status in ("active", "stale")), None)
        if alive is not None:
            self._strengthen(event, fact, alive)
            return
        ended = parse_rfc3339(fact.fields.get("valid_until"))
        if ended is not None and ended <= event.occurred_at_us:
            # It was so once. That ends nothing, and nothing ends it.
            if not same:
                self._insert(event, fact, "active")
            return
        holder = self._holder(fact)
        if holder is None or self._wins(event, fact, holder):
            self._insert(event, fact, "active")
            if holder is not None:
                self.supersede(event, holder.id, fact.id, parse_rfc3339(fact.fields.get("valid_from")))
        elif not same:
            self._insert(event, fact, "superseded", superseded_by=holder.id)

    def reject(self, event: RecordedEvent, fact: StatedFact) -> None:
        """Note a fact that failed the quality gate; once."""
        if not self._rows("topic = ? AND value = ?", fact.topic, fact.value):
            self._insert(event, fact, "rejected")

    def correct(self, event: RecordedEvent, fact: StatedFact) -> None:
        """Set right what is known; nothing but a later correction or retraction undoes it."""
        wrong = self._rows("id = ?", fact.fields["corrects"]) if fact.fields.get("corrects") else []
        whole = not wrong or fact.conflict_key is not None
        if whole:
            wrong += self._rows("topic = ? AND status IN ('active', 'stale')", fact.topic)
            self._connection.execute("DELETE FROM corrections WHERE topic = ?", (fact.topic,))
        same = next((row for row in wrong if row.value == fact.value and row.status in ("active", "stale")), None)
        if same is None:
            self._insert(event, fact, "active")
        else:
            self._connection.execute(
                "UPDATE facts SET source_type = 'corrected', status = 'active', confidence = 1, updated_at_us = ?, "
                "stale_at_us = ? + ttl_days * ? WHERE key = ?",
                (event.occurred_at_us, event.occurred_at_us, DAY_US, same.key),
            )
        right = fact.id if same is None else same.id
        for row in wrong:
            if row.id != right:
                self.supersede(event, row.id, right, parse_rfc3339(fact.fields.get("valid_from")))
                if not whole:
                    self._set_right(fact.topic, row.value, right)
        if whole:
            self._set_right(fact.topic, "", right)

    def retract(self, event: RecordedEvent, fact_id: str) -> None:
        """Take a fact back; extraction does not bring it again."""
        row: Any = self._connection.execute("SELECT topic, value FROM facts WHERE id = ?", (fact_id,)).fetchone()
        if row is not None:
            self._connection.execute(
                "UPDATE facts SET status = 'invalidated', valid_until_us = coalesce(valid_until_us, ?), "
                "updated_at_us = ? WHERE id = ?",
                (event.occurred_at_us, event.occurred_at_us, fact_id),
            )
            self._connection.execute("DELETE FROM corrections WHERE topic = ? AND fact_id = ?", (row[0], fact_id))
            self._set_right(row[0], row[1], None)

    def supersede(self, event: RecordedEvent, fact_id: str, by: str, until_us: int | None) -> None:
        """End a fact that another one replaces."""
        self._connection.execute(
            "UPDATE facts SET status = 'superseded', superseded_by = ?, updated_at_us = ?, "
            "valid_until_us = coalesce(valid_until_us, ?) WHERE id = ? AND id <> ?",
            (by, event.occurred_at_us, until_us or event.occurred_at_us, fact_id, by),
        )

    def decay(self, event: RecordedEvent, fact_id: str, confidence: float) -> None:
        """Set what is left of a fact's confidence."""
        self._connection.execute(
            "UPDATE facts SET confidence = ?, updated_at_us = ? WHERE id = ?",
            (confidence, event.occurred_at_us, fact_id),
        )

    def _state_against(self, event: RecordedEvent, fact: StatedFact, right: str) -> None:
        """Take a fact that a correction or a retraction speaks against."""
        holder = next(iter(self._rows("id = ?", right)), None) if right else None
        if holder is not None and holder.value == fact.value:
            self._strengthen(event, fact, holder)
        elif not right and not fact.extracted:
            # The one who took it back says it again.
            self._connection.execute("DELETE FROM corrections WHERE topic = ? AND value = ?", (fact.topic, fact.value))
            self.upsert(event, fact)
        elif not self._rows("topic = ? AND value = ?", fact.topic, fact.value):
            self._insert(event, fact, "superseded" if right else "invalidated", superseded_by=right or None)

    def _correction(self, fact: StatedFact) -> str | None:
        """Return the fact that is right instead, an empty text when this one was taken back, None when it may be."""
        row: Any = self._connection.execute(
            "SELECT coalesce(fact_id, '') FROM corrections WHERE topic = ? AND value IN (?, '') ORDER BY value DESC",
            (fact.topic, fact.value),
        ).fetchone()
        return None if row is None else row[0]

    def _set_right(self, topic: str, value: str, fact_id: str | None) -> None:
        self._connection.execute("INSERT OR REPLACE INTO corrections VALUES (?, ?, ?)", (topic, value, fact_id))

    def _holder(self, fact: StatedFact) -> _Row | None:
        """Return the active fact that it conflicts with."""
        if fact.conflict_key is None:
            return None
        return next(iter(self._rows("conflict_key = ? AND status = 'active'", fact.conflict_key)), None)

    def _wins(self, event: RecordedEvent, fact: StatedFact, holder: _Row) -> bool:
        since_us = parse_rfc3339(fact.fields.get("valid_from")) or event.occurred_at_us
        held_us = holder.valid_from_us or holder.created_at_us
        return (SOURCE_RANKS[fact.source_type], since_us) >= (SOURCE_RANKS[holder.source_type], held_us)

    def _strengthen(self, event: RecordedEvent, fact: StatedFact, row: _Row) -> None:
        """Let a fact that was told again be surer: independent evidence, unless it is the same source."""
        known: list[str] = orjson.loads(row.source_events)
        sources = [id for id in fact.sources(event) if id not in known]
        if not sources:
            return
        told: float = fact.fields.get("confidence", 1.0)
        better = max(row.source_type, fact.source_type, key=lambda name: SOURCE_RANKS[name])
        self._connection.execute(
            _STRENGTHEN,
            (
                higher_source(row.confidence, told),
                better,
                orjson.dumps([*known, *sources][:SOURCES_MAX]).decode(),
                event.occurred_at_us,
                event.occurred_at_us,
                DAY_US,
                row.key,
            ),
        )

    def _insert(self, event: RecordedEvent, fact: StatedFact, status: str, *, superseded_by: str | None = None) -> None:
        payload, at_us = fact.fields, event.occurred_at_us
        kind: str = payload.get("type", "fact")
        ttl_days: int = payload.get("ttl_days") or TTL_DAYS[kind]
        ended = status in ("superseded", "invalidated")
        self._connection.execute(
            _INSERT,
            (
                fact.id,
                event.version,
                fact.entity_id,
                payload["subject"],
                payload["predicate"],
                payload["object"],
                kind,
                payload.get("layer", "conversational"),
                payload.get("confidence", 1.0),
                fact.source_type,
                status,
                superseded_by,
                fact.conflict_key,
                parse_rfc3339(payload.get("valid_from")),
                parse_rfc3339(payload.get("valid_until")) or (at_us if ended else None),
                orjson.dumps(fact.sources(event)[:SOURCES_MAX]).decode(),
                ttl_days,
                at_us + ttl_days * DAY_US,
                at_us,
                at_us,
                fact.topic,
                fact.value,
            ),
        )

    def _rows(self, condition: str, *values: str) -> list[_Row]:
        rows: list[tuple[Any, ...]] = self._connection.execute(
            f"SELECT {_COLUMNS} FROM facts WHERE {condition} ORDER BY key", values
        ).fetchall()
        return [_Row(*row) for row in rows]


def topic_of(payload: dict[str, Any]) -> str:
    """Return what a fact is about, as it is compared."""
    return f"{normalised(payload['subject'])}|{canonical(payload['predicate'])}"


def higher_source(confidence: float, told: float) -> float:
    """Return the confidence in what two independent sources say (noisy or)."""
    return 1 - (1 - confidence) * (1 - told)
