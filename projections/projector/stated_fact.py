"""Stated fact: a fact of an event, with the keys by which it is compared with others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from recollect.events.envelope import RecordedEvent, parse_rfc3339
from recollect.projections.projector.predicates import canonical, counted_noun, has_one_value, normalised


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
    #: Subject and canonical predicate, normalised: facts with one topic are compared.
    topic: str
    #: The object, normalised.
    value: str
    #: The key that only one active fact can have; None: the fact conflicts with no other.
    conflict_key: str | None
    #: When it was said.
    said_us: int
    #: The ids of its source events; the event itself when it names none.
    sources: list[str]

    @classmethod
    def from_payload(
        cls, event: RecordedEvent, id: str, payload: dict[str, Any], *, entity_id: int, extracted: bool
    ) -> StatedFact:
        """Return the fact of a payload of `event`."""
        predicate, value = canonical(payload["predicate"]), normalised(payload["object"])
        topic = f"{normalised(payload['subject'])}|{predicate}"
        return cls(
            id=id,
            entity_id=entity_id,
            payload=payload,
            source_type=payload.get("source_type", "stated"),
            extracted=extracted,
            topic=topic,
            value=value,
            conflict_key=_conflict_key(payload.get("conflict_key"), topic, predicate, value),
            said_us=said_us(event, payload),
            sources=list(payload.get("source_events") or [event.id]),
        )

    @property
    def group(self) -> str:
        """Return the key of the facts that it is compared with: those that conflict with it, or the same fact."""
        return group_of(self.topic, self.value, self.conflict_key)


def _conflict_key(stated: str | None, topic: str, predicate: str, value: str) -> str | None:
    """Return the conflict key of a fact.

    Parameters:
        stated: the key in the payload, or None.
        predicate: canonical.
    """
    if stated:
        return normalised(stated)
    if has_one_value(predicate):
        return topic
    counted = counted_noun(value)
    return f"{topic}|{counted}" if counted else None


def said_us(event: RecordedEvent, payload: dict[str, Any]) -> int:
    """Return when an item of an event was said: the time of its message, not of the batch that it was read in."""
    return parse_rfc3339(payload.get("stated_at")) or event.occurred_at_us


def group_of(topic: str, value: str, conflict_key: str | None) -> str:
    """Return the key of the facts that are compared: all of a conflict key, or else those of one value."""
    return f"{topic}\x1f{value}" if conflict_key is None else conflict_key


def combined_confidence(first: float, second: float) -> float:
    """Return the confidence in a memory that two independent sources state (noisy or)."""
    return 1 - (1 - first) * (1 - second)
