"""Memory edits: the events that update, pin, end or forget one memory, by its kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict

import orjson

from recollect.api.result_types import EpisodeMemory
from recollect.events.backends.log import EventLog
from recollect.events.catalogue import EVENT_CLASSES, payload_fields
from recollect.events.envelope import EventDraft, RecordedEvent, rfc3339
from recollect.events.errors import InvalidEvent, InvalidInput, NotFound
from recollect.events.memory_kinds import KIND_BY_NAME, MEMORY_KINDS
from recollect.events.validation import SERVER_FIELDS, producer_drafts
from recollect.projections.projector.episode_events import episode_from_event, is_episode_event
from recollect.projections.text.tokens import estimate_tokens

#: The fields of each kind that an update can change. `text` is the field that follows it.
UPDATABLE: Mapping[str, tuple[str, ...]] = {kind.name: kind.editable for kind in MEMORY_KINDS}


class MemoryChanges(TypedDict, total=False):
    """The fields that an update can change, by name; `UPDATABLE` says which kinds have each."""

    object: str
    valid_from: datetime | str
    value: str
    strength: float
    standing: bool
    trigger: str
    steps: Sequence[str]
    context: str
    confidence: float
    source: str
    type: str
    target: str
    properties: Mapping[str, Any]
    title: str
    uri: str
    metadata: Mapping[str, Any]
    not_for: Sequence[str]
    relations: Sequence[Mapping[str, Any]]
    description: str
    aliases: Sequence[str]
    importance: int


#: The field of a payload that is the text of a memory.
_TEXT_FIELDS = {"fact": "object", "preference": "value", "entity": "description"}
#: The reason of what forgets or invalidates the old form of a memory in an update.
UPDATED = "updated"
#: Kinds with a pin, and kinds that can end.
_PINNABLE = frozenset(kind.name for kind in MEMORY_KINDS if kind.can_be_pinned)
_ENDING = frozenset(kind.name for kind in MEMORY_KINDS if kind.has_status)


def changes_of(kind: str, text: str | None, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changed fields of the payload of a memory, by name.

    Raises:
        InvalidInput: nothing changes, or memories of this kind have no such field.
    """
    updatable = UPDATABLE[kind]
    given = ({} if text is None else {"text": text}) | dict(changes)
    if not updatable:
        raise InvalidInput(f"a memory of the kind {kind} cannot be updated; forget it", field="id")
    if not given:
        raise InvalidInput(f"give at least one of {', '.join(updatable)}", field="text")
    for name in given:
        if name not in updatable:
            raise InvalidInput(f"a memory of the kind {kind} has {', '.join(updatable)} to update", field=name)
    if text == "":
        raise InvalidInput("give a text, or forget the memory", field="text")
    own_text = _TEXT_FIELDS.get(kind, "text")
    if "text" in given and own_text != "text":
        if own_text in given:
            raise InvalidInput(f"give text or {own_text}, which are the same field of a {kind}", field="text")
        given[own_text] = given.pop("text")
    return given


