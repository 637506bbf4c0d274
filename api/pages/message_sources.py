"""Message sources: the messages that a memory was derived from."""

from __future__ import annotations

from typing import Any

from recollect.api.pages.list_pages import Page, find_memory
from recollect.events.backends.log import EventLog
from recollect.events.envelope import rfc3339
from recollect.events.errors import NotFound
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.read_models.summary_sources import read_turns

#: Messages of one answer: a fact with more evidence than that needs no further one.
_MESSAGES_MAX = 100
_FIELDS = ("id", "version", "session_id", "occurred_at", "role", "speaker", "text", "caption", "tier", "status")


def message_sources(snapshot: Snapshot, log: EventLog, namespace: str, memory_id: str) -> Page:
    """Return the messages that a memory was derived from, in their order, those that have expired included.

    Forgotten messages and other events, such as corrections, are left out.

    Raises:
        NotFound: there is no such memory.
    """
    memory = find_memory(snapshot, memory_id)
    if memory is None:
        raise NotFound(f"there is no memory {memory_id!r}; lists and retrievals have the ids", field="memory_id")
    ids: list[str] = memory.get("source_events") or []
    messages = [_message(snapshot, log, namespace, id) for id in ids[:_MESSAGES_MAX]]
    items = [message for message in messages if message is not None]
    return {"items": sorted(items, key=lambda item: item["version"]), "next": None}


def _message(snapshot: Snapshot, log: EventLog, namespace: str, id: str) -> dict[str, Any] | None:
    """Return the message with an id, from the log when compaction took it out of the read model; None: no message."""
    memory = find_memory(snapshot, id)
    if memory is not None:
        return {name: memory[name] for name in _FIELDS} if memory["kind"] == "episode" else None
    if not snapshot.memory_ids.exists("memory", id):
        return None
    event = log.find(namespace, id)
    if event is None or event.version > snapshot.version:
        return None
    for turn in read_turns(log, namespace, [event.version], snapshot.days):
        return {
            "id": turn.id,
            "version": turn.version,
            "session_id": turn.session_id,
            "occurred_at": rfc3339(turn.occurred_at_us, turn.utc_offset or 0),
            "role": turn.role,
            "speaker": turn.speaker,
            "text": turn.text,
            "caption": turn.caption,
            "tier": "raw",
            "status": "expired",
        }
    return None
