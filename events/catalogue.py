"""Every event type, as a pydantic model: the only description of what the log may hold.

An event type has two classes: its payload (`Message`) and its envelope (`MessageAdded`), which fixes `type` and carries
what all events share. `NewEvent` is the union of those that producers may append. Types are past tense and dotted;
`PRODUCER_EVENTS` come from bots, `DERIVED_EVENTS` from jobs (their ids are deterministic, so that a job that runs
twice records nothing new).
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    model_validator,
)

from recollect.events.limits import NAME_CHARS_MAX

#: A name or an id: no control characters, since it ends up in log lines, headers and file names.
Name = Annotated[str, Field(min_length=1, max_length=NAME_CHARS_MAX, pattern=r"^[^\x00-\x1f\x7f]+$")]
Text = Annotated[str, Field(min_length=1)]
Confidence = Annotated[float, Field(ge=0, le=1)]
Importance = Annotated[int, Field(ge=1, le=10)]
Role = Annotated[str, Field(pattern=r"^(user|assistant|system|tool:.{1,195})$")]
SourceType = Literal["stated", "inferred", "observed", "corrected"]
Outcome = Literal["success", "failure", "partial", "pending"]
MemoryStatus = Literal["active", "stale", "superseded", "invalidated", "rejected"]
PreferenceCategory = Literal["communication", "formatting", "workflow", "tools", "scheduling", "other"]
#: Koda's types that a statement can have (`004`); preferences, procedures and relationships are events of their own.
FactType = Literal["fact", "event", "decision", "problem", "commit", "task"]
#: Where a memory stands in a composed context (`004`).
Layer = Literal["episodic", "procedural", "conversational", "proactive"]
EntityType = Literal["person", "organization", "project", "concept", "location", "tool", "event", "other"]


def _only_text_or_datetime(value: object) -> object:
    """Refuse numbers: pydantic would read them as seconds or milliseconds, depending on their size."""
    if isinstance(value, str | datetime):
        return value
    raise ValueError("give the time as text with a zone, such as 2026-11-20T09:00:00Z")


#: A moment with its zone.
Moment = Annotated[AwareDatetime, BeforeValidator(_only_text_or_datetime)]


def _only_exact_json(value: JsonValue) -> JsonValue:
    """Refuse what JSON would change on its way through the log: NaN, infinities, integers over 64 bits."""
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


#: Any JSON that comes back as it went in.
ExactJson = Annotated[JsonValue, AfterValidator(_only_exact_json)]


class Payload(BaseModel):
    """What every payload shares: unknown fields are refused, so that a typing error is not lost data."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Envelope(BaseModel):
    """What every event carries beside its payload."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    #: The producer's idempotency key: the same id with the same content is recorded once.
    id: Name | None = None
    schema_version: Literal[1] = 1
    #: When it happened; the time of recording when absent.
    occurred_at: Moment | None = None
    session_id: Name | None = None
    #: Who did it.
    actor: Name | None = None
    #: The id of the event that caused this one.
    causation_id: Name | None = None
    #: The request or task that this event belongs to.
    correlation_id: Name | None = None


# -- conversations ----------------------------------------------------------------------------------------------------


class Session(Payload):
    """A conversation begins."""

    channel: Name = "api"
    user_id: Name | None = None
    metadata: dict[str, ExactJson] = {}


class SessionStarted(Envelope):
    """`session.started`: a conversation began; `session_id` names it."""

    type: Literal["session.started"] = "session.started"
    session_id: Name  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues] -- required here
    payload: Session = Session()


class SessionEnd(Payload):
    """A conversation ends."""

    summary: Text | None = None


class SessionEnded(Envelope):
    """`session.ended`: a conversation ended; `session_id` names it."""

    type: Literal["session.ended"] = "session.ended"
    session_id: Name  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues] -- required here
    payload: SessionEnd = SessionEnd()


class Turn(Payload):
    """One turn of several that are told as one message."""

    role: Role
    name: Name | None = None
    text: str


class Attachment(Payload):
    """A file beside a message; its bytes stay where `uri` points."""

    media_type: Name
    caption: Text | None = None
    uri: Text | None = None


class Message(Payload):
    """What was said: exactly one of `text`, `turns` and `data`."""

    role: Role
    #: The speaker's name.
    name: Name | None = None
    #: May be empty: a picture without words, a model that said nothing.
    text: str | None = None
    turns: Annotated[tuple[Turn, ...], Field(min_length=1)] | None = None
    #: Any JSON, for messages that are not text.
    data: ExactJson = None
    attachments: tuple[Attachment, ...] = ()

    @model_validator(mode="after")
    def _has_one_body(self) -> Message:
        if (self.text is not None) + (self.turns is not None) + (self.data is not None) != 1:
            raise ValueError("give exactly one of text, turns and data")
        return self


class MessageAdded(Envelope):
    """`message.added`: someone said something."""

    type: Literal["message.added"] = "message.added"
    payload: Message


class Action(Payload):
    """Something an agent or a tool did."""

    text: Text
    tool: Name | None = None
    outcome: Outcome | None = None
    importance: Importance = 5
    tags: tuple[Name, ...] = ()
    details: ExactJson = None


class ActionRecorded(Envelope):
    """`action.recorded`: an agent or a tool did something."""

    type: Literal["action.recorded"] = "action.recorded"
    payload: Action


class Observation(Payload):
    """Something noticed, not said."""

    text: Text
    importance: Importance = 5
    tags: tuple[Name, ...] = ()


class ObservationRecorded(Envelope):
    """`observation.recorded`: something was noticed."""

    type: Literal["observation.recorded"] = "observation.recorded"
    payload: Observation


# -- knowledge that a producer states ---------------------------------------------------------------------------------


class Fact(Payload):
    """A statement: subject, predicate, object, with the time it holds for."""

    subject: Name
    predicate: Name
    object: Text
    type: FactType = "fact"
    confidence: Confidence = 1.0
    source_type: SourceType = "stated"
    valid_from: Moment | None = None
    valid_until: Moment | None = None
    #: Of two active memories with the same key the better, then the newer one supersedes the other; by default facts
    #: with one value at a time (`lives in`) conflict by subject and predicate.
    conflict_key: Name | None = None
    #: Days until it is stale; by its type when absent.
    ttl_days: Annotated[int, Field(ge=1, le=36_500)] | None = None
    layer: Layer = "conversational"
    #: Events that the fact was read from.
    source_events: tuple[Name, ...] = ()


class FactStated(Envelope):
    """`fact.stated`: someone stated a fact."""

    type: Literal["fact.stated"] = "fact.stated"
    payload: Fact


class FactCorrection(Payload):
    """What is right instead: about a fact by id, or by subject and predicate."""

    subject: Name
    predicate: Name
    object: Text
    #: The fact that was wrong, when it is known.
    corrects: Name | None = None
    valid_from: Moment | None = None
    #: Events that the correction was read from.
    source_events: tuple[Name, ...] = ()


class FactCorrected(Envelope):
    """`fact.corrected`: a user set a fact right. A correction always wins."""

    type: Literal["fact.corrected"] = "fact.corrected"
    payload: FactCorrection


class FactRetraction(Payload):
    """Which fact no longer holds."""

    fact_id: Name
    reason: Text | None = None


class FactRetracted(Envelope):
    """`fact.retracted`: a fact was taken back."""

    type: Literal["fact.retracted"] = "fact.retracted"
    payload: FactRetraction


class Preference(Payload):
    """How someone likes things done."""

    category: PreferenceCategory = "other"
    key: Name
    value: Text
    strength: Confidence = 0.5
    #: A standing instruction: holds in every conversation, whatever it is about.
    standing: bool = False
    source_type: Literal["stated", "inferred", "corrected"] = "stated"
    source_events: tuple[Name, ...] = ()


class PreferenceStated(Envelope):
    """`preference.stated`: someone said how they like things done."""

    type: Literal["preference.stated"] = "preference.stated"
    payload: Preference


class Entity(Payload):
    """A person, place, project … and the names it goes by."""

    name: Name
    type: EntityType = "other"
    description: Text | None = None
    aliases: tuple[Name, ...] = ()
    #: Events that it was read from.
    source_events: tuple[Name, ...] = ()


class EntityDescribed(Envelope):
    """`entity.described`: someone told who or what an entity is."""

    type: Literal["entity.described"] = "entity.described"
    payload: Entity


class Relationship(Payload):
    """How two entities are related."""

    source: Name
    type: Name
    target: Name
    confidence: Confidence = 1.0
    source_events: tuple[Name, ...] = ()


class RelationshipStated(Envelope):
    """`relationship.stated`: someone told how two entities are related."""

    type: Literal["relationship.stated"] = "relationship.stated"
    payload: Relationship


class Procedure(Payload):
    """How something is done."""

    name: Name
    #: When to use it.
    trigger: Text
    steps: Annotated[tuple[Text, ...], Field(min_length=1)]
    context: Text | None = None
    confidence: Confidence = 0.5
    #: Events that it was read from.
    source_events: tuple[Name, ...] = ()


class ProcedureRecorded(Envelope):
    """`procedure.recorded`: a way of doing something was learned."""

    type: Literal["procedure.recorded"] = "procedure.recorded"
    payload: Procedure


class ProcedureUse(Payload):
    """How a procedure went."""

    procedure_id: Name
    outcome: Literal["success", "failure", "partial"]


class ProcedureUsed(Envelope):
    """`procedure.used`: a procedure was followed."""

    type: Literal["procedure.used"] = "procedure.used"
    payload: ProcedureUse


class DocumentRelation(Payload):
    """How a document bears on another one, or on an entity."""

    #: `governs`, `supersedes`, `mentions`, `contradicts` … or any other.
    type: Name
    #: Another document's id, or an entity's name.
    target: Name
    #: How much it counts in a walk over the graph; by its type when absent.
    weight: Confidence | None = None


class Document(Payload):
    """A curated text: a runbook, a policy, a page."""

    document_id: Name
    title: Text
    text: Text
    uri: Text | None = None
    metadata: dict[str, ExactJson] = {}
    relations: tuple[DocumentRelation, ...] = ()


class DocumentAdded(Envelope):
    """`document.added`: a curated document was added or replaced."""

    type: Literal["document.added"] = "document.added"
    payload: Document


class DocumentRemoval(Payload):
    """Which document goes."""

    document_id: Name


class DocumentRemoved(Envelope):
    """`document.removed`: a curated document was taken out."""

    type: Literal["document.removed"] = "document.removed"
    payload: DocumentRemoval


# -- care of the memory -----------------------------------------------------------------------------------------------


class MemoryReference(Payload):
    """Which memory is meant, and why."""

    memory_id: Name
    reason: Text | None = None


class MemoryPinned(Envelope):
    """`memory.pinned`: a memory is to be kept whatever its age."""

    type: Literal["memory.pinned"] = "memory.pinned"
    payload: MemoryReference


class MemoryInvalidated(Envelope):
    """`memory.invalidated`: a memory is known to be wrong."""

    type: Literal["memory.invalidated"] = "memory.invalidated"
    payload: MemoryReference


class RetrievalRating(Payload):
    """How good a retrieval was, or some memories in it."""

    trace_id: Name
    rating: Literal["useful", "noise", "misleading"]
    #: Which memories are meant; the whole answer when there are none.
    memory_ids: Annotated[list[Name], Field(max_length=100)] = Field(default_factory=list[Name])
    reason: Text | None = None


class RetrievalRated(Envelope):
    """`retrieval.rated`: somebody said how good a retrieval was. Rated memories come up sooner or later than others."""

    type: Literal["retrieval.rated"] = "retrieval.rated"
    payload: RetrievalRating


class Erasure(Payload):
    """Why a namespace is erased."""

    reason: Text | None = None


class NamespaceErased(Envelope):
    """`namespace.erased`: everything about this owner is to be forgotten."""

    type: Literal["namespace.erased"] = "namespace.erased"
    payload: Erasure = Erasure()


# -- derived by jobs --------------------------------------------------------------------------------------------------


class Summary(Payload):
    """A summary and what it stands for."""

    text: Text
    source_events: Annotated[tuple[Name, ...], Field(min_length=1)]
    importance: Importance = 5
    tags: tuple[Name, ...] = ()
    #: Estimated tokens of `text`, and of what it stands for.
    token_count: Annotated[int, Field(ge=0)] | None = None
    source_tokens: Annotated[int, Field(ge=0)] | None = None
    expires_at: Moment | None = None


class EpisodesCompressed(Envelope):
    """`episodes.compressed`: raw episodes of a session became one."""

    type: Literal["episodes.compressed"] = "episodes.compressed"
    payload: Summary


class EpisodeDistilled(Envelope):
    """`episode.distilled`: a compressed episode became its essence."""

    type: Literal["episode.distilled"] = "episode.distilled"
    payload: Summary


class EpisodeIds(Payload):
    """Which episodes are meant."""

    episode_ids: Annotated[tuple[Name, ...], Field(min_length=1)]


class EpisodesExpired(Envelope):
    """`episodes.expired`: episodes past their time leave the read models."""

    type: Literal["episodes.expired"] = "episodes.expired"
    payload: EpisodeIds


class DateMention(Payload):
    """A date that a message names, as the range it means: `last Friday` → that day."""

    source_event: Name
    #: The words, as they were said.
    text: Text
    start: Moment
    #: Exclusive.
    end: Moment


class Question(Payload):
    """A question that a message asks."""

    source_event: Name
    text: Text


class Extraction(Payload):
    """What was read out of events."""

    #: The events that something was read from; the last one looked at when nothing was.
    source_events: Annotated[tuple[Name, ...], Field(min_length=1)]
    #: Version of the last event looked at: where the next extraction begins.
    through: Annotated[int, Field(ge=1)] | None = None
    facts: tuple[Fact, ...] = ()
    #: What failed the quality gate: kept to be seen, never recalled.
    rejected: tuple[Fact, ...] = ()
    corrections: tuple[FactCorrection, ...] = ()
    preferences: tuple[Preference, ...] = ()
    entities: tuple[Entity, ...] = ()
    relationships: tuple[Relationship, ...] = ()
    procedures: tuple[Procedure, ...] = ()
    dates: tuple[DateMention, ...] = ()
    questions: tuple[Question, ...] = ()
    #: Who read it: `rules` or a model's name.
    extractor: Name


class FactsExtracted(Envelope):
    """`facts.extracted`: knowledge was read out of events."""

    type: Literal["facts.extracted"] = "facts.extracted"
    payload: Extraction


class Supersession(Payload):
    """Which fact another one replaces."""

    fact_id: Name
    superseded_by: Name
    valid_until: Moment | None = None


class FactSuperseded(Envelope):
    """`fact.superseded`: a newer or better fact replaced one."""

    type: Literal["fact.superseded"] = "fact.superseded"
    payload: Supersession


class Merge(Payload):
    """Which memories became one."""

    kept_id: Name
    merged_ids: Annotated[tuple[Name, ...], Field(min_length=1)]
    similarity: Confidence | None = None


class MemoriesMerged(Envelope):
    """`memories.merged`: near-duplicates became one memory."""

    type: Literal["memories.merged"] = "memories.merged"
    payload: Merge


class StatusChange(Payload):
    """A memory's new status."""

    memory_id: Name
    status: MemoryStatus
    reason: Text | None = None


