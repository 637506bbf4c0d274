"""Event base: the types of fields, and the base classes of payloads and envelopes."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Annotated, Literal

import orjson
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
)

from recollect.events.late_pattern import late_pattern
from recollect.events.limits import METADATA_BYTES_MAX, METADATA_LEVELS_MAX, NAME_CHARS_MAX
from recollect.events.local_time import zone_named

#: A name or an id, without control characters, since names are written to log lines, headers and file names.
Name = Annotated[str, Field(min_length=1, max_length=NAME_CHARS_MAX, pattern=r"^[^\x00-\x1f\x7f]+$")]
Text = Annotated[str, Field(min_length=1)]
Confidence = Annotated[float, Field(ge=0, le=1)]
Importance = Annotated[int, Field(ge=1, le=10)]
_ROLE = late_pattern(r"^(user|assistant|system|tool:.{1,195})$")


def _known_role(value: object) -> object:
    """Refuse an unknown role in plain words, before pydantic names the pattern."""
    if isinstance(value, str) and not _ROLE.match(value):
        raise ValueError("give user, assistant, system, or tool: and the tool's name, such as tool:search")
    return value


#: Who says a message.
Role = Annotated[str, BeforeValidator(_known_role), Field(pattern=_ROLE.pattern)]
SourceType = Literal["stated", "inferred", "observed", "corrected"]
Outcome = Literal["success", "failure", "partial", "pending"]
MemoryStatus = Literal["active", "stale", "superseded", "ended", "invalidated", "rejected", "quarantined", "echo"]
PreferenceCategory = Literal["communication", "formatting", "workflow", "tools", "scheduling", "other"]
#: Koda's types of statements (`004`); preferences, procedures and relationships have events of their own.
FactType = Literal["fact", "event", "decision", "problem", "commit", "task"]
#: What a statement is about.
StatementKind = Literal[
    "identity",
    "home",
    "work",
    "relation",
    "health",
    "possession",
    "habit",
    "event",
    "plan",
    "decision",
    "task",
    "preference",
    "rule",
    "other",
]
EntityType = Literal[
    "person", "organization", "project", "concept", "location", "tool", "event", "animal", "product", "work", "other"
]


def _only_text_or_datetime(value: object) -> object:
    """Refuse numbers, which pydantic would read as seconds or milliseconds, depending on their size."""
    if isinstance(value, str | datetime):
        return value
    raise ValueError("give the time as text with a zone, such as 2026-11-20T09:00:00Z")


#: A time with its zone.
Moment = Annotated[AwareDatetime, BeforeValidator(_only_text_or_datetime)]


def _only_known_zone(name: str) -> str:
    """Refuse a name that the tz database does not have."""
    if zone_named(name) is None:
        raise ValueError("is not a time zone; give a name such as Europe/Berlin")
    return name


#: The name of a time zone.
TimeZoneName = Annotated[Name, AfterValidator(_only_known_zone)]


def _only_exact_json(value: JsonValue) -> JsonValue:
    """Refuse values that JSON cannot store exactly: NaN, infinities, integers over 64 bits."""
    pending = [value]
    while pending:
        match pending.pop():
            case float() as number if not math.isfinite(number):
                raise ValueError("NaN and infinities are not JSON; leave the value out or send it as text")
            case int() as number if not -(2**63) <= number < 2**64:
                raise ValueError("an integer over 64 bits would lose digits; send it as text")
            case list() as items:
                pending.extend(items)
            case dict() as fields:
                pending.extend(fields.values())
            case _:
                pass
    return value


#: Any JSON value that the log stores without loss.
ExactJson = Annotated[JsonValue, AfterValidator(_only_exact_json)]


def _only_bounded_metadata(metadata: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Refuse metadata over `METADATA_LEVELS_MAX` or `METADATA_BYTES_MAX`."""
    level: list[JsonValue] = [metadata]
    for _ in range(METADATA_LEVELS_MAX):
        objects = [value.values() for value in level if isinstance(value, dict)]
        lists = [value for value in level if isinstance(value, list)]
        level = [member for members in (*objects, *lists) for member in members]
    if any(isinstance(value, dict | list) for value in level):
        raise ValueError(f"metadata has at most {METADATA_LEVELS_MAX} levels of objects and lists; flatten it")
    try:
        size = len(orjson.dumps(metadata))
    except orjson.JSONEncodeError:
        raise ValueError("metadata holds text that is not valid Unicode; leave it out") from None
    if size > METADATA_BYTES_MAX:
        raise ValueError(
            f"metadata has {size:,} bytes as JSON, more than the {METADATA_BYTES_MAX:,} allowed; put the rest into "
            "`data`, or behind the `uri` of an attachment"
        )
    return metadata


#: What the server noticed about a text, such as ``secret: pin``. Producers cannot set them.
Labels = Annotated[tuple[Name, ...], Field(max_length=20)]
#: Labels of the producer, by which lists and retrievals can be filtered.
Metadata = Annotated[dict[Name, ExactJson], AfterValidator(_only_bounded_metadata)]


class Payload(BaseModel):
    """Base of every payload. Unknown fields are refused, so that a misspelt field does not lose data."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Envelope(BaseModel):
    """Base of every event: the fields that all events have in addition to their payload."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    #: The producer's idempotency key: the same id with the same content is recorded once; generated when absent.
    id: Name | None = None
    schema_version: Literal[1] = 1
    #: The time at which it happened; the time of recording when absent.
    occurred_at: Moment | None = None
    #: The conversation that the event belongs to.
    session_id: Name | None = None
    #: The user, agent or tool that caused the event.
    actor: Name | None = None
    #: The id of the event that caused this one.
    causation_id: Name | None = None
    #: The request or task that this event belongs to.
    correlation_id: Name | None = None
