"""What each event does to a read model. No clock, no chance, no network: the same events give the same rows.

A handler adds to a `Changes`; nothing is written before the whole batch is folded. Types without a handler leave the
model as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from recollect.events.envelope import RecordedEvent
from recollect.projections.changes import Changes, Episode
from recollect.projections.fence import without_recalled

Handler = Callable[[Changes, RecordedEvent, dict[str, Any]], None]

#: What an event's importance is when nobody says (`003`, 1 to 10).
_IMPORTANCE = 5


def fold(changes: Changes, event: RecordedEvent) -> None:
    """Add to `changes` what `event` means."""
    handler = _HANDLERS.get(event.type)
    if handler is not None:
        handler(changes, event, event.data())


def _session_started(changes: Changes, event: RecordedEvent, payload: dict[str, Any]) -> None:
    session = changes.session(event)
    session.channel = payload.get("channel", "api")
    session.user_id = payload.get("user_id")
    session.started_at_us = min(session.started_at_us, event.occurred_at_us)
    metadata = payload.get("metadata")
    session.metadata = orjson.dumps(metadata).decode() if metadata else None


def _session_ended(changes: Changes, event: RecordedEvent, payload: dict[str, Any]) -> None:
    session = changes.session(event)
    session.ended_at_us = event.occurred_at_us
    session.summary = payload.get("summary")


def _message_added(changes: Changes, event: RecordedEvent, payload: dict[str, Any]) -> None:
    role: str = payload["role"]
    name: str | None = payload.get("name")
    speaker = name or event.actor or role
    caption = _caption(payload["attachments"]) if "attachments" in payload else None
    changes.add_episode(
        event, Episode("conversation", speaker, _message_text(payload), _IMPORTANCE, role=role, caption=caption)
    )
    if name is not None and role in ("user", "assistant"):
        changes.spoke(event, name)
    for turn in payload.get("turns", ()):
        if turn.get("name") and turn["role"] in ("user", "assistant"):
            changes.spoke(event, turn["name"])


def _caption(attachments: list[dict[str, Any]]) -> str | None:
    return " ".join(attachment["caption"] for attachment in attachments if attachment.get("caption")) or None


def _message_text(payload: dict[str, Any]) -> str:
    if "text" in payload:
        return without_recalled(payload["text"])
    if "turns" in payload:
        return "\n".join(f"{turn.get('name') or turn['role']}: {turn['text']}" for turn in payload["turns"])
    return orjson.dumps(payload.get("data")).decode()


def _action_recorded(changes: Changes, event: RecordedEvent, payload: dict[str, Any]) -> None:
    changes.add_episode(
        event,
        Episode(
            type="action",
            speaker=event.actor or payload.get("tool") or "agent",
            text=payload["text"],
            importance=payload.get("importance", _IMPORTANCE),
            outcome=payload.get("outcome"),
        ),
    )


def _observation_recorded(changes: Changes, event: RecordedEvent, payload: dict[str, Any]) -> None:
    changes.add_episode(
        event,
        Episode(
            type="observation",
            speaker=event.actor or "observer",
            text=payload["text"],
            importance=payload.get("importance", _IMPORTANCE),
        ),
    )


def _entity_described(changes: Changes, event: RecordedEvent, payload: dict[str, Any]) -> None:
    changes.describe(
        event,
        payload["name"],
        kind=payload.get("type", "other"),
        description=payload.get("description"),
        aliases=payload.get("aliases", []),
    )


def _facts_extracted(changes: Changes, _: RecordedEvent, payload: dict[str, Any]) -> None:
    changes.looked("extraction", payload.get("through"))


def _observations_recorded(changes: Changes, _: RecordedEvent, payload: dict[str, Any]) -> None:
    changes.looked("observation", payload.get("through"))


_HANDLERS: dict[str, Handler] = {
    "session.started": _session_started,
    "session.ended": _session_ended,
    "message.added": _message_added,
    "action.recorded": _action_recorded,
    "observation.recorded": _observation_recorded,
    "entity.described": _entity_described,
    "facts.extracted": _facts_extracted,
    "observations.recorded": _observations_recorded,
}
