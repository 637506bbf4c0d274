"""Derived events: summaries, extracted knowledge and changes of memories that jobs record."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from recollect.events.catalogue.event_base import (
    Confidence,
    Envelope,
    Importance,
    MemoryStatus,
    Moment,
    Name,
    Payload,
    Text,
)
from recollect.events.catalogue.knowledge_events import (
    Doubt,
    Entity,
    Fact,
    FactCorrection,
    FactEnding,
    Preference,
    Procedure,
    Relationship,
)


class Summary(Payload):
    """A summary of several events."""

    text: Text
    source_events: Annotated[tuple[Name, ...], Field(min_length=1)]
    importance: Importance = 5
    tags: tuple[Name, ...] = ()
    #: Estimated tokens of `text`.
    token_count: Annotated[int, Field(ge=0)] | None = None
    #: Estimated tokens of the summarised events.
    source_tokens: Annotated[int, Field(ge=0)] | None = None
    expires_at: Moment | None = None


class EpisodesCompressed(Envelope):
    """`episodes.compressed`: a job summarised raw episodes of a session."""

    type: Literal["episodes.compressed"] = "episodes.compressed"
    payload: Summary


class EpisodeDistilled(Envelope):
    """`episode.distilled`: a job shortened a summary further."""

    type: Literal["episode.distilled"] = "episode.distilled"
    payload: Summary


class EpisodeIds(Payload):
    """The ids of episodes."""

    episode_ids: Annotated[tuple[Name, ...], Field(min_length=1)]


class EpisodesExpired(Envelope):
    """`episodes.expired`: a job removed expired episodes from the read model."""

    type: Literal["episodes.expired"] = "episodes.expired"
    payload: EpisodeIds


class DateMention(Payload):
    """A date mentioned in a message, as a range of time: `last Friday` → that day."""

    source_event: Name
    #: The words of the message.
    text: Text
    start: Moment
    #: Exclusive.
    end: Moment
    #: How probable it is that the words mean this range: `on Friday` may be the last Friday or the next one.
    probability: Confidence = 1.0


class Question(Payload):
    """A question in a message."""

    source_event: Name
    text: Text


class Extraction(Payload):
    """Knowledge that was extracted from events."""

    #: The events from which knowledge was extracted; the last event read when no event gave any.
    source_events: Annotated[tuple[Name, ...], Field(min_length=1)]
    #: Version of the last event read; the next extraction begins after it.
    through: Annotated[int, Field(ge=1)] | None = None
    #: Version of the last event that a language model has read; that of `through` when absent, so that a model that is
    #: configured later reads the messages from then on.
    llm_through: Annotated[int, Field(ge=0)] | None = None
    facts: tuple[Fact, ...] = ()
    #: Facts that failed the quality gate: stored for inspection, never retrieved.
    rejected: tuple[Fact, ...] = ()
    corrections: tuple[FactCorrection, ...] = ()
    endings: tuple[FactEnding, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    preferences: tuple[Preference, ...] = ()
    entities: tuple[Entity, ...] = ()
    relationships: tuple[Relationship, ...] = ()
    procedures: tuple[Procedure, ...] = ()
    dates: tuple[DateMention, ...] = ()
    questions: tuple[Question, ...] = ()
    #: `rules`, or the name of a language model.
    extractor: Name


class FactsExtracted(Envelope):
    """`facts.extracted`: a job extracted knowledge from events."""

    type: Literal["facts.extracted"] = "facts.extracted"
    payload: Extraction


class Supersession(Payload):
    """A fact, and the fact that supersedes it."""

    fact_id: Name
    superseded_by: Name
    valid_until: Moment | None = None


class FactSuperseded(Envelope):
    """`fact.superseded`: a newer or more reliable fact superseded a fact."""

    type: Literal["fact.superseded"] = "fact.superseded"
    payload: Supersession


class Merge(Payload):
    """The memories of a merge."""

    #: The memory that stays.
    kept_id: Name
    #: The memories that were merged into it.
    merged_ids: Annotated[tuple[Name, ...], Field(min_length=1)]
    similarity: Confidence | None = None


class MemoriesMerged(Envelope):
    """`memories.merged`: a job merged near-duplicate memories."""

    type: Literal["memories.merged"] = "memories.merged"
    payload: Merge


class StatusChange(Payload):
    """The new status of a memory."""

    memory_id: Name
    status: MemoryStatus
    reason: Text | None = None


class MemoryStatusChanged(Envelope):
    """`memory.status_changed`: a job changed the status of a memory."""

    type: Literal["memory.status_changed"] = "memory.status_changed"
    payload: StatusChange


class DecayedFact(Payload):
    """A fact and its reduced confidence."""

    fact_id: Name
    confidence: Confidence


class Decay(Payload):
    """Facts that have not been confirmed for long, with their reduced confidence."""

    facts: Annotated[tuple[DecayedFact, ...], Field(min_length=1)]


class FactsDecayed(Envelope):
    """`facts.decayed`: a job reduced the confidence of inferred facts."""

    type: Literal["facts.decayed"] = "facts.decayed"
    payload: Decay


class Cluster(Payload):
    """Memories about one topic."""

    label: Text
    memory_ids: Annotated[tuple[Name, ...], Field(min_length=1)]


class Clusters(Payload):
    """All clusters of a namespace; they replace the earlier clusters."""

    clusters: tuple[Cluster, ...]


class MemoriesClustered(Envelope):
    """`memories.clustered`: a job of an earlier release grouped the memories by topic; nothing reads it any more."""

    type: Literal["memories.clustered"] = "memories.clustered"
    payload: Clusters


class DayDigest(Payload):
    """A summary of one day in a few sentences."""

    #: Such as 2026-11-20 (UTC).
    day: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    text: Text
    source_events: Annotated[tuple[Name, ...], Field(min_length=1)]


class DayDigested(Envelope):
    """`day.digested`: a job of an earlier release summarised the events of a day; nothing reads it any more."""

    type: Literal["day.digested"] = "day.digested"
    payload: DayDigest


class TurnSummary(Payload):
    """The summary of one long message."""

    event_id: Name
    text: Text


class TurnSummaries(Payload):
    """Summaries of long messages."""

    summaries: Annotated[tuple[TurnSummary, ...], Field(min_length=1)]


class TurnsSummarised(Envelope):
    """`turns.summarised`: a job summarised long messages."""

    type: Literal["turns.summarised"] = "turns.summarised"
    payload: TurnSummaries


class ConversationCompacted(Envelope):
    """`conversation.compacted`: a job summarised the oldest turns of a running conversation."""

    type: Literal["conversation.compacted"] = "conversation.compacted"
    payload: Summary


class ObservationBatch(Payload):
    """Observations about turns of a conversation."""

    observations: Annotated[tuple[Text, ...], Field(min_length=1)]
    #: The observed turns, or the events whose observations were condensed.
    source_events: Annotated[tuple[Name, ...], Field(min_length=1)]
    #: Version of the last event read.
    through: Annotated[int, Field(ge=1)] | None = None


class ObservationsRecorded(Envelope):
    """`observations.recorded`: a job recorded observations about new turns."""

    type: Literal["observations.recorded"] = "observations.recorded"
    payload: ObservationBatch


class ObservationsReflected(Envelope):
    """`observations.reflected`: a job condensed observations."""

    type: Literal["observations.reflected"] = "observations.reflected"
    payload: ObservationBatch


class Quarantine(Payload):
    """A memory that waits for a review, and what the server noticed about it."""

    memory_id: Name
    kind: Literal["memory", "document"] = "memory"
    reasons: Annotated[tuple[Name, ...], Field(min_length=1)]


class MemoryQuarantined(Envelope):
    """`memory.quarantined`: the server holds a memory back from retrieval until it is reviewed."""

    type: Literal["memory.quarantined"] = "memory.quarantined"
    payload: Quarantine


class Skip(Payload):
    """An event that cannot be projected, and why it is left out."""

    event_id: Name
    reason: Text


class EventSkipped(Envelope):
    """`event.skipped`: an operator leaves an event out of the read models, as long as it cannot be projected."""

    type: Literal["event.skipped"] = "event.skipped"
    payload: Skip


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
    MemoryQuarantined,
    EventSkipped,
)
