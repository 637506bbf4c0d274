"""Validation: converts the input of callers to `EventDraft`, or refuses it with the name of the invalid field.

`producer_draft`, `producer_drafts` and `drafts_from_json` are for producers: HTTP, the command `append` and the Python
API. `draft` and `drafts` accept every type of the catalogue: they are for jobs, and for imports of an export, which
holds derived events too.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, from_json

from recollect.events.catalogue import (
    DERIVED_EVENTS,
    ERASURE_TYPES,
    EVENT_CLASSES,
    Envelope,
    MessageAdded,
    SessionStarted,
    type_of,
)
from recollect.events.envelope import ENCODING_JSON, EventDraft, microseconds, now_us
from recollect.events.errors import InvalidEvent, InvalidInput, TooLarge
from recollect.events.field_problems import first_problem
from recollect.events.limits import BATCH_EVENTS_MAX, CLOCK_AHEAD_SECONDS_MAX, EVENT_BYTES_MAX, REQUEST_BYTES_MAX
from recollect.events.local_time import with_offset
from recollect.events.plain_messages import plain_message

_DERIVED_TYPES = frozenset(type_of(event_class) for event_class in DERIVED_EVENTS)
#: Fields of payloads that the server sets.
SERVER_FIELDS = ("labels",)
_SERVER_FIELDS_JSON = tuple(f'"{name}"'.encode() for name in SERVER_FIELDS)
#: The types of the event classes. `type_of` takes 0.4 µs, and each event needs it twice.
_TYPES = {event_class: name for name, event_class in EVENT_CLASSES.items()}


def draft(event: Mapping[str, Any] | Envelope, *, field: str = "event") -> EventDraft:
    """Return `event`, validated, as a draft for the log.

    Parameters:
        event: a mapping with the fields of an event class of the catalogue, or an instance of such a class.
        field: path of the event in the caller's input, for the error.

    Raises:
        InvalidEvent: a field is missing, unknown or wrong. TooLarge: the payload is over `EVENT_BYTES_MAX`.
    """
    valid = event if isinstance(event, Envelope) else _validated(event, field)
    payload = with_offset(_encoded(cast(Any, valid).payload, field), valid.occurred_at)
    if len(payload) > EVENT_BYTES_MAX:
        raise TooLarge(
            f"{len(payload):,} bytes, more than the {EVENT_BYTES_MAX:,} an event may have; store files elsewhere "
            "and put their uri in an attachment",
            field=f"{field}.payload",
        )
    return EventDraft(
        valid.id,
        _type_of(valid),
        valid.schema_version,
        _occurred_at_us(valid, field),
        valid.session_id,
        valid.actor,
        valid.causation_id,
        valid.correlation_id,
        ENCODING_JSON,
        payload,
        _subject(valid),
    )


def drafts(events: Sequence[Mapping[str, Any] | Envelope], *, field: str = "events") -> list[EventDraft]:
    """Return a batch of events as drafts; raise the errors of `draft`, and `InvalidEvent` for an empty batch."""
    _check_batch(events, field)
    return [plain_message(event) or draft(event, field=f"{field}.{index}") for index, event in enumerate(events)]


def producer_draft(event: Mapping[str, Any] | Envelope, *, field: str = "event") -> EventDraft:
    """Return an event of a producer as a draft.

    Raises:
        InvalidEvent: as `draft`, or only jobs or erasures may record this type.
    """
    name = type_of(type(event)) if isinstance(event, Envelope) else _given_type(event)
    if name in _DERIVED_TYPES:
        raise InvalidEvent(
            f"{name} is derived from other events and recorded by Recollect's own jobs; append an event of a producer "
            "instead, such as message.added or fact.stated. To import an export: recollect import jsonl",
            field=f"{field}.type",
        )
    if name in ERASURE_TYPES:
        raise InvalidEvent(
            f"{name} is recorded by an erasure alone, so that none is recorded without being carried out; erase with "
            "DELETE /v1/namespaces/{namespace}, POST /v1/namespaces/{namespace}/erase, `recollect erase` or "
            "Recollect.erase",
            field=f"{field}.type",
        )
    return _without_server_fields(draft(event, field=field), field)


def producer_drafts(events: Sequence[Mapping[str, Any] | Envelope], *, field: str = "events") -> list[EventDraft]:
    """Return a batch of a producer as drafts; raise the errors of `producer_draft` and `drafts`."""
    _check_batch(events, field)
    return [
        plain_message(event) or producer_draft(event, field=f"{field}.{index}") for index, event in enumerate(events)
    ]


def drafts_from_json(body: bytes) -> tuple[list[EventDraft], int | None]:
    """Return the drafts and the expected version in the `body` of a producer's request.

    The body is one event, or ``{"events": [...], "expected_version": n}``.

    Raises:
        InvalidEvent: not JSON in UTF-8, an event is wrong, or only jobs may record it. TooLarge: over a limit.
    """
    request = json_object(body)
    if "events" not in request:
        return [plain_message(request) or producer_draft(request)], None
    for unknown in request.keys() - {"events", "expected_version"}:
        raise InvalidEvent("unknown field; a batch has events and expected_version only", field=unknown)
    events = request["events"]
    if not isinstance(events, list):
        raise InvalidEvent("give a list of events", field="events")
    return producer_drafts(cast(list[Any], events)), _expected_version(request.get("expected_version"))


def json_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object in `body`; raise `InvalidInput` when it is not an object, `TooLarge` over the limit."""
    if len(body) > REQUEST_BYTES_MAX:
        raise TooLarge(f"over the {REQUEST_BYTES_MAX:,} bytes of one request; send several", field="body")
    try:
        value = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidInput(f"not JSON in UTF-8: {error}", field="body") from None
    if not isinstance(value, dict):
        raise InvalidInput("give a JSON object", field="body")
    return cast(dict[str, Any], value)


