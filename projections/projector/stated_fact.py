"""Stated fact: a fact or a preference of an event, with the keys by which it is compared with others."""

from __future__ import annotations

from typing import Any

import orjson
from msgspec import Struct
from msgspec.structs import replace

from recollect.events.envelope import RecordedEvent, parse_rfc3339
from recollect.projections.projector.predicates import canonical, counted_noun, has_one_value, kind_of, normalised
from recollect.projections.schema.time_to_live import TTL_DAYS

#: Before the voice of a topic: no normalised text has it.
_VOICE = "\x1e"


class StatedMemory(Struct, frozen=True, kw_only=True):
    """A fact or a preference of an event, before it is merged into its table."""

    id: str
    #: Its fields in the event's payload.
    payload: dict[str, Any]
    #: The columns that only its table has, by name.
    columns: dict[str, Any]
    #: inferred, observed, stated or corrected.
    source_type: str
    #: Whether it was extracted from other events; what is extracted does not undo a retraction.
    extracted: bool
    #: What it is about, normalised: subject and canonical predicate of a fact, and the speaker of what is said about
    #: others. Memories with one topic are compared.
    topic: str
    #: The object of a fact, normalised; the value of a preference.
    value: str
    #: The key that only one active memory can have; None: it conflicts with no other.
    conflict_key: str | None
    #: The confidence of a fact, the strength of a preference: 0 to 1.
    confidence: float
    ttl_days: int
    #: When it was said.
    said_us: int
    #: The ids of its source events; the event itself when it names none.
    sources: list[str]

    @property
    def group(self) -> str:
        """Return the key of the memories that it is compared with: those that conflict with it, or the same one."""
        return group_of(self.topic, self.value, self.conflict_key)


def stated_fact(
    event: RecordedEvent, id: str, payload: dict[str, Any], *, entity_id: int, extracted: bool
) -> StatedMemory:
    """Return the fact of a payload of `event`, whose subject is an entity."""
    predicate, value = canonical(payload["predicate"]), normalised(payload["object"])
    topic = fact_topic(payload["subject"], predicate, voice_of(payload["subject"], payload.get("stated_by")))
    conflict_key = _conflict_key(payload.get("conflict_key"), topic, predicate, value)
    type: str = payload.get("type", "fact")
    confidence: float = payload.get("confidence", 1.0)
    ttl_days: int = payload.get("ttl_days") or TTL_DAYS[type]
    return StatedMemory(
        id=id,
        payload=payload,
        columns={
            "entity_id": entity_id,
            "subject": payload["subject"],
            "predicate": payload["predicate"],
            "object": payload["object"],
            "statement": payload.get("statement"),
            "statement_kind": payload.get("statement_kind") or kind_of(predicate, type),
            "evidence": orjson.dumps(payload.get("evidence") or []).decode(),
            "stated_by": payload.get("stated_by"),
            "type": type,
            "layer": payload.get("layer", "conversational"),
            "confidence": confidence,
            "conflict_key": conflict_key,
            "ttl_days": ttl_days,
            "topic": topic,
            "value": value,
        },
        source_type=payload.get("source_type", "stated"),
        extracted=extracted,
        topic=topic,
        value=value,
        conflict_key=conflict_key,
        confidence=confidence,
        ttl_days=ttl_days,
        said_us=said_us(event, payload),
        sources=list(payload.get("source_events") or [event.id]),
    )


def stated_preference(event: RecordedEvent, id: str, payload: dict[str, Any], *, extracted: bool) -> StatedMemory:
    """Return the preference of a payload of `event`; of a category and name, a subject has one value at a time."""
    subject, category = normalised(payload.get("subject") or ""), payload.get("category", "other")
    topic = preference_topic(subject, category, payload["key"])
    strength: float = payload.get("strength", 0.5)
    return StatedMemory(
        id=id,
        payload=payload,
        columns={
            "subject": subject,
            "category": category,
            "name": payload["key"],
            "value": payload["value"],
            "strength": strength,
            "standing": int(payload.get("standing", False)),
        },
        source_type=payload.get("source_type", "stated"),
        extracted=extracted,
        topic=topic,
        value=payload["value"],
        conflict_key=topic,
        confidence=strength,
        ttl_days=TTL_DAYS["preference"],
        said_us=said_us(event, payload),
        sources=list(payload.get("source_events") or [event.id]),
    )


def voice_of(subject: str, stated_by: str | None) -> str:
    """Return the speaker of a statement about another person, normalised.

    It is empty for what people say of themselves, and for what a producer states.
    Statements of two voices are both valid: neither ends, corrects or replaces the other.
    """
    speaker, about = normalised(stated_by or ""), normalised(subject)
    return "" if about == speaker else speaker


def fact_topic(subject: str, predicate: str, voice: str) -> str:
    """Return the topic of a fact; the control character keeps the voice apart from the predicate."""
    topic = f"{normalised(subject)}|{predicate}"
    return f"{topic}{_VOICE}{voice}" if voice else topic


def voice_of_topic(topic: str) -> str:
    """Return the voice of a topic; empty for a topic without one."""
    return topic.partition(_VOICE)[2]


def in_voice(memory: StatedMemory, voice: str) -> StatedMemory:
    """Return a fact without a voice as a statement of `voice`."""
    topic = f"{memory.topic}{_VOICE}{voice}"
    key = memory.conflict_key
    if key is not None and key.startswith(memory.topic):
        key = topic + key.removeprefix(memory.topic)
    return replace(
        memory, topic=topic, conflict_key=key, columns=memory.columns | {"topic": topic, "conflict_key": key}
    )


def preference_topic(subject: str, category: str, name: str) -> str:
    """Return what a preference is about; the control characters keep it apart from the topics of facts."""
    return "\x1f".join(("preference", subject, category, name))


def _conflict_key(stated: str | None, topic: str, predicate: str, value: str) -> str | None:
    """Return the conflict key of a fact.

    Parameters:
        stated: the key in the payload, or None.
        predicate: canonical.
    """
    if stated:
        voice = voice_of_topic(topic)
        return f"{normalised(stated)}{_VOICE}{voice}" if voice else normalised(stated)
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
