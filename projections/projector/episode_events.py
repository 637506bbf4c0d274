"""What an event tells as an episode: who said or did what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import orjson

from recollect.events.envelope import RecordedEvent
from recollect.projections.text.prompt_fence import strip_recalled

#: What an event's importance is when nobody says (`003`, 1 to 10).
_IMPORTANCE = 5


class Episode(NamedTuple):
    """What an event tells; the rest of an episode comes from the event's envelope and its session."""

    #: conversation, action or observation.
    type: str
    speaker: str
    text: str
    importance: int
    role: str | None = None
    caption: str | None = None
    outcome: str | None = None


def episode_from_event(event: RecordedEvent, payload: dict[str, Any]) -> Episode:
    """Return what `event` tells, one of `message.added`, `action.recorded` and `observation.recorded`."""
    return _TELLING[event.type](event, payload)


def is_episode_event(event: RecordedEvent) -> bool:
    """Tell whether `event` is an episode."""
    return event.type in _TELLING


def _message(event: RecordedEvent, payload: dict[str, Any]) -> Episode:
    role: str = payload["role"]
    speaker = payload.get("name") or event.actor or role
    caption = _caption(payload["attachments"]) if "attachments" in payload else None
    return Episode("conversation", speaker, _text(payload), _IMPORTANCE, role=role, caption=caption)


def _caption(attachments: list[dict[str, Any]]) -> str | None:
    return " ".join(attachment["caption"] for attachment in attachments if attachment.get("caption")) or None


def _text(payload: dict[str, Any]) -> str:
    if "text" in payload:
        return strip_recalled(payload["text"])
    if "turns" in payload:
        return "\n".join(f"{turn.get('name') or turn['role']}: {turn['text']}" for turn in payload["turns"])
    return orjson.dumps(payload.get("data")).decode()


def _action(event: RecordedEvent, payload: dict[str, Any]) -> Episode:
    return Episode(
        type="action",
        speaker=event.actor or payload.get("tool") or "agent",
        text=payload["text"],
        importance=payload.get("importance", _IMPORTANCE),
        outcome=payload.get("outcome"),
    )


def _observation(event: RecordedEvent, payload: dict[str, Any]) -> Episode:
    return Episode(
        type="observation",
        speaker=event.actor or "observer",
        text=payload["text"],
        importance=payload.get("importance", _IMPORTANCE),
    )


_TELLING: dict[str, Callable[[RecordedEvent, dict[str, Any]], Episode]] = {
    "message.added": _message,
    "action.recorded": _action,
    "observation.recorded": _observation,
}
