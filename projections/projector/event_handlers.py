"""What each event does to a read model. No clock, no chance, no network: the same events give the same rows.

A handler adds to a `Changes`; nothing is written before the whole batch is folded. Types without a handler leave the
model as it is.
"""

from __future__ import annotations

from typing import Any

import orjson

from recollect.events.envelope import RecordedEvent
from recollect.projections.projector.episode_events import episode_from_event
from recollect.projections.projector.knowledge_handlers import KNOWLEDGE_HANDLERS, Handler
from recollect.projections.projector.write_batch import WriteBatch

#: Roles of those who take part in a conversation.
_PEOPLE = ("user", "assistant")


def apply_event(batch: WriteBatch, event: RecordedEvent) -> None:
    """Add to `changes` what `event` means."""
    handler = _HANDLERS.get(event.type)
    if handler is not None:
        handler(batch, event, event.data())
    if event.type in KNOWLEDGE_HANDLERS:
        batch.learned = event.version


def _session_started(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    session = batch.session(event)
    session.channel = payload.get("channel", "api")
    session.user_id = payload.get("user_id")
    session.started_at_us = min(session.started_at_us, event.occurred_at_us)
    metadata = payload.get("metadata")
    session.metadata = orjson.dumps(metadata).decode() if metadata else None


def _session_ended(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    session = batch.session(event)
    session.ended_at_us = event.occurred_at_us
    session.summary = payload.get("summary")


def _told(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    episode = episode_from_event(event, payload)
    batch.add_episode(event, episode)
    if episode.role in _PEOPLE and payload.get("name") is not None:
        batch.count_message_by(event, payload["name"])
    for turn in payload.get("turns", ()):
        if turn.get("name") and turn["role"] in _PEOPLE:
            batch.count_message_by(event, turn["name"])


def _compressed(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    batch.add_summary(event, payload, "compressed")
    if event.type == "episodes.compressed" and event.session_id is not None:
        # Nobody summed the session up when it ended.
        session = batch.session(event)
        session.summary = session.summary or payload["text"]
    batch.tiers.add_summary_sources(event, payload["source_events"], replaces=False)


def _distilled(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    batch.add_summary(event, payload, "distilled")
    batch.tiers.add_summary_sources(event, payload["source_events"], replaces=True)


def _expired(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    batch.tiers.expire(event, payload["episode_ids"])


def _turns_summarised(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    for one in payload["summaries"]:
        batch.tiers.set_short_form(event, one["event_id"], one["text"])


def _day_digested(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    batch.tiers.add_daily_digest(event, payload["day"], payload["text"])


_HANDLERS: dict[str, Handler] = {
    "session.started": _session_started,
    "session.ended": _session_ended,
    "message.added": _told,
    "action.recorded": _told,
    "observation.recorded": _told,
    "episodes.compressed": _compressed,
    "conversation.compacted": _compressed,
    "episode.distilled": _distilled,
    "episodes.expired": _expired,
    "turns.summarised": _turns_summarised,
    "day.digested": _day_digested,
    **KNOWLEDGE_HANDLERS,
}