def update_events(memory: Mapping[str, Any], changes: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the events that change a memory which is not an episode; the last one states its new fields."""
    events = _UPDATES.get(memory["kind"], _restated)(memory, changes)
    # What memories of these kinds cause is an edit, which can be undone.
    return [event | {"causation_id": memory["id"]} for event in events] if memory["kind"] in _ENDING else events


def _fact(memory: Mapping[str, Any], changes: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the correction of a fact."""
    own = {"subject": memory["subject"], "predicate": memory["predicate"], "object": memory["object"]}
    return [{"type": "fact.corrected", "payload": own | {"corrects": memory["id"]} | changes}]


def _preference(memory: Mapping[str, Any], changes: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the preference with other fields. One with the same value would strengthen the old one, so that ends."""
    own = {name: memory[name] for name in ("category", "value", "strength", "standing")}
    payload = own | {"key": memory["name"], "source_type": "corrected"} | changes
    if memory.get("subject"):
        payload["subject"] = memory["subject"]
    replaced = [] if payload["value"] != memory["value"] else [_invalidated(memory)]
    return [*replaced, {"type": "preference.stated", "payload": payload}]


def _restated(memory: Mapping[str, Any], changes: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a memory of a kind with columns with other fields, in place of the old one."""
    kind = KIND_BY_NAME[memory["kind"]]
    fields = payload_fields(EVENT_CLASSES[kind.event_type or ""])
    names = (name.removesuffix("_us") for name in kind.column_names())
    payload = {name: memory[name] for name in names if name in fields} | changes
    field = kind.superseding_field
    replaced = [] if field and payload[field] != memory[field] else [_invalidated(memory)]
    return [*replaced, {"type": kind.event_type, "payload": payload}]


def _relationship(memory: Mapping[str, Any], changes: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the relationship with other ends or another type in place of the old one, or with more properties."""
    own = {name: memory[name] for name in ("source", "type", "target", "confidence")}
    properties: dict[str, Any] = {**(memory["properties"] or {}), **changes.get("properties", {})}
    payload: dict[str, Any] = own | changes | ({"properties": properties} if properties else {})
    moved = any(payload[name] != memory[name] for name in ("source", "type", "target"))
    return [*([_invalidated(memory)] if moved else []), {"type": "relationship.stated", "payload": payload}]


def _document(memory: Mapping[str, Any], changes: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the document with other fields, under the same id."""
    own = {name: memory[name] for name in ("title", "text", "uri", "metadata", "relations")}
    return [{"type": "document.added", "payload": own | {"document_id": memory["id"]} | changes}]


def _entity(memory: Mapping[str, Any], changes: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the description of an entity with other fields. Aliases are added."""
    return [{"type": "entity.described", "payload": {"name": memory["name"], "type": memory["type"]} | changes}]


#: The events of an update of a kind whose form is not `_restated`.
_UPDATES = {
    "fact": _fact,
    "preference": _preference,
    "relationship": _relationship,
    "document": _document,
    "entity": _entity,
}


def _invalidated(memory: Mapping[str, Any]) -> dict[str, Any]:
    """Return the event that invalidates a memory that is updated."""
    return {"type": "memory.invalidated", "payload": {"memory_id": memory["id"], "reason": UPDATED}}


def new_message(log: EventLog, namespace: str, memory: Mapping[str, Any], id: str, changes: dict[str, Any]) -> Any:
    """Return the message, action or observation with other text or metadata, as a new event `id` caused by the old one.

    Raises:
        NotFound: the log does not have the event. InvalidInput: it is a summary, which a job writes.
    """
    event = log.find(namespace, memory["id"])
    if event is None:
        raise NotFound(f"the log has no event {memory['id']!r}", field="id")
    if memory["tier"] != "raw":
        raise InvalidInput("a summary cannot be updated; update the messages that `sources` returns", field="id")
    payload = {name: value for name, value in event.data().items() if name not in SERVER_FIELDS} | dict(changes)
    if "text" in changes:
        # A message has exactly one of text, turns and data.
        payload = {name: value for name, value in payload.items() if name not in ("turns", "data")}
    return {
        "id": id,
        "type": event.type,
        "session_id": event.session_id,
        "occurred_at": rfc3339(event.occurred_at_us, event.utc_offset or 0),
        "actor": event.actor,
        "causation_id": event.id,
        "correlation_id": event.correlation_id,
        "payload": payload,
    }


def forget_event(memory: Mapping[str, Any], reason: str | None) -> dict[str, Any]:
    """Return the event that forgets a memory; of an entity, its name."""
    kind = memory["kind"]
    own_kind = {"kind": kind} if kind in ("document", "entity") else {}
    return {
        "type": "memory.forgotten",
        "session_id": memory["session_id"] if kind == "episode" else None,
        "payload": {"memory_id": memory["name"] if kind == "entity" else memory["id"], "reason": reason, **own_kind},
    }


def forget_events(memory: Mapping[str, Any], reason: str | None) -> list[dict[str, Any]]:
    """Return the events that forget a memory; of an entity, one for each of its names."""
    others: list[str] = memory["aliases"] if memory["kind"] == "entity" else []
    return [forget_event(memory, reason), *(forget_event({**memory, "name": name}, reason) for name in others)]


def separation_event(memory: Mapping[str, Any], alias: str, reason: str | None) -> dict[str, Any]:
    """Return the event that undoes the merge of an entity with another name.

    Raises:
        InvalidInput: the memory is not an entity, or `alias` is not one of its other names.
    """
    if memory["kind"] != "entity":
        raise InvalidInput(f"a memory of the kind {memory['kind']} has no other names", field="id")
    names: dict[str, str] = {name.casefold(): name for name in memory["aliases"]}
    if alias.casefold() not in names:
        given = ", ".join(names.values()) or "no other names"
        raise InvalidInput(f"{alias[:80]!r} is no other name of {memory['name']!r}, which has {given}", field="alias")
    return {
        "type": "entity.separated",
        "payload": {"name": memory["name"], "alias": names[alias.casefold()], "reason": reason},
    }


def pin_event(memory: Mapping[str, Any], event_type: str, reason: str | None) -> dict[str, Any]:
    """Return the event that pins or unpins a memory; raise `InvalidInput` for a kind without a pin."""
    if memory["kind"] not in _PINNABLE:
        raise InvalidInput(f"a memory of the kind {memory['kind']} does not age, so it has no pin", field="id")
    return {"type": event_type, "payload": {"memory_id": memory["id"], "reason": reason}}


def end_event(memory: Mapping[str, Any], ended_at: datetime | str | None, reason: str | None) -> dict[str, Any]:
    """Return the event that ends a memory; raise `InvalidInput` for a kind that has no end."""
    if memory["kind"] not in _ENDING:
        raise InvalidInput(f"a memory of the kind {memory['kind']} has no end; forget it, or update it", field="id")
    payload = {"memory_id": memory["id"], "reason": reason, "ended_at": ended_at}
    return {"type": "memory.ended", "payload": payload}


def edit_drafts(events: list[dict[str, Any]]) -> list[EventDraft]:
    """Return the events as drafts; raise `InvalidInput` with the field that the caller gave."""
    try:
        return producer_drafts([_without_none(event) for event in events])
    except InvalidEvent as error:
        raise InvalidInput(error.reason, field=error.field.partition(".payload.")[2] or error.field) from None


def _without_none(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event without the fields that are None. Its payload must be JSON."""
    payload = {name: value for name, value in event["payload"].items() if value is not None}
    return {name: value for name, value in event.items() if value is not None} | {"payload": payload}


def expired_memory(event: RecordedEvent) -> EpisodeMemory | None:
    """Return a message that the log alone still has, in the form of the list `episodes`; None for other events."""
    if not is_episode_event(event):
        return None
    episode = episode_from_event(event, event.data())
    return {
        "kind": "episode",
        "version": event.version,
        "id": event.id,
        "session_id": event.session_id,
        "occurred_at": rfc3339(event.occurred_at_us, event.utc_offset or 0),
        "type": episode.type,
        "role": episode.role,
        "speaker": episode.speaker,
        "actor": event.actor,
        "text": episode.text,
        "caption": episode.caption,
        "importance": episode.importance,
        "outcome": episode.outcome,
        "tags": list(episode.tags) or None,
        "details": None if episode.details is None else orjson.loads(episode.details),
        "metadata": episode.metadata,
        "parent_id": event.causation_id,
        "tier": "raw",
        "status": "expired",
        "pinned": False,
        "expires_at": None,
        "short": None,
        "token_count": estimate_tokens(episode.text),
    }
