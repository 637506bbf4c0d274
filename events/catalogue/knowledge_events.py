"""Knowledge events: facts, preferences, entities, procedures and documents that a producer states."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

from pydantic import Field, model_validator

from recollect.events.catalogue.event_base import (
    Confidence,
    EntityType,
    Envelope,
    ExactJson,
    FactType,
    Importance,
    Labels,
    Metadata,
    Moment,
    Name,
    Payload,
    PreferenceCategory,
    SourceType,
    StatementKind,
    Text,
)
from recollect.events.memory_kinds import Layer

#: The predicate of what a person says that is not split into subject, predicate and object.
SAYS = "says"


class Evidence(Payload):
    """The words of an event that state a fact, by their place in its text."""

    event: Name
    #: Characters from the beginning of the text; the end is exclusive.
    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=1)]


class Fact(Payload):
    """A statement, as a sentence or as subject, predicate and object, with the time for which it is valid.

    A sentence alone has the predicate `says`, and is its own object.
    """

    subject: Name
    predicate: Name
    object: Text
    #: The self-contained sentence; absent when subject, predicate and object make one.
    statement: Text | None = None
    #: What it is about: home, work, health, …
    statement_kind: StatementKind | None = None
    #: Where it is stated.
    evidence: tuple[Evidence, ...] = ()
    type: FactType = "fact"
    confidence: Confidence = 1.0
    source_type: SourceType = "stated"
    valid_from: Moment | None = None
    valid_until: Moment | None = None
    #: When it was said: the time of the message from which the fact was extracted; the time of the event when absent.
    stated_at: Moment | None = None
    #: Of two active facts with the same key, the one stated later supersedes the other; an inferred fact
    #: supersedes inferred ones only. By default, facts with one value at a time (`lives in`) conflict by subject and
    #: predicate, and numbers of one thing (`has` `two cats`) by that thing.
    conflict_key: Name | None = None
    #: Days until the fact is stale; depends on its type when absent.
    ttl_days: Annotated[int, Field(ge=1, le=36_500)] | None = None
    layer: Layer = "conversational"
    #: Who said it, of a fact about another person; absent for what people say of themselves, and for what a producer
    #: states.
    stated_by: Name | None = None
    #: Events from which the fact was extracted.
    source_events: tuple[Name, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _sentence_alone(cls, fields: Any) -> Any:
        """Complete a sentence that comes without predicate and object."""
        if not isinstance(fields, dict):
            return fields
        given = cast("dict[str, Any]", fields)
        if "statement" in given and not {"predicate", "object"} & given.keys():
            return given | {"predicate": SAYS, "object": given["statement"]}
        return given


class FactStated(Envelope):
    """`fact.stated`: a producer stated a fact, with the time for which it is valid."""

    type: Literal["fact.stated"] = "fact.stated"
    payload: Fact


class FactCorrection(Payload):
    """The correct value of a fact, which is named by id, or by subject and predicate."""

    subject: Name
    predicate: Name
    object: Text
    #: The id of the wrong fact; the facts with this subject and predicate when absent.
    corrects: Name | None = None
    #: The wrong object, of a predicate that has several values at a time.
    corrects_object: Text | None = None
    valid_from: Moment | None = None
    #: When it was said; the time of the event when absent. It sets right what was said before.
    stated_at: Moment | None = None
    #: Who said it, as in `Fact`: it corrects what the same speaker said.
    stated_by: Name | None = None
    #: Events from which the correction was extracted.
    source_events: tuple[Name, ...] = ()


class FactCorrected(Envelope):
    """`fact.corrected`: a user corrected a fact. A correction supersedes every statement that was said before it."""

    type: Literal["fact.corrected"] = "fact.corrected"
    payload: FactCorrection


class FactEnding(Payload):
    """What no longer holds of a subject: the facts, preferences and relationships that all given fields fit."""

    subject: Name
    #: The predicates of the facts that it ends, such as `works at`; all when empty.
    predicates: tuple[Name, ...] = ()
    #: The types of the facts that it ends; all when empty.
    types: tuple[FactType, ...] = ()
    #: Words that name what ends; all values of `predicates` when absent.
    about: Text | None = None
    #: The exact object of the facts with `predicates`, or without these the value of the preference, that it ends;
    #: `about` and `types` do not count then.
    object: Text | None = None
    #: It is to be forgotten, and not only over.
    retracted: bool = False
    #: When it was said; the time of the event when absent.
    stated_at: Moment | None = None
    #: Who said it, as in `Fact`: it ends what the same speaker said.
    stated_by: Name | None = None
    #: Events from which the ending was extracted.
    source_events: tuple[Name, ...] = ()


class Doubt(FactEnding):
    """What may no longer hold of a subject: it stays, and is shown with the sentence that says so, which is `about`."""

    #: The message whose words may be wrong or no longer hold, in place of a memory. `about` is absent then, and the
    #: message that says so is shown as a whole.
    event: Name | None = None
    #: That it no longer holds.
    probability: Annotated[float, Field(ge=0, lt=1)]


class FactRetraction(Payload):
    """The fact to retract, and the reason."""

    fact_id: Name
    reason: Text | None = None


class FactRetracted(Envelope):
    """`fact.retracted`: a producer retracted a fact."""

    type: Literal["fact.retracted"] = "fact.retracted"
    payload: FactRetraction


class Preference(Payload):
    """A preference of a user."""

    category: PreferenceCategory = "other"
    #: The subject of the preference, such as `answer length`.
    key: Name
    value: Text
    strength: Confidence = 0.5
    #: A standing instruction, which applies to every conversation independent of its topic.
    standing: bool = False
    source_type: SourceType = "stated"
    #: Whose preference it is; that of the user when absent. Two people's preferences never supersede each other.
    subject: Name | None = None
    #: When it was said; the time of the event when absent.
    stated_at: Moment | None = None
    source_events: tuple[Name, ...] = ()


class PreferenceStated(Envelope):
    """`preference.stated`: a producer stated a user's preference."""

    type: Literal["preference.stated"] = "preference.stated"
    payload: Preference


