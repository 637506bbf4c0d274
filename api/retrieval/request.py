"""What a caller may ask for."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from recollect.api.moment import AsOfField

#: What an item of a result can be.
Kind = Literal["episode", "entity"]


class RetrieveRequest(BaseModel):
    """A question to the memory of one namespace."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    #: Any text: a question, the last message, a pasted log.
    query: str
    #: Most items in the answer.
    limit: Annotated[int, Field(ge=1, le=100)] = 10
    #: Most tokens in the context (`004`: 3,500).
    budget_tokens: Annotated[int, Field(ge=0, le=100_000)] = 3_500
    #: Which kinds of items are wanted; all when None.
    kinds: Annotated[frozenset[Kind], Field(min_length=1)] | None = None
    #: Only what happened at or after this moment.
    since: AwareDatetime | None = None
    #: Only what happened before this moment.
    until: AwareDatetime | None = None
    #: Only what belongs to this session.
    session_id: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    #: As the memory was at this version, or when this moment was past: what was recorded later is not there.
    as_of: AsOfField = None
    #: Bring the exact words behind a summary along.
    expand: bool = False
