"""Tool arguments: the arguments of each tool, with limits."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from recollect.api.mcp.tool_dates import TimeRange, time_range
from recollect.api.retrieval.contract.request import Kind

#: Characters of a query: a pasted message is searched by its rarest words anyway.
QUERY_CHARS_MAX = 8_000
#: Characters of a text to remember: notes have sentences; a file belongs into `document.added`.
TEXT_CHARS_MAX = 20_000
#: Characters of an idempotency key, which becomes the end of an event's id.
_KEY_CHARS_MAX = 150
#: Characters of other short texts.
NAME_CHARS_MAX = 200

_Id = Annotated[str, Field(min_length=1, max_length=NAME_CHARS_MAX)]
Why = Annotated[str | None, Field(min_length=1, max_length=NAME_CHARS_MAX, description="reason, kept in the log")]

#: Digits of a version.
_VERSION_DIGITS = 11
#: What models may give for a time, in the description of an argument.
_TIMES = "day, time with zone, or words such as last week"
_TIME_SCHEMA = WithJsonSchema({"type": "string", "maxLength": NAME_CHARS_MAX})


def _range(value: object) -> TimeRange:
    """Return the time that a text means. Numbers, which could be seconds or years, are refused."""
    return time_range(str(value)[:NAME_CHARS_MAX] if isinstance(value, str) else "")


def _past(value: object) -> object:
    """Return the end of the time that a text means, or the present if that comes first; a version stays as it is."""
    if isinstance(value, str) and value.isdecimal():
        return int(value[:_VERSION_DIGITS])
    return value if isinstance(value, int) else min(_range(value).end, datetime.now(UTC))


_Time = Annotated[TimeRange, BeforeValidator(_range), _TIME_SCHEMA]
_Start = Annotated[AwareDatetime, BeforeValidator(lambda value: _range(value).start), _TIME_SCHEMA]
_End = Annotated[AwareDatetime, BeforeValidator(lambda value: _range(value).end), _TIME_SCHEMA]


class ToolArguments(BaseModel):
    """Base of the arguments: an unknown one is refused with its name, so that the model can correct itself."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class RecallArguments(ToolArguments):
    """Arguments of `recall`."""

    query: Annotated[
        str, Field(min_length=1, max_length=QUERY_CHARS_MAX, description="a question or topic, with its names")
    ]
    max_tokens: Annotated[int, Field(ge=100, le=20_000, description="size of the answer")] = 1_500
    as_of: Annotated[
        int | AwareDatetime | None, BeforeValidator(_past), _TIME_SCHEMA, Field(description=f"past {_TIMES}")
    ] = None
    kinds: Annotated[list[Kind] | None, Field(min_length=1, max_length=20)] = None


class RememberArguments(ToolArguments):
    """Arguments of `remember`."""

    text: Annotated[
        str, Field(min_length=1, max_length=TEXT_CHARS_MAX, description="a full sentence that names who it is about")
    ]
    when: Annotated[_Time | None, Field(description=f"when it happened: {_TIMES}; default now")] = None
    idempotency_key: Annotated[
        str | None,
        Field(min_length=1, max_length=_KEY_CHARS_MAX, description="repeating a call with the same key adds nothing"),
    ] = None


class CorrectArguments(ToolArguments):
    """Arguments of `correct`."""

    memory_id: _Id
    new_text: Annotated[
        str,
        Field(min_length=1, max_length=TEXT_CHARS_MAX, description="of a fact only its new object: Porto"),
    ]


class ForgetArguments(ToolArguments):
    """Arguments of `forget`: an id, or a query that finds ids."""

    memory_id: _Id | None = None
    query: Annotated[
        str | None,
        Field(min_length=1, max_length=QUERY_CHARS_MAX, description="lists matching memories, forgets nothing"),
    ] = None
    why: Why = None


class HistoryArguments(ToolArguments):
    """Arguments of `history`: an id, or the name of a subject."""

    memory_id: _Id | None = None
    subject: Annotated[
        str | None, Field(min_length=1, max_length=NAME_CHARS_MAX, description="name of a person or thing")
    ] = None


class TimelineArguments(ToolArguments):
    """Arguments of `timeline`."""

    since: Annotated[_Start | None, Field(description=_TIMES)] = None
    until: Annotated[_End | None, Field(description=_TIMES)] = None
    tier: Annotated[
        Literal["raw", "compressed", "distilled"] | None, Field(description="messages, or shorter summaries")
    ] = None
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    after: Annotated[str, Field(max_length=NAME_CHARS_MAX, description="`next` of the page before")] = ""


class SearchArguments(ToolArguments):
    """Arguments of `search`, in the form of OpenAI's connectors."""

    query: Annotated[str, Field(min_length=1, max_length=QUERY_CHARS_MAX)]


class FetchArguments(ToolArguments):
    """Arguments of `fetch`, in the form of OpenAI's connectors."""

    id: _Id
