"""What a caller may ask for."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field

from recollect.api.as_of import AsOfField
from recollect.events.envelope import microseconds
from recollect.events.errors import RecollectError
from recollect.events.limits import check_namespace

#: What an item of a result can be.
Kind = Literal["episode", "fact", "entity", "relationship", "preference", "procedure", "document"]
#: Somebody asks memory a question; or a turn of a conversation is prepared, and memory decides what belongs to it.
Mode = Literal["active", "passive"]
#: How candidates are put in order: by the weighted sum; by reciprocal ranks of all lists, or of the seeds' two; by one
#: list alone.
Ranking = Literal["weighted", "rrf", "seeds", "keyword", "semantic"]
#: How the context is written: as `000`, section 5; as `002`'s preamble; as JSON.
Format = Literal["markdown", "preamble", "json"]


def _checked_namespace(name: str) -> str:
    try:
        return check_namespace(name)
    except RecollectError as error:
        raise ValueError(str(error)) from None


class RetrieveRequest(BaseModel):
    """A question to the memory of one namespace."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    #: Any text: a question, the last message, a pasted log.
    query: str
    #: Most items in the answer, without those that a passive retrieval always brings.
    limit: Annotated[int, Field(ge=1, le=100)] = 10
    #: Most tokens in the context (`004`: 3,500).
    budget_tokens: Annotated[int, Field(ge=0, le=100_000)] = 3_500
    #: Which kinds of items are wanted; all when None.
    kinds: Annotated[frozenset[Kind], Field(min_length=1)] | None = None
    #: Only what happened at or after this moment.
    since: AwareDatetime | None = None
    #: Only what happened before this moment.
    until: AwareDatetime | None = None
    #: Active: only what belongs to this session. Passive: the conversation that goes on.
    session_id: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    #: As the memory was at this version, or when this moment was past: what was recorded later is not there.
    as_of: AsOfField = None
    #: Namespaces whose memory counts too, such as a team's, or a curated knowledge base.
    also: Annotated[tuple[Annotated[str, AfterValidator(_checked_namespace)], ...], Field(max_length=8)] = ()
    #: Active: the query is a question to the memory. Passive: it is the last message of a conversation.
    mode: Mode = "active"
    #: How the context is written: Markdown, a preamble to the user's message, or JSON.
    format: Format = "markdown"
    #: What the model's window holds, in tokens; passive retrievals notice when the conversation fills most of it.
    window_tokens: Annotated[int, Field(ge=64, le=10_000_000)] | None = None
    #: Say nothing when nothing is relevant.
    gate: bool = True
    #: How episodes are put in order; the weighted sum is the best by far, the others are to compare with.
    ranking: Ranking = "weighted"
    #: Bring the exact words behind a summary along.
    expand: bool = False

    def includes(self, at_us: int) -> bool:
        """Tell whether what happened at this moment may be seen."""
        return (self.since is None or at_us >= microseconds(self.since)) and (
            self.until is None or at_us < microseconds(self.until)
        )