def _without_server_fields(event: EventDraft, field: str) -> EventDraft:
    """Return the draft; raise `InvalidEvent` when it has a field of the payload that the server alone sets."""
    if any(map(event.payload.__contains__, _SERVER_FIELDS_JSON)):
        payload: dict[str, Any] = from_json(event.payload)
        for name in SERVER_FIELDS:
            if name in payload:
                raise InvalidEvent(
                    "the server sets this field from what it reads; leave it out, or label the event by metadata",
                    field=f"{field}.payload.{name}",
                )
    return event


def _check_batch(events: Sequence[object], field: str) -> None:
    """Raise `InvalidEvent` for an empty batch, `TooLarge` for one over `BATCH_EVENTS_MAX`."""
    if not events:
        raise InvalidEvent("give at least one event", field=field)
    if len(events) > BATCH_EVENTS_MAX:
        raise TooLarge(
            f"{len(events):,} events, more than the {BATCH_EVENTS_MAX:,} of one batch; send several batches",
            field=field,
        )


def _given_type(event: object) -> str | None:
    """Return the type of an event that is a mapping; None when it is missing, which `draft` refuses."""
    name: object = cast(Mapping[str, Any], event).get("type") if isinstance(event, dict | Mapping) else None
    return name if isinstance(name, str) else None


def _encoded(payload: Any, field: str) -> bytes:
    """Return `payload` as JSON without fields that have their default value."""
    try:
        return payload.__pydantic_serializer__.to_json(payload, exclude_defaults=True)
    except PydanticSerializationError as error:
        # For example half of a surrogate pair, which Python's str can hold and UTF-8 cannot.
        raise InvalidEvent(f"holds text that is not valid Unicode ({error})", field=f"{field}.payload") from None


def _validated(event: object, field: str) -> Envelope:
    """Return `event` as an instance of its event class; raise `InvalidEvent` when it is not valid."""
    # Most events are of a request's JSON; asking for `Mapping` takes 0.4 µs.
    if not isinstance(event, dict | Mapping):
        raise InvalidEvent("an event is an object with a type and a payload", field=field)
    fields = cast(Mapping[str, Any], event)
    name = fields.get("type")
    event_class = EVENT_CLASSES.get(name) if isinstance(name, str) else None
    if event_class is None:
        reason = _CHAT_MESSAGE if name is None and {"role", "content"} <= fields.keys() else _unknown_type(name)
        raise InvalidEvent(reason, field=f"{field}.type")
    try:
        return event_class.model_validate(fields)
    except ValidationError as error:
        raise _refusal(error, event_class, field) from None


_CHAT_MESSAGE = "this is a chat message, not an event; send it to .../messages, or in Python to add()"


def _unknown_type(name: object) -> str:
    """Return the message for an unknown event type, with the most similar type."""
    if not isinstance(name, str):
        return "give the event's type, such as message.added"
    similar = difflib.get_close_matches(name, EVENT_CLASSES, n=1)
    hint = f"did you mean {similar[0]}?" if similar else f"the types are {', '.join(sorted(EVENT_CLASSES))}"
    return f"unknown event type {name[:80]!r}; {hint}"


def _refusal(error: ValidationError, event_class: type[Envelope], field: str) -> InvalidEvent:
    """Return the first problem of an event, with the path of the field below `field`."""
    problem = first_problem(error, event_class)
    return InvalidEvent(problem.reason, field=f"{field}.{problem.field}" if problem.field else field)


def _occurred_at_us(event: Envelope, field: str) -> int | None:
    """Return `occurred_at` in microseconds since 1970 UTC; raise `InvalidEvent` when it lies too far in the future."""
    if event.occurred_at is None:
        return None
    occurred_at_us = microseconds(event.occurred_at)
    if occurred_at_us > now_us() + CLOCK_AHEAD_SECONDS_MAX * 1_000_000:
        raise InvalidEvent(
            f"{event.occurred_at.isoformat()} is more than a day ahead of this machine's clock; check both clocks",
            field=f"{field}.occurred_at",
        )
    return occurred_at_us


def _subject(event: Envelope) -> str | None:
    """Return whose key encrypts the event: who speaks, or who caused it; None for an event that a job derives."""
    match event:
        case MessageAdded():
            return event.payload.name or event.actor
        case SessionStarted():
            return event.payload.user_id or event.actor
        case _:
            return None if _type_of(event) in _DERIVED_TYPES else event.actor


def _type_of(event: Envelope) -> str:
    """Return the dotted type of an event."""
    # A caller may have made a class of its own from one of the catalogue.
    return _TYPES.get(type(event)) or type_of(type(event))


def _expected_version(value: object) -> int | None:
    """Return a valid `expected_version`; raise `InvalidEvent` for any other value."""
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidEvent("give the head's version as a whole number from 0", field="expected_version")
    return value
