"""Tool results: the structured data that each tool returns, besides its text."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct
from pydantic import BaseModel, ConfigDict


class ToolResult(BaseModel):
    """Base of the results. Fields without a value are left out."""

    model_config = ConfigDict(frozen=True)

    def as_json(self) -> dict[str, Any]:
        """Return the result as JSON."""
        return self.model_dump(mode="json", exclude_none=True)


class RecalledMemory(ToolResult):
    """A memory in an answer."""

    id: str
    kind: str
    text: str
    #: When it happened, or when knowledge was last changed.
    when: str
    #: Since when a fact holds.
    valid_from: str | None = None
    #: When a fact ended.
    valid_to: str | None = None
    #: Who wrote it: the speaker of a message, or user, assistant, tool, document, derived.
    source: str
    #: That it belongs to the answer, 0 to 1.
    probability: float
    #: How it matched, best rank first, such as keyword, semantic, graph.
    matched_by: list[str]
    #: Whether a later statement replaced it.
    outdated: bool | None = None


class RecallResult(ToolResult):
    """Result of `recall`."""

    facts: list[RecalledMemory]
    episodes: list[RecalledMemory]
    trace_id: str
    #: Parts that are missing, such as the search by meaning while the model loads.
    degraded: list[str] | None = None
    #: Why nothing was found, such as `no memory of that time`.
    reason: str | None = None


#: The state of a note: `accepted`; `duplicate`: the key was used before; `echo`: it repeats what was just recalled, so
#: it is not a memory of its own; `quarantined`: it looks like instructions, and waits for a review by the user.
RememberStatus = Literal["accepted", "duplicate", "echo", "quarantined"]


class RememberResult(ToolResult):
    """Result of `remember`."""

    memory_id: str
    version: int
    status: RememberStatus


class CorrectResult(ToolResult):
    """Result of `correct`."""

    superseded_id: str
    memory_id: str
    text: str


class ForgottenMemory(ToolResult):
    """A memory that was forgotten, or would be."""

    id: str
    kind: str
    text: str


class ForgetResult(ToolResult):
    """Result of `forget`."""

    #: Whether nothing was forgotten.
    dry_run: bool
    memories: list[ForgottenMemory]
    version: int | None = None
    #: The event that forgot it, by which it can be undone.
    event_id: str | None = None


class HistoryEntry(ToolResult):
    """A value that held for some time."""

    id: str
    text: str
    status: str
    valid_from: str | None = None
    valid_to: str | None = None
    superseded_by: str | None = None
    #: The message that states it.
    source: str | None = None


class HistoryResult(ToolResult):
    """Result of `history`."""

    entries: list[HistoryEntry]


class TimelineEntry(ToolResult):
    """A message or a summary."""

    id: str
    when: str
    speaker: str | None = None
    tier: str
    text: str


class TimelineResult(ToolResult):
    """Result of `timeline`."""

    episodes: list[TimelineEntry]
    #: `after` of the next page of a call with `since`.
    next: str | None = None


class SearchHit(ToolResult):
    """A hit of `search`."""

    id: str
    title: str
    url: str


class SearchResult(ToolResult):
    """Result of `search`."""

    results: list[SearchHit]


class FetchResult(ToolResult):
    """Result of `fetch`."""

    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, str]


class ToolAnswer(Struct, frozen=True, kw_only=True):
    """The answer to a call of a tool."""

    #: What a model reads.
    text: str
    #: The result as JSON; None of an error.
    data: dict[str, Any] | None
    #: The HTTP status that the same request would have.
    status: int = 200
    #: Items in the result, for the audit log.
    count: int | None = None
