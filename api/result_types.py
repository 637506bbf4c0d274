"""Result types: the fields of what `Recollect`, the clients and HTTP return as mappings.

Times are texts in RFC 3339. `knowledge_types` has the rows of the other lists, `receipt_types` the results of erasures.
"""

from __future__ import annotations

from typing import Any, Generic, Literal

from typing_extensions import TypedDict, TypeVar

from recollect.api.knowledge_types import (
    DateMention,
    Document,
    ForgottenItem,
    Observation,
    Preference,
    Procedure,
    Question,
    Relationship,
)

#: The items of a page.
Row = TypeVar("Row", default=dict[str, Any])


class Page(TypedDict, Generic[Row]):
    """A part of a list."""

    items: list[Row]
    #: What `after` takes for the next page; None at the end.
    next: str | None


class EventItem(TypedDict):
    """An event of the log."""

    id: str
    namespace: str
    version: int
    type: str
    schema_version: int
    occurred_at: str
    recorded_at: str
    session_id: str | None
    actor: str | None
    causation_id: str | None
    correlation_id: str | None
    #: The fields of its type, as the catalogue has them.
    payload: dict[str, Any]
    #: In hex.
    hash: str


class NamespaceItem(TypedDict):
    """A namespace with its head."""

    namespace: str
    version: int
    #: In hex.
    hash: str


class Episode(TypedDict):
    """A message, an action, an observation, or a summary of some."""

    id: str
    version: int
    session_id: str | None
    occurred_at: str
    type: str
    role: str | None
    speaker: str
    actor: str | None
    text: str
    caption: str | None
    importance: int
    outcome: str | None
    tags: list[str] | None
    details: Any
    metadata: dict[str, Any] | None
    parent_id: str | None
    #: raw, compressed or distilled.
    tier: str
    status: str
    pinned: bool
    expires_at: str | None
    #: The most important sentences of a long message.
    short: str | None
    #: Estimated tokens.
    token_count: int


class Session(TypedDict):
    """A conversation."""

    id: str
    channel: str | None
    user_id: str | None
    started_at: str
    ended_at: str | None
    last_at: str
    episode_count: int
    summary: str | None
    metadata: dict[str, Any] | None


class Entity(TypedDict):
    """A person, a place or another thing with a name."""

    id: int
    name: str
    type: str
    description: str | None
    aliases: list[str]
    importance: int | None
    metadata: dict[str, Any] | None
    first_seen: str
    last_seen: str
    mention_count: int
    spoken_count: int
    #: The names that were merged into it, each with the reason and the events.
    merged: list[dict[str, Any]]


class Fact(TypedDict):
    """A statement about a subject."""

    id: str
    subject: str
    predicate: str
    object: str
    #: The sentence; None: subject, predicate and object make one.
    statement: str | None
    #: What it is about: identity, home, work, relation, health …; None: not known.
    statement_kind: str | None
    #: Where it is stated: event, and first and last character of its text.
    evidence: list[dict[str, Any]]
    type: str
    layer: str
    confidence: float
    source_type: str
    valid_from: str | None
    valid_until: str | None
    #: Of two active facts with one key, one supersedes the other; None: others of its kind may hold too.
    conflict_key: str | None
    evidence_count: int
    #: active, or why it is not: superseded, ended …
    status: str
    pinned: bool
    superseded_by: str | None
    source_events: list[str]
    stale_at: str
    created_at: str
    updated_at: str
    version: int
    #: waiting, or the decision: approve, reject, redact; None: it needs no review.
    review: str | None


class FactValue(TypedDict):
    """One of the values that held in turn."""

    id: str
    subject: str
    predicate: str
    object: str
    type: str
    confidence: float
    source_type: str
    status: str
    superseded_by: str | None
    #: When it was stated, where no start was.
    valid_from: str
    valid_until: str | None
    evidence_count: int
    source_events: list[str]
    created_at: str
    updated_at: str


class RankedItem(TypedDict):
    """A memory in a trace."""

    id: str
    kind: str
    score: float
    #: Its rank in each list, from 1.
    ranks: dict[str, int]


#: When a retrieval was answered; in this form because the name of a field is not a word that a module declares.
_Moment = TypedDict("_Moment", {"at": str})  # noqa: UP013


class TraceSummary(_Moment):
    """A retrieval in the list of traces."""

    trace_id: str
    query: str
    trigger: str
    version: int
    latency_ms: float
    degraded: list[str]
    tokens: int
    items: list[RankedItem]


