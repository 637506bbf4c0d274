"""Episode events: converts messages, actions and observations to episodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

import orjson

from recollect.events.envelope import RecordedEvent
from recollect.events.intake.quarantine import is_imported
from recollect.events.intake.recalled_context import strip_recalled
from recollect.events.late_pattern import late_pattern
from recollect.events.local_time import zone_offset
from recollect.projections.text.importance import NEUTRAL_IMPORTANCE, importance_of

#: Values of JSON data that are read, and characters of the text that they give: enough for an error with its cause.
_VALUES_MAX = 256
_DETAILS_CHARS_MAX = 1_000
#: Bytes of an action's details in the read model; larger ones, such as a log file, stay in the event log.
_DETAILS_BYTES_MAX = 16 << 10
#: The place between two words of a name in camel case: `customerName`, `HTTPStatus`.
_CAMEL_CASE = late_pattern(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class Episode(NamedTuple):
    """The part of an episode that comes from the event's payload; the rest comes from its envelope and its session."""

    #: conversation, action or observation.
    type: str
    speaker: str
    text: str
    #: 1 to 10, as the producer states it; None: of a message, it follows from the text.
    stated_importance: int | None
    #: Of a message: user, assistant, system or tool:<name>.
    role: str | None = None
    #: The captions of a message's attachments; the details of an action as text.
    caption: str | None = None
    #: Of an action.
    outcome: str | None = None
    #: Labels of the producer.
    metadata: dict[str, Any] | None = None
    tags: tuple[str, ...] = ()
    #: The details of an action as JSON; None: no details, or over `_DETAILS_BYTES_MAX`.
    details: str | None = None
    #: Words that find the episode and are not displayed: its tags, and the words of JSON data.
    terms: str = ""

    @property
    def importance(self) -> int:
        """Return the importance, 1 to 10."""
        stated = self.stated_importance
        return importance_of(self.text, self.role or "") if stated is None else stated


def episode_from_event(event: RecordedEvent, payload: dict[str, Any]) -> Episode:
    """Return the episode of a `message.added`, `action.recorded` or `observation.recorded` event."""
    return _CONVERTERS[event.type](event, payload)


def stated_offset(event: RecordedEvent, episode: Episode) -> int | None:
    """Return the minutes east of UTC that an episode states: its own offset, else that of the zone it names."""
    offset = event.utc_offset
    if offset is None and episode.metadata:
        offset = zone_offset(episode.metadata.get("timezone"), event.occurred_at_us)
    return offset


def is_episode_event(event: RecordedEvent) -> bool:
    """Return whether `event` adds an episode that is not a summary."""
    return event.type in _CONVERTERS


def _message(event: RecordedEvent, payload: dict[str, Any]) -> Episode:
    """Return the episode of a message; its speaker is the name, the actor or the role."""
    role: str = payload["role"]
    speaker = payload.get("name") or event.actor or role
    caption = _caption(payload["attachments"]) if "attachments" in payload else None
    text = _text(payload)
    terms = _data_words(payload["data"]) if "data" in payload else ""
    # By position, which takes half the time: a replay does this once per message.
    return Episode("conversation", speaker, text, None, role, caption, None, payload.get("metadata"), (), None, terms)


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


def _data_words(data: Any) -> str:
    """Return the names and values of JSON data, with the words of a name in camel case one by one."""
    return " ".join(
        word
        for name, value in _leaves(data)
        for word in (name, value, *_split_words(name), *_split_words(value))
        if word
    )[:_DETAILS_CHARS_MAX]


def _details(details: Any) -> str | None:
    """Return the details of an action as text, such as `exit code: 1, log: out of memory`; None without details."""
    lines = [f"{' '.join(_split_words(name)) or name}: {value}" if name else value for name, value in _leaves(details)]
    return ", ".join(line for line in lines if line)[:_DETAILS_CHARS_MAX] or None


def _stored_details(details: Any) -> str | None:
    """Return the details of an action as JSON; None without details, and for large ones."""
    if details is None:
        return None
    encoded = orjson.dumps(details)
    return encoded.decode() if len(encoded) <= _DETAILS_BYTES_MAX else None


def _split_words(text: str) -> list[str]:
    """Return the words of a name such as `orderId` or `order_id`; empty when it is one word, or a sentence."""
    words = [] if " " in text else _CAMEL_CASE.sub(" ", text.replace("_", " ")).split()
    return words if len(words) > 1 else []


def _leaves(data: Any) -> Iterator[tuple[str, str]]:
    """Yield the first `_VALUES_MAX` values of JSON data as text, each with its innermost name, in order."""
    pending: list[tuple[str, Any]] = [("", data)]
    for _ in range(_VALUES_MAX):
        if not pending:
            return
        name, value = pending.pop()
        if isinstance(value, dict):
            members = cast("dict[str, Any]", value)
            pending += [(key, member) for key, member in reversed(list(members.items())[:_VALUES_MAX])]
        elif isinstance(value, list):
            elements = cast("list[Any]", value)
            pending += [(name, element) for element in reversed(elements[:_VALUES_MAX])]
        elif value is not None:
            yield name, value if isinstance(value, str) else orjson.dumps(value).decode()


def _action(event: RecordedEvent, payload: dict[str, Any]) -> Episode:
    """Return the episode of an action; its speaker is the actor, the tool or `agent`."""
    return Episode(
        type="action",
        speaker=event.actor or payload.get("tool") or "agent",
        text=payload["text"],
        stated_importance=payload.get("importance", NEUTRAL_IMPORTANCE),
        caption=_details(payload.get("details")),
        outcome=payload.get("outcome"),
        metadata=payload.get("metadata"),
        tags=tuple(payload.get("tags", ())),
        details=_stored_details(payload.get("details")),
        terms=" ".join(payload.get("tags", ())),
    )


def _observation(event: RecordedEvent, payload: dict[str, Any]) -> Episode:
    """Return the episode of an observation; its speaker is the actor, `note` of an import, or `observer`."""
    return Episode(
        type="observation",
        speaker=event.actor or ("note" if is_imported(event.id) else "observer"),
        text=payload["text"],
        stated_importance=payload.get("importance", NEUTRAL_IMPORTANCE),
        metadata=payload.get("metadata"),
        tags=tuple(payload.get("tags", ())),
        terms=" ".join(payload.get("tags", ())),
    )


_CONVERTERS: dict[str, Callable[[RecordedEvent, dict[str, Any]], Episode]] = {
    "message.added": _message,
    "action.recorded": _action,
    "observation.recorded": _observation,
}