class MemoryStatusChanged(Envelope):
    """`memory.status_changed`: a memory's status changed."""

    type: Literal["memory.status_changed"] = "memory.status_changed"
    payload: StatusChange


class DecayedFact(Payload):
    """A fact and what is left of its confidence."""

    fact_id: Name
    confidence: Confidence


class Decay(Payload):
    """Facts that nobody has confirmed for long."""

    facts: Annotated[tuple[DecayedFact, ...], Field(min_length=1)]


class FactsDecayed(Envelope):
    """`facts.decayed`: inferred facts lost confidence with time."""

    type: Literal["facts.decayed"] = "facts.decayed"
    payload: Decay


class Cluster(Payload):
    """Memories about the same thing."""

    label: Text
    memory_ids: Annotated[tuple[Name, ...], Field(min_length=1)]


class Clusters(Payload):
    """All clusters of a namespace; they replace the ones before."""

    clusters: tuple[Cluster, ...]


class MemoriesClustered(Envelope):
    """`memories.clustered`: memories were grouped by what they are about."""

    type: Literal["memories.clustered"] = "memories.clustered"
    payload: Clusters


class DayDigest(Payload):
    """A day in a few sentences."""

    #: Such as 2026-11-20 (UTC).
    day: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    text: Text
    source_events: Annotated[tuple[Name, ...], Field(min_length=1)]


