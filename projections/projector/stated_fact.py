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
        if explicit:
            return normalised(explicit)
        if has_one_value(canonical(self.payload["predicate"])):
            return self.topic
        counted = counted_noun(self.value)
        return f"{self.topic}|{counted}" if counted else None

    @property
    def group(self) -> str:
        """Return the key of the facts that it is compared with: those that conflict with it, or the same fact."""
        return group_of(self.topic, self.value, self.conflict_key)

    def said_us(self, event: RecordedEvent) -> int:
        """Return when it was said: the time of the message, not of the batch that it was read in."""
        return parse_rfc3339(self.payload.get("stated_at")) or event.occurred_at_us

    def sources(self, event: RecordedEvent) -> list[str]:
        """Return the ids of its source events; `event` itself when it names none."""
        return list(self.payload.get("source_events") or [event.id])


def group_of(topic: str, value: str, conflict_key: str | None) -> str:
    """Return the key of the facts that are compared: all of a conflict key, or else those of one value."""
    return f"{topic}\x1f{value}" if conflict_key is None else conflict_key


def topic_of(payload: dict[str, Any]) -> str:
    """Return subject and canonical predicate of a fact, normalised: facts with one topic are compared."""
    return f"{normalised(payload['subject'])}|{canonical(payload['predicate'])}"


def combined_confidence(first: float, second: float) -> float:
    """Return the confidence in a memory that two independent sources state (noisy or)."""
    return 1 - (1 - first) * (1 - second)
