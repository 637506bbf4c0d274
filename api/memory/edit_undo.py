"""Edit undo: the events that undo an edit as a whole, and those that make it again.

An update of a message has two parts: the old message is forgotten, and a new one is appended. Some updates of other
memories have two as well. The undo of either part undoes both.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from itertools import chain, takewhile
from typing import Any

import uuid_utils

from recollect.api.memory.memory_edits import UPDATED
from recollect.events.backends.log import EventLog, each_page
from recollect.events.envelope import RecordedEvent
from recollect.events.errors import InvalidInput

#: Events of the log that are read at once, and events on each side of one that can belong to the same edit.
_EVENTS_READ, _NEAR_MAX = 1_000, 100
_MESSAGES = frozenset(("message.added", "action.recorded", "observation.recorded"))
_REPLACING = frozenset(("memory.forgotten", "memory.invalidated"))


def undo_events(
    log: EventLog, namespace: str, event: RecordedEvent, forgotten: Container[str], reason: str | None
) -> list[dict[str, Any]]:
    """Return the events that undo an edit, the last part of it first; of an undo, those that make the edit again.

    Parameters:
        event: any part of the edit.
        forgotten: the ids of the messages that are forgotten.

    Raises:
        InvalidInput: a later update replaced the message that an update added.
    """
    undo = _undo_of(log, namespace, event)
    if undo:
        return _linked([_toggled(part, reason) for part in reversed(undo)])
    replaced, stating = _update_of(log, namespace, event)
    if replaced is not None and stating is not None and stating.type in _MESSAGES:
        return _linked(_message_restored(log, namespace, replaced, stating, forgotten, reason))
    if event.type == "message.added":
        return _request_undone(log, namespace, event, reason)
    parts = [event] if replaced is None or stating is None else [stating, replaced]
    return _linked([_undone(part.id, reason) for part in parts])


def _undo_of(log: EventLog, namespace: str, event: RecordedEvent) -> list[RecordedEvent]:
    """Return the events of the undo that an event is a part of, in their order; none for other events."""
    if event.type not in ("edit.undone", "memory.forgotten"):
        return []
    before, after = _near(log, namespace, event)
    first = [*takewhile(lambda other: _group(other) == _group(event), reversed(before))]
    parts = [*reversed(first), event, *takewhile(lambda other: _group(other) == _group(event), after)]
    return parts if any(part.type == "edit.undone" for part in parts) else []


def _group(event: RecordedEvent) -> str | None:
    """Return the id that groups the events of one undo: that of the event which the others name as their cause."""
    return (event.causation_id or event.id) if event.type in ("edit.undone", "memory.forgotten") else None


def _toggled(part: RecordedEvent, reason: str | None) -> dict[str, Any]:
    """Return the event that takes back a part of an undo."""
    if part.type == "memory.forgotten":
        return _undone(part.id, reason)
    undone = part.data()
    return _undone(undone["event_id"], reason, again=not undone.get("again", False))


def _update_of(
    log: EventLog, namespace: str, event: RecordedEvent
) -> tuple[RecordedEvent | None, RecordedEvent | None]:
    """Return the two parts of the update that an event is a part of: what it replaced, and what states the new fields.

    Both are None when the event is not part of an update.
    """
    if event.type in _REPLACING:
        stating = _stating(event, _near(log, namespace, event)[1])
        return (event, stating) if stating is not None else (None, None)
    if event.causation_id is None:
        return None, None
    before, after = _near(log, namespace, event)
    for place in range(len(before) - 1, -1, -1):
        if before[place].type in _REPLACING:
            is_part = _stating(before[place], [*before[place + 1 :], event, *after]) == event
            return (before[place], event) if is_part else (None, None)
    return None, None


def _stating(replaced: RecordedEvent, after: list[RecordedEvent]) -> RecordedEvent | None:
    """Return the event of an update that states the new fields; None when `replaced` is a part of no update.

    A message is replaced by the next one, after the summaries that are written again; other memories at once.
    """
    payload = replaced.data()
    if payload.get("reason") != UPDATED:
        return None
    is_message = replaced.type == "memory.forgotten"
    following = (event for event in after if event.type in _MESSAGES) if is_message else iter(after)
    event = next(following, None)
    return event if event is not None and event.causation_id == payload["memory_id"] else None


def _message_restored(
    log: EventLog,
    namespace: str,
    replaced: RecordedEvent,
    stating: RecordedEvent,
    forgotten: Container[str],
    reason: str | None,
) -> list[dict[str, Any]]:
    """Return the events that forget the message of an update, and restore the message that it replaced."""
    restored = _undone(replaced.id, reason)
    if stating.id not in forgotten:
        payload = {"memory_id": stating.id, "reason": reason or "undone"}
        return [{"type": "memory.forgotten", "session_id": stating.session_id, "payload": payload}, restored]
    for event in _later(log, namespace, stating):
        payload = event.data() if event.type == "memory.forgotten" else {}
        if payload.get("memory_id") == stating.id and payload.get("reason") == UPDATED:
            raise InvalidInput(f"the message was updated again later; undo {event.id} first", field="event_id")
    return [restored]


def _request_undone(log: EventLog, namespace: str, request: RecordedEvent, reason: str | None) -> list[dict[str, Any]]:
    """Return the events that bring back what a message asked to forget.

    An entity is described again, without its description. The message stays hidden, unless it asked to forget itself:
    nothing in it was read as a statement, and shall not be now.
    """
    forgettings = [
        event
        for event in _later(log, namespace, request)
        if event.type == "memory.forgotten" and event.causation_id == request.id
    ]
    targets = {event.id: event.data() for event in forgettings}
    names = [it["memory_id"] for it in targets.values() if it.get("kind") == "entity"]
    edits = [id for id, it in targets.items() if it.get("kind") != "entity"]
    restored = [id for id in edits if targets[id]["memory_id"] != request.id] or edits
    described = [{"type": "entity.described", "payload": {"name": name}} for name in names]
    return [*_linked([_undone(id, reason) for id in restored]), *described]


def _near(log: EventLog, namespace: str, event: RecordedEvent) -> tuple[list[RecordedEvent], list[RecordedEvent]]:
    """Return the events shortly before and after an event."""
    first = max(0, event.version - 1 - _NEAR_MAX)
    events = log.read(namespace, after=first, limit=event.version - first + _NEAR_MAX)
    return (
        [other for other in events if other.version < event.version],
        [other for other in events if other.version > event.version],
    )


def _later(log: EventLog, namespace: str, event: RecordedEvent) -> Iterator[RecordedEvent]:
    """Return the events after an event."""
    return chain.from_iterable(each_page(log.read, namespace, after=event.version, limit=_EVENTS_READ))


def _undone(event_id: str, reason: str | None, *, again: bool = False) -> dict[str, Any]:
    """Return the event that undoes an edit, or with `again` an undo of it."""
    payload = {"event_id": event_id, "again": again or None, "reason": reason}
    return {"type": "edit.undone", "payload": payload}


def _linked(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the events of one undo, of which the first `edit.undone` is named by the others as their cause."""
    if len(events) < 2:
        return events
    id = str(uuid_utils.uuid7())
    first = next(event for event in events if event["type"] == "edit.undone")
    return [event | ({"id": id} if event is first else {"causation_id": id}) for event in events]
