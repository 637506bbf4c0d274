"""Tool arguments: the arguments of each tool, with limits."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

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


#: Characters of a date without a time, which models give for a day.
_DATE_CHARS = len("2026-11-20")


def _time_text(value: object) -> str:
    """Return a time as text; a date is its beginning in UTC. Numbers, which could be seconds or years, are refused."""
    if not isinstance(value, str) or "-" not in value[1:]:
        raise ValueError("give a time with its zone, such as 2026-11-20T09:00:00Z")
    return f"{value}T00:00:00Z" if len(value) == _DATE_CHARS else value


Moment = Annotated[AwareDatetime, BeforeValidator(_time_text)]


class ToolArguments(BaseModel):
    """Base of the arguments: an unknown one is refused with its name, so that the model can correct itself."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class RecallArguments(ToolArguments):
    """Arguments of `recall`."""

    query: Annotated[
        str, Field(min_length=1, max_length=QUERY_CHARS_MAX, description="a question or topic, with its names")
    ]
    max_tokens: Annotated[int, Field(ge=100, le=20_000, description="size of the answer")] = 1_500
    as_of: Annotated[str | None, Field(max_length=NAME_CHARS_MAX, description="past time (ISO 8601)")] = None
    kinds: Annotated[list[Kind] | None, Field(min_length=1, max_length=20)] = None


class RememberArguments(ToolArguments):
    """Arguments of `remember`."""

    text: Annotated[
        str, Field(min_length=1, max_length=TEXT_CHARS_MAX, description="a full sentence that names who it is about")
    ]
    when: Annotated[Moment | None, Field(description="when it happened, with zone; default now")] = None
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

    since: Annotated[Moment | None, Field(description="time with zone")] = None
    until: Annotated[Moment | None, Field(description="time with zone")] = None
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
