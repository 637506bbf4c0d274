"""Event handlers: apply each event to the batch of a read model.

A handler uses no clock, no random numbers and no network, so the same events give the same rows. It adds to a
`WriteBatch`, which writes the rows when all events of the batch are applied. Event types without a handler change
nothing.
"""

from __future__ import annotations

from typing import Any

import orjson

from recollect.events.envelope import RecordedEvent
from recollect.events.local_time import zone_offset
from recollect.projections.projector.episode_events import episode_from_event
from recollect.projections.projector.knowledge_handlers import KNOWLEDGE_HANDLERS, Handler
from recollect.projections.projector.memory_edits import remaining_payload
from recollect.projections.projector.write_batch import WriteBatch

#: Roles of the participants of a conversation.
_PARTICIPANT_ROLES = ("user", "assistant")


def apply_event(batch: WriteBatch, event: RecordedEvent) -> None:
    """Apply `event` to `batch`."""
    type = event.type
    handler = _HANDLERS.get(type)
    if handler is None:
        return
    if handler is not _episode_added:
        batch.complete_episodes()
    payload: dict[str, Any] | None = event.data()
    if batch.forgotten:
        payload = remaining_payload(event, payload, batch.forgotten)
    if payload is not None:
        handler(batch, event, payload)
        batch.restrictions.add_statement(event, payload)
    if type in KNOWLEDGE_HANDLERS:
        batch.knowledge_version = event.version


def _session_started(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """Set the channel, user, start and metadata of the session."""
    session = batch.session(event)
    session.channel = payload.get("channel", "api")
    session.user_id = payload.get("user_id")
    session.started_at_us = min(session.started_at_us, event.occurred_at_us)
    metadata: dict[str, Any] | None = payload.get("metadata")
    session.metadata = orjson.dumps(metadata).decode() if metadata else None
    timezone = metadata.get("timezone") if metadata else None
    session.timezone = timezone if zone_offset(timezone, 0) is not None else None
    if event.utc_offset is not None:
        session.utc_offset = event.utc_offset


def _namespace_configured(batch: WriteBatch, _: RecordedEvent, payload: dict[str, Any]) -> None:
    """Set what the event has of the settings of the namespace."""
    for name, value in payload.items():
        batch.configure(name, value)


def _session_ended(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """Set the end and the summary of the session."""
    session = batch.session(event)
    session.ended_at_us = event.occurred_at_us
    session.summary = payload.get("summary")


def _episode_added(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """Add an episode, and count the messages of named participants."""
    episode = episode_from_event(event, payload)
    speakers: list[str] = []
    name = payload.get("name")
    if name is not None and episode.role in _PARTICIPANT_ROLES:
        speakers.append(name)
    if "turns" in payload:
        speakers += [
            turn["name"] for turn in payload["turns"] if turn.get("name") and turn["role"] in _PARTICIPANT_ROLES
        ]
    batch.add_episode(event, episode, payload, speakers)


def _compressed(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """Add a compressed episode with its sources."""
    batch.add_summary(event, payload, "compressed")
    if event.type == "episodes.compressed" and event.session_id is not None:
        # A session that ended without a summary gets that of the compressed episode.
        session = batch.session(event)
        session.summary = session.summary or payload["text"]
    batch.episode_updates.add_summary_sources(event, payload["source_events"], replaces=False)


def _distilled(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """Add a distilled episode, which replaces the summaries among its sources."""
    batch.add_summary(event, payload, "distilled")
    batch.episode_updates.add_summary_sources(event, payload["source_events"], replaces=True)


def _expired(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """Remove expired episodes."""
    batch.episode_updates.expire(event, payload["episode_ids"])


def _turns_summarised(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """Set the short forms of long turns."""
    for summary in payload["summaries"]:
        batch.episode_updates.set_short_form(event, summary["event_id"], summary["text"])


_HANDLERS: dict[str, Handler] = {
    "session.started": _session_started,
    "session.ended": _session_ended,
    "namespace.configured": _namespace_configured,
    "message.added": _episode_added,
    "action.recorded": _episode_added,
    "observation.recorded": _episode_added,
    "episodes.compressed": _compressed,
    "conversation.compacted": _compressed,
    "episode.distilled": _distilled,
    "episodes.expired": _expired,
    "turns.summarised": _turns_summarised,
    **KNOWLEDGE_HANDLERS,
}
#: The types of events that become an episode, which is embedded.
EPISODE_TYPES = frozenset(
    name for name, handler in _HANDLERS.items() if handler in (_episode_added, _compressed, _distilled)
)