class Trace(TraceSummary):
    """The explanation of a retrieval."""

    namespace: str
    #: The fields of the request that were given, without the query.
    request: dict[str, Any]
    limit: int
    #: Milliseconds of each stage, by name.
    stages_ms: dict[str, float]
    context: str
    #: The guidance for the answer.
    answer: dict[str, Any]
    #: What was understood of the query, for each namespace.
    understood: list[dict[str, Any]]
    candidates: list[dict[str, Any]]
    gate: list[dict[str, Any]]
    #: What is not in the result, each with the reason.
    dropped: list[dict[str, Any]]
    #: The lines of the context with their tokens.
    lines: list[dict[str, Any]]
    #: The events behind each item, by its id.
    sources: dict[str, list[str]]


class GraphEdge(TypedDict):
    """A relation between two entities or documents."""

    source: str
    type: str
    target: str
    weight: float
    confidence: float
    #: Steps from the entity that was asked for.
    distance: int


class Neighbourhood(TypedDict):
    """The graph around an entity."""

    #: Its name; None when there is none of that name.
    entity: str | None
    nodes: list[str]
    edges: list[GraphEdge]


#: The items of each public list.
LIST_ROWS: dict[str, type[Any]] = {
    "episodes": Episode,
    "sessions": Session,
    "entities": Entity,
    "facts": Fact,
    "preferences": Preference,
    "procedures": Procedure,
    "relationships": Relationship,
    "documents": Document,
    "observations": Observation,
    "forgotten": ForgottenItem,
    "questions": Question,
    "dates": DateMention,
}


class EpisodeMemory(Episode):
    """A message, an action, an observation or a summary, as a memory."""

    kind: Literal["episode"]


class FactMemory(Fact):
    """A fact, as a memory."""

    kind: Literal["fact"]


class PreferenceMemory(Preference):
    """A preference, as a memory."""

    kind: Literal["preference"]


class ProcedureMemory(Procedure):
    """A procedure, as a memory."""

    kind: Literal["procedure"]


class RelationshipMemory(Relationship):
    """A relationship, as a memory."""

    kind: Literal["relationship"]


class DocumentMemory(Document):
    """A document, as a memory."""

    kind: Literal["document"]


class ObservationMemory(Observation):
    """A line about a conversation, as a memory."""

    kind: Literal["observation"]


class EntityMemory(Entity):
    """An entity, as a memory."""

    kind: Literal["entity"]


#: A memory that can end.
EndableMemory = FactMemory | PreferenceMemory | ProcedureMemory | RelationshipMemory
#: A memory that can be pinned.
PinnableMemory = EpisodeMemory | EndableMemory
#: A memory of any kind: the fields of an item of its list, and `kind`, the discriminator of the union.
MemoryItem = PinnableMemory | DocumentMemory | ObservationMemory | EntityMemory


class JudgedAnswer(TypedDict):
    """An answer that was recorded, with its checks."""

    event_id: str
    version: int
    #: `check`, `passed`, and the `reason` of one that has not passed.
    checks: list[dict[str, Any]]


class QuarantineItem(TypedDict):
    """A memory that looks like instructions by others than the user."""

    id: str
    kind: str
    #: waiting, or the decision.
    status: str
    reasons: list[str]
    version: int
    occurred_at: str
    #: The memory, with its `kind`; None when it is forgotten.
    memory: MemoryItem | None


class QuarantinePage(TypedDict):
    """A part of the quarantine."""

    items: list[QuarantineItem]
    #: What `after` takes for the next page; None at the end.
    next: int | None


class SubjectExport(TypedDict):
    """Everything that a namespace holds about a person, or all of it."""

    namespace: str
    #: The name that was asked for; None for everything.
    subject: str | None
    #: All names of the subject.
    names: list[str]
    exported_at: str
    #: The numbers of items of each list.
    counts: dict[str, int]
    events: list[EventItem]
    sessions: list[Session]
    entities: list[Entity]
    facts: list[Fact]
    preferences: list[Preference]
    relationships: list[Relationship]
    procedures: list[Procedure]
    observations: list[Observation]
    documents: list[Document]
    episodes: list[Episode]
    traces: list[Trace]


class Forgotten(TypedDict):
    """A memory that was forgotten."""

    id: str
    kind: str
    #: The version of the event that forgets it.
    version: int
    #: The id of that event, with which `undo` restores the memory.
    event_id: str


class Undone(TypedDict):
    """An edit that was undone."""

    #: The id of the undo; to undo it makes the edit again.
    id: str
    #: The id of the event that it undoes.
    undoes: str
    #: The version of the undo.
    version: int
