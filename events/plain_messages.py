"""Plain messages: validates a message of text alone, as bots send it, in two fifths of the time that its class takes.

Nothing is refused here: an event that is not plain goes to the classes of the catalogue, which take it or name its
error. For a plain message both give the same draft (`tests/unit/test_plain_messages.py`).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

import orjson
from pydantic import TypeAdapter, ValidationError

from recollect.events.catalogue import Moment
from recollect.events.envelope import ENCODING_JSON, EventDraft, make_draft, microseconds, now_us
from recollect.events.late_pattern import late_pattern
from recollect.events.limits import CLOCK_AHEAD_SECONDS_MAX, EVENT_BYTES_MAX, NAME_CHARS_MAX
from recollect.events.local_time import with_offset

_TYPE = "message.added"
_FIELDS = frozenset(("type", "payload", "id", "session_id", "actor", "causation_id", "correlation_id", "occurred_at"))
_PAYLOAD_FIELDS = frozenset(("role", "name", "text"))
#: Roles without the name of a tool.
_ROLES = frozenset(("user", "assistant", "system"))
#: A name as `event_base.Name` has it. Half of a surrogate pair is refused by pydantic. Most names are of printable
#: characters alone, which is tested in a third of the time.
_is_name = late_pattern(rf"[^\x00-\x1f\x7f\ud800-\udfff]{{1,{NAME_CHARS_MAX}}}").fullmatch
_moment = TypeAdapter[datetime](Moment).validator.validate_python


def plain_message(event: object) -> EventDraft | None:
    """Return the draft of a plain message; None for all other events."""
    if type(event) is not dict:
        return None
    fields = cast("dict[Any, Any]", event)
    kind, given = fields.get("type"), fields.get("payload")
    if type(kind) is not str or kind != _TYPE or type(given) is not dict or not fields.keys() <= _FIELDS:
        return None
    payload = cast("dict[Any, Any]", given)
    get = fields.get
    event_id, session_id, actor = get("id"), get("session_id"), get("actor")
    causation_id, correlation_id = get("causation_id"), get("correlation_id")
    name = payload.get("name")
    for value in (event_id, session_id, actor, causation_id, correlation_id, name):
        if value is not None and (
            type(value) is not str
            or not ((value.isprintable() and 0 < len(value) <= NAME_CHARS_MAX) or _is_name(value))
        ):
            return None
    encoded = _encoded(payload)
    occurred_at: datetime | None = None
    occurred_at_us: int | None = None
    if get("occurred_at") is not None:
        try:
            moment: datetime = _moment(get("occurred_at"))
        except ValidationError:
            return None
        occurred_at, occurred_at_us = moment, microseconds(moment)
        if occurred_at_us > now_us() + CLOCK_AHEAD_SECONDS_MAX * 1_000_000:
            return None
    if encoded is None:
        return None
    return make_draft(
        (
            event_id,
            _TYPE,
            1,
            occurred_at_us,
            session_id,
            actor,
            causation_id,
            correlation_id,
            ENCODING_JSON,
            with_offset(encoded, occurred_at),
            name or actor,
        )
    )


def _encoded(payload: dict[Any, Any]) -> bytes | None:
    """Return a payload as the log has it; None for one that is not plain."""
    role, name, text = payload.get("role"), payload.get("name"), payload.get("text")
    if type(role) is not str or role not in _ROLES or type(text) is not str or not payload.keys() <= _PAYLOAD_FIELDS:
        return None
    # In the order of the class, and without its default.
    fields = {"role": role, "text": text} if name is None else {"role": role, "name": name, "text": text}
    try:
        encoded = orjson.dumps(fields)
    except orjson.JSONEncodeError:
        # Half of a surrogate pair.
        return None
    return encoded if len(encoded) <= EVENT_BYTES_MAX else None
