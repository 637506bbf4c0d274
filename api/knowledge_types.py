"""Knowledge types: the rows of the lists of preferences, procedures, relationships, documents and observations.

Times are texts in RFC 3339. `result_types` has the other results.
"""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict


class KnowledgeState(TypedDict):
    """The fields that every memory has which jobs or producers derive from messages."""

    #: active, or why it is not: superseded, ended …
    status: str
    pinned: bool
    superseded_by: str | None
    #: The ids of the events that state it.
    source_events: list[str]
    stale_at: str
    created_at: str
    updated_at: str
    version: int
    #: waiting, or the decision: approve, reject, redact; None: it needs no review.
    review: str | None


class Preference(KnowledgeState):
    """What a user prefers, or wants in every conversation."""

    id: str
    #: Whose it is; empty: the user's.
    subject: str
    category: str
    name: str
    value: str
    #: 0 to 1.
    strength: float
    #: Whether it is an instruction for every conversation.
    standing: bool
    #: corrected, stated or inferred.
    source_type: str
    valid_from: str | None
    valid_until: str | None
    evidence_count: int


class PreferenceValue(TypedDict):
    """One of the values that held in turn of a preference."""

    id: str
    subject: str
    category: str
    name: str
    value: str
    strength: float
    standing: bool
    source_type: str
    status: str
    #: When it was stated, where no start was.
    valid_from: str
    valid_until: str | None
    superseded_by: str | None
    evidence_count: int
    source_events: list[str]
    created_at: str
    updated_at: str


class Procedure(KnowledgeState):
    """The steps of a task, with the outcomes of their uses."""

    id: str
    name: str
    #: The situation in which to use it.
    trigger: str
    steps: list[str]
    context: str | None
    confidence: float
    success_count: int
    failure_count: int
    partial_count: int
    last_used: str | None
    last_outcome: str | None


class Relationship(KnowledgeState):
    """A relationship between two entities, by their names."""

    id: str
    source: str
    type: str
    target: str
    #: Strength of the edge in graph walks, 0 to 1.
    weight: float
    confidence: float
    properties: dict[str, Any] | None
    evidence_count: int


class DocumentChunk(TypedDict):
    """A part of a document that is searched by itself."""

    #: 0, 1, 2 …
    number: int
    text: str


class DocumentLink(TypedDict):
    """A relation of a document to another one, or to an entity."""

    type: str
    #: The id of a document, or the name of an entity.
    target: str
    weight: float


class Document(TypedDict):
    """A curated text."""

    id: str
    title: str
    text: str
    uri: str | None
    metadata: dict[str, Any]
    added_at: str
    version: int
    #: The event that replaced an earlier text with this one, which `undo` takes; None: there was none.
    edit_id: str | None
    #: waiting, or the decision: approve, reject, redact; None: it needs no review.
    review: str | None
    chunks: list[DocumentChunk]
    relations: list[DocumentLink]


class Observation(TypedDict):
    """A short line about a running conversation."""

    #: The id of its event, and its number within the event.
    id: str
    event_id: str
    session_id: str | None
    text: str
    #: Estimated tokens.
    token_count: int
    occurred_at: str
    #: active or superseded.
    status: str
    source_events: list[str] | None


class ForgottenItem(TypedDict):
    """A memory that was forgotten; `undo` with its `event_id` brings it back."""

    #: Of the event that forgets it.
    version: int
    event_id: str
    #: Of the memory.
    id: str
    #: The message of a user that asked for it; None: it was forgotten by its id.
    request_id: str | None
    #: What it says, from the log; None: it was derived from messages, or is erased.
    text: str | None


class Question(TypedDict):
    """A question that a message asks."""

    event_id: str
    text: str


class DateMention(TypedDict):
    """A date that a message names, as a range of times."""

    event_id: str
    text: str
    start: str
    end: str
    #: How probable it is that the words mean this range.
    probability: float