class DayDigested(Envelope):
    """`day.digested`: what happened on a day was told in a few sentences."""

    type: Literal["day.digested"] = "day.digested"
    payload: DayDigest


class TurnSummary(Payload):
    """A long message, and what it says in short."""

    event_id: Name
    text: Text


class TurnSummaries(Payload):
    """Short forms of long messages."""

    summaries: Annotated[tuple[TurnSummary, ...], Field(min_length=1)]


class TurnsSummarised(Envelope):
    """`turns.summarised`: long messages got a short form."""

    type: Literal["turns.summarised"] = "turns.summarised"
    payload: TurnSummaries


class ConversationCompacted(Envelope):
    """`conversation.compacted`: the oldest turns of a running conversation became a summary."""

    type: Literal["conversation.compacted"] = "conversation.compacted"
    payload: Summary


class ObservationBatch(Payload):
    """Observations made from turns."""

    observations: Annotated[tuple[Text, ...], Field(min_length=1)]
    #: The turns that were observed, or the events whose observations were condensed.
    source_events: Annotated[tuple[Name, ...], Field(min_length=1)]
    #: Version of the last event looked at.
    through: Annotated[int, Field(ge=1)] | None = None


class ObservationsRecorded(Envelope):
    """`observations.recorded`: an observer made notes on unobserved turns."""

    type: Literal["observations.recorded"] = "observations.recorded"
    payload: ObservationBatch