class Entity(Payload):
    """A person, place, project … with its names."""

    name: Name
    type: EntityType = "other"
    #: How sure the type is. At 1 it is stated and holds until another one is stated; below, the evidence of all events
    #: decides.
    confidence: Confidence = 1.0
    description: Text | None = None
    #: Other names of the entity. Facts about them are facts about it, until `entity.separated`.
    aliases: tuple[Name, ...] = ()
    importance: Importance | None = None
    #: Labels of the producer, such as a customer's number. At most 8 KiB and 5 levels.
    metadata: Metadata = {}  # noqa: RUF012 -- pydantic copies a default
    #: Events from which the entity was extracted.
    source_events: tuple[Name, ...] = ()


class EntityDescribed(Envelope):
    """`entity.described`: a producer described an entity."""

    type: Literal["entity.described"] = "entity.described"
    payload: Entity


class EntitySeparation(Payload):
    """Two names that were taken for those of one entity, and the reason."""

    #: A name of the entity that keeps its other names.
    name: Name
    #: The name of another entity.
    alias: Name
    reason: Text | None = None


class EntitySeparated(Envelope):
    """`entity.separated`: a producer undid a merge. The names stay apart until a producer states the alias again."""

    type: Literal["entity.separated"] = "entity.separated"
    payload: EntitySeparation


class Relationship(Payload):
    """A directed relationship between two entities."""

    #: An entity's name.
    source: Name
    #: Such as `works_for`.
    type: Name
    #: An entity's name.
    target: Name
    confidence: Confidence = 1.0
    #: Any further values, such as `{"since": "2024"}`. At most 8 KiB and 5 levels.
    properties: Metadata = {}  # noqa: RUF012 -- pydantic copies a default
    #: An inferred husband takes the place of inferred ones only.
    source_type: SourceType = "stated"
    #: When it was said; the time of the event when absent.
    stated_at: Moment | None = None
    #: Who said it, of a relationship of another person.
    stated_by: Name | None = None
    source_events: tuple[Name, ...] = ()


class RelationshipStated(Envelope):
    """`relationship.stated`: a producer stated a relationship between two entities."""

    type: Literal["relationship.stated"] = "relationship.stated"
    payload: Relationship


class Procedure(Payload):
    """A procedure: the steps of a task."""

    name: Name
    #: The situation in which to use the procedure.
    trigger: Text
    steps: Annotated[tuple[Text, ...], Field(min_length=1)]
    context: Text | None = None
    confidence: Confidence = 0.5
    #: Events from which the procedure was extracted.
    source_events: tuple[Name, ...] = ()


class ProcedureRecorded(Envelope):
    """`procedure.recorded`: a producer recorded a procedure."""

    type: Literal["procedure.recorded"] = "procedure.recorded"
    payload: Procedure


class ProcedureUse(Payload):
    """The outcome of a use of a procedure."""

    procedure_id: Name
    outcome: Literal["success", "failure", "partial"]


class ProcedureUsed(Envelope):
    """`procedure.used`: an agent used a procedure."""

    type: Literal["procedure.used"] = "procedure.used"
    payload: ProcedureUse


class DocumentRelation(Payload):
    """A relation of a document to another document or to an entity."""

    #: `governs`, `supersedes`, `mentions`, `contradicts` … or any other.
    type: Name
    #: Another document's id, or an entity's name.
    target: Name
    #: The weight of the edge in graph retrieval; depends on the type when absent.
    weight: Confidence | None = None


class Document(Payload):
    """A curated text, such as a runbook, a policy or a page."""

    document_id: Name
    title: Text
    text: Text
    uri: Text | None = None
    metadata: dict[str, ExactJson] = {}  # noqa: RUF012 -- pydantic copies a default
    relations: tuple[DocumentRelation, ...] = ()
    #: What the server noticed about the text.
    labels: Labels = ()


class DocumentAdded(Envelope):
    """`document.added`: a producer added or replaced a curated document, such as a runbook or a page."""

    type: Literal["document.added"] = "document.added"
    payload: Document


class DocumentRemoval(Payload):
    """The document to remove."""

    document_id: Name


class DocumentRemoved(Envelope):
    """`document.removed`: a producer removed a curated document."""

    type: Literal["document.removed"] = "document.removed"
    payload: DocumentRemoval


KNOWLEDGE_EVENTS: tuple[type[Envelope], ...] = (
    FactStated,
    FactCorrected,
    FactRetracted,
    PreferenceStated,
    EntityDescribed,
    EntitySeparated,
    RelationshipStated,
    ProcedureRecorded,
    ProcedureUsed,
    DocumentAdded,
    DocumentRemoved,
)
