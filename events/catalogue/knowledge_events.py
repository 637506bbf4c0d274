"""Knowledge events: facts, preferences, entities, procedures and documents that a producer states."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from recollect.events.catalogue.event_base import (
    Confidence,
    EntityType,
    Envelope,
    ExactJson,
    FactType,
    Layer,
    Moment,
    Name,
    Payload,
    PreferenceCategory,
    SourceType,
    Text,
)


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
    metadata: dict[str, ExactJson] = {}  # noqa: RUF012 -- pydantic copies a default
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


KNOWLEDGE_EVENTS: tuple[type[Envelope], ...] = (
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
)
