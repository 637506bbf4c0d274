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
    Entity,
    Fact,
    FactCorrection,
    Preference,
    Procedure,
    Relationship,
)


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