class ObservationsReflected(Envelope):
    """`observations.reflected`: observations were condensed."""

    type: Literal["observations.reflected"] = "observations.reflected"
    payload: ObservationBatch


PRODUCER_EVENTS: tuple[type[Envelope], ...] = (
    SessionStarted,
    SessionEnded,
    MessageAdded,
    ActionRecorded,
    ObservationRecorded,
    FactStated,
    FactCorrected,
    FactRetracted,
    PreferenceStated,
    EntityDescribed,
    RelationshipStated,
    ProcedureRecorded,
    ProcedureUsed,
    DocumentAdded,
    DocumentRemoved,
    MemoryPinned,
    MemoryInvalidated,
    RetrievalRated,
    NamespaceErased,
)
DERIVED_EVENTS: tuple[type[Envelope], ...] = (
    EpisodesCompressed,
    EpisodeDistilled,
    EpisodesExpired,
    FactsExtracted,
    FactSuperseded,
    MemoriesMerged,
    MemoryStatusChanged,
    FactsDecayed,
    MemoriesClustered,
    DayDigested,
    TurnsSummarised,
    ConversationCompacted,
    ObservationsRecorded,
    ObservationsReflected,
)


def type_of(event_class: type[Envelope]) -> str:
    """Return the dotted type that `event_class` stands for."""
    name: Any = event_class.model_fields["type"].default
    return name


#: Every event class by its dotted type.
EVENT_CLASSES: dict[str, type[Envelope]] = {type_of(cls): cls for cls in PRODUCER_EVENTS + DERIVED_EVENTS}

#: Types whose payload may say up to which version a job has read: never beyond the version of the event itself.
THROUGH_TYPES: frozenset[str] = frozenset(
    {type_of(FactsExtracted), type_of(ObservationsRecorded), type_of(ObservationsReflected)}
)

#: Any event that a producer may append (`validation.producer_draft`), told apart by `type`: what OpenAPI describes.
NewEvent = Annotated[
    SessionStarted
    | SessionEnded
    | MessageAdded
    | ActionRecorded
    | ObservationRecorded
    | FactStated
    | FactCorrected
    | FactRetracted
    | PreferenceStated
    | EntityDescribed
    | RelationshipStated
    | ProcedureRecorded
    | ProcedureUsed
    | DocumentAdded
    | DocumentRemoved
    | MemoryPinned
    | MemoryInvalidated
    | RetrievalRated,
    Field(discriminator="type"),
]
