"""Request: the parameters of a retrieval, with their limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

import orjson
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from recollect.api.as_of import AsOfField
from recollect.api.settings import CONTEXT_TOKENS, CONTEXT_TOKENS_MAX, LIMIT_MAX, RECALL_LIMIT, RetrievalSettings
from recollect.events.catalogue import Name, TimeZoneName
from recollect.events.envelope import microseconds
from recollect.events.errors import RecollectError
from recollect.events.field_problems import first_problem
from recollect.events.limits import NAMESPACE_SCHEMA, check_namespace
from recollect.projections.queries.page_queries import Selection

#: The kinds of items in a result.
Kind = Literal["episode", "fact", "entity", "relationship", "preference", "procedure", "document"]
#: Active: the query is a question to the memory. Passive: the query is a message, and memory selects the context.
Mode = Literal["active", "passive"]
#: The order of candidates: by the weighted sum; by the reciprocal ranks of all lists, or of the keyword and semantic
#: lists (`seeds`); by one list alone.
Ranking = Literal["weighted", "rrf", "seeds", "keyword", "semantic"]
#: The format of the context: Markdown (`000`, section 5), the preamble of `002`, or JSON.
Format = Literal["markdown", "preamble", "json"]


#: A value of metadata, and the values that a filter accepts.
MetadataValue = Annotated[str, Field(max_length=10_000)] | int | float | bool | None
MetadataValues = MetadataValue | Annotated[list[MetadataValue], Field(min_length=1, max_length=100)]


def _checked_namespace(name: str) -> str:
    """Return `name`; raise `ValueError`, as pydantic expects, when it is not allowed."""
    try:
        return check_namespace(name)
    except RecollectError as error:
        raise ValueError(str(error)) from None


#: By how much a query for several things raises the limit. Of the evidence for 79 such questions of LoCoMo, the context
#: has 84 to 88 % with ten items, 89 to 96 % with twenty; of summaries of BEAM 14 and 26 % (2026-11-22).
_SEVERAL_FACTOR = 2


class RetrieveRequest(BaseModel):
    """A query to the memory of a namespace."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    #: Any text, such as a question, a message or a pasted log. For an empty one nothing is searched.
    query: str
    #: Items in the result, at most, besides the standing items of passive mode; `RECOLLECT_RECALL_LIMIT` where the
    #: request has none.
    limit: Annotated[int, Field(ge=1, le=LIMIT_MAX)] = RECALL_LIMIT
    #: Tokens in the context, at most; `RECOLLECT_CONTEXT_TOKENS` where the request has none.
    budget_tokens: Annotated[int, Field(ge=0, le=CONTEXT_TOKENS_MAX)] = CONTEXT_TOKENS
    #: The kinds of items in the result; all when None.
    kinds: Annotated[frozenset[Kind], Field(min_length=1)] | None = None
    #: Only memories that occurred at or after this time.
    since: AwareDatetime | None = None
    #: Only memories that occurred before this time.
    until: AwareDatetime | None = None
    #: The zone of the asker's days, such as `Europe/Berlin`, in which "yesterday" is read and times are shown; without
    #: it that of the last message of `speaker`, or of any user.
    timezone: TimeZoneName | None = None
    #: Active: only episodes of this session. Passive: the running conversation.
    session_id: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    #: Only memories that messages with this metadata state, and documents with it: each name has the value, or one of a
    #: list of values.
    metadata: Annotated[dict[Name, MetadataValues], Field(max_length=20)] = {}
    #: A past version or time: events that were recorded later are ignored.
    as_of: AsOfField = None
    #: Further namespaces to search, such as a team's, or a curated knowledge base.
    also: Annotated[
        tuple[Annotated[str, AfterValidator(_checked_namespace), Field(json_schema_extra=dict(NAMESPACE_SCHEMA))], ...],
        Field(max_length=8),
    ] = ()
    #: Active: the query is a question to the memory. Passive: the query is the last message of a conversation.
    mode: Mode = "active"
    #: Who asks, whom "I" in the query means: the speaker of the appended message; without one, the only user of the
    #: session or of the namespace. Messages that are not for this person are left out. The context has the standing
    #: instructions and strong likes of this user; when it is not known, all instructions, each with its speaker. Of
    #: several users, the one who stated a PIN or a code is shown it.
    speaker: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    #: Whether the standing instructions of other users apply as well, each with its speaker.
    shared_rules: bool = False
    #: The format of the context; a preamble is for the beginning of the user's message.
    format: Format = "markdown"
    #: The context window of the language model, in tokens, so that passive mode detects when the conversation fills it.
    window_tokens: Annotated[int, Field(ge=64, le=10_000_000)] | None = None
    #: Whether a query without relevant memories gets an empty result.
    gate: bool = True
    #: The order of episodes; the weighted sum is the most accurate, the others are for comparison.
    ranking: Ranking = "weighted"
    #: Only memories with at least this trust: 3 what users said, 2 also what assistants said, 1 also what tools and
    #: documents say. What was derived from messages has the trust of the least trusted one.
    min_trust: Annotated[int, Field(ge=0, le=3)] = 0
    #: Whether nothing of the request is stored: no trace, and no event when it comes with messages.
    no_store: bool = False
    #: Whether messages found by a summary come with all messages of that summary, in `items[].sources`.
    expand: bool = False

    @classmethod
    def checked(cls, fields: Mapping[str, Any]) -> Self:
        """Return the request with these fields; raise `InvalidInput` when one of them is wrong."""
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            raise first_problem(error, cls) from None

    def includes(self, at_us: int) -> bool:
        """Return whether the time `at_us` is between `since` and `until`."""
        return (self.since is None or at_us >= microseconds(self.since)) and (
            self.until is None or at_us < microseconds(self.until)
        )

    def metadata_selections(self) -> tuple[Selection, ...]:
        """Return the selections of `metadata`, one for each name."""
        return tuple(
            Selection(
                "metadata",
                tuple(orjson.dumps(value).decode() for value in (values if isinstance(values, list) else [values])),
                name,
            )
            for name, values in self.metadata.items()
        )

    def with_defaults(self, settings: RetrievalSettings, *, asks_for_several: bool = False) -> RetrieveRequest:
        """Return the request with the limits of `settings` where the caller gave none.

        Parameters:
            asks_for_several: whether the query asks for a list, a number of things or all about a topic, whose parts
                are in many messages; an active request then gets twice as many items.
        """
        factor = _SEVERAL_FACTOR if asks_for_several and self.mode == "active" else 1
        limit = min(factor * settings.recall_limit, LIMIT_MAX)
        defaults = {"limit": limit, "budget_tokens": settings.context_tokens}
        missing = {name: value for name, value in defaults.items() if name not in self.model_fields_set}
        return self.model_copy(update=missing) if missing else self
