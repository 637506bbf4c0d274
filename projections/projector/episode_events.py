"""Episode events: converts messages, actions and observations to episodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import orjson

from recollect.events.envelope import RecordedEvent
from recollect.projections.text.importance import NEUTRAL_IMPORTANCE, importance_of
from recollect.projections.text.prompt_fence import strip_recalled


class Episode(NamedTuple):
    """The part of an episode that comes from the event's payload; the rest comes from its envelope and its session."""

    #: conversation, action or observation.
    type: str
    speaker: str
    text: str
    #: 1 to 10.
    importance: int
    #: Of a message: user, assistant, system or tool:<name>.
    role: str | None = None
    #: The captions of a message's attachments.
    caption: str | None = None
    #: Of an action.
    outcome: str | None = None


def episode_from_event(event: RecordedEvent, payload: dict[str, Any]) -> Episode:
    """Return the episode of a `message.added`, `action.recorded` or `observation.recorded` event."""
    return _CONVERTERS[event.type](event, payload)


def is_episode_event(event: RecordedEvent) -> bool:
    """Return whether `event` adds an episode that is not a summary."""
    return event.type in _CONVERTERS


def _message(event: RecordedEvent, payload: dict[str, Any]) -> Episode:
    """Return the episode of a message; its speaker is the name, the actor or the role."""
    role: str = payload["role"]
    speaker = payload.get("name") or event.actor or role
    caption = _caption(payload["attachments"]) if "attachments" in payload else None
    text = _text(payload)
    return Episode("conversation", speaker, text, importance_of(text, role), role=role, caption=caption)


def _caption(attachments: list[dict[str, Any]]) -> str | None:
    """Return the captions of attachments as one text; None when no attachment has one."""
    return " ".join(attachment["caption"] for attachment in attachments if attachment.get("caption")) or None


def _text(payload: dict[str, Any]) -> str:
    """Return the text of a message, its turns as lines, or its data as JSON; fenced text is removed."""
    if "text" in payload:
        return strip_recalled(payload["text"])
    if "turns" in payload:
        return "\n".join(f"{turn.get('name') or turn['role']}: {turn['text']}" for turn in payload["turns"])
    return orjson.dumps(payload.get("data")).decode()


def _action(event: RecordedEvent, payload: dict[str, Any]) -> Episode:
    """Return the episode of an action; its speaker is the actor, the tool or `agent`."""
    return Episode(
        type="action",
        speaker=event.actor or payload.get("tool") or "agent",
        text=payload["text"],
        importance=payload.get("importance", NEUTRAL_IMPORTANCE),
        outcome=payload.get("outcome"),
    )


def _observation(event: RecordedEvent, payload: dict[str, Any]) -> Episode:
    """Return the episode of an observation; its speaker is the actor or `observer`."""
    return Episode(
        type="observation",
        speaker=event.actor or "observer",
        text=payload["text"],
        importance=payload.get("importance", NEUTRAL_IMPORTANCE),
    )


_CONVERTERS: dict[str, Callable[[RecordedEvent, dict[str, Any]], Episode]] = {
    "message.added": _message,
    "action.recorded": _action,
    "observation.recorded": _observation,
}
