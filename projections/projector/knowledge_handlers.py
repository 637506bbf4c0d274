"""Knowledge handlers: apply events about facts and other knowledge to the batch of a read model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from recollect.events.envelope import RecordedEvent, parse_rfc3339
from recollect.events.memory_kinds import MEMORY_KINDS
from recollect.projections.projector.episode_updates import Status
from recollect.projections.projector.fact_endings import Ending
from recollect.projections.projector.knowledge import relation_type
from recollect.projections.projector.stated_fact import StatedMemory, said_us, stated_fact, stated_preference
from recollect.projections.projector.write_batch import WriteBatch

#: Events that state a memory. They are edits when another memory caused them: to record a first statement would take
#: three times as long, and it is undone by forgetting it.
_STATING = tuple(
    kind.event_type for kind in MEMORY_KINDS if kind.event_type and kind.has_status and kind.name != "fact"
)
#: Events that replace the memory which caused them, or which they name.
_UPDATING = (*_STATING, "fact.corrected")
#: Applies one event, given its payload, to a batch.
Handler = Callable[[WriteBatch, RecordedEvent, dict[str, Any]], None]


def _fact_stated(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """Upsert a stated fact."""
    _upsert_fact(batch, event, event.id, payload, extracted=False)


def _fact_corrected(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """Replace facts by a correction."""
    fact = _stated_fact(batch, event, event.id, payload | {"source_type": "corrected"}, extracted=False)
    batch.deferred.add(event, lambda: batch.facts.correct(event, fact))


def _fact_retracted(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """Retract a fact."""
    batch.deferred.add(event, lambda: batch.facts.retract(event, payload["fact_id"]))


def _fact_superseded(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """End a fact that another one replaces."""
    until = payload.get("valid_until")
    batch.deferred.add(
        event,
        lambda: batch.facts.supersede(event, payload["fact_id"], payload["superseded_by"], parse_rfc3339(until)),
    )


def _facts_decayed(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """Set the lower confidence of decayed facts."""
    for fact in payload["facts"]:
        batch.deferred.add(event, lambda fact=fact: batch.facts.decay(event, fact["fact_id"], fact["confidence"]))


def _preference_stated(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """Upsert a preference."""
    _upsert_preference(batch, event, event.id, payload, extracted=False)


def _entity_described(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """Set description and aliases of an entity, and add the evidence for its type."""
    batch.describe(
        event,
        payload["name"],
        kind=payload.get("type", "other"),
        confidence=payload.get("confidence", 1.0),
        sources=payload.get("source_events", ()),
        description=payload.get("description"),
        aliases=payload.get("aliases", []),
        importance=payload.get("importance"),
        metadata=payload.get("metadata"),
    )


def _entity_separated(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """Separate two names that were taken for those of one entity."""
    batch.deferred.add(event, lambda: batch.entities.separate(payload["name"], payload["alias"], event.version))


def _relationship_stated(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """Upsert a relationship."""
    _upsert_relationship(batch, event, event.id, payload)


def _procedure_recorded(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """Add a procedure."""
    _record_procedure(batch, event, event.id, payload)


def _procedure_used(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """Count the outcome of a use of a procedure."""
    batch.deferred.add(event, lambda: batch.knowledge.use_procedure(event, payload))


def _document_added(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """Add a document, or replace one, which can be undone: the changes of a first one would only repeat its text."""

    def add() -> None:
        is_edit = batch.knowledge.has_document(payload["document_id"])
        if is_edit:
            batch.edits.begin()
        batch.knowledge.add_document(event, payload, event.id if is_edit else None)
        if is_edit:
            batch.edits.end(event, None)

    batch.deferred.add(event, add)


def _document_removed(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """Remove a document."""
    batch.deferred.add(event, lambda: batch.knowledge.remove_document(payload["document_id"]))


def _facts_extracted(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """Apply the knowledge extracted from events; ids are the event's id with a letter for the kind and a number."""
    through: int | None = payload.get("through")
    if through is not None:
        # An old log may contain a forged version after the event's own, which would stop extraction.
        batch.set_job_cursor("extraction", min(through, event.version))
    llm_through: int | None = payload.get("llm_through", through)
    if llm_through is not None:
        batch.set_job_cursor("llm reading", min(llm_through, event.version))
    for entity in payload.get("entities", ()):
        _entity_described(batch, event, entity)
    for number, fact in enumerate(payload.get("facts", ())):
        _upsert_fact(batch, event, f"{event.id}#f{number}", fact, extracted=True)
    for number, fact in enumerate(payload.get("rejected", ())):
        rejected = _stated_fact(batch, event, f"{event.id}#r{number}", fact, extracted=True)
        batch.deferred.add(event, lambda rejected=rejected: batch.facts.reject(event, rejected))
    for number, correction in enumerate(payload.get("corrections", ())):
        right = _stated_fact(
            batch, event, f"{event.id}#c{number}", correction | {"source_type": "corrected"}, extracted=True
        )
        batch.deferred.add(event, lambda right=right: batch.facts.correct(event, right))
    for number, ending in enumerate(payload.get("endings", ())):
        _end_facts(batch, event, f"{event.id}#e{number}", ending)
    for number, doubt in enumerate(payload.get("doubts", ())):
        _doubt_facts(batch, event, f"{event.id}#d{number}", doubt)
    for number, preference in enumerate(payload.get("preferences", ())):
        _upsert_preference(batch, event, f"{event.id}#p{number}", preference, extracted=True)
    for number, relationship in enumerate(payload.get("relationships", ())):
        _upsert_relationship(batch, event, f"{event.id}#l{number}", relationship)
    for number, procedure in enumerate(payload.get("procedures", ())):
        _record_procedure(batch, event, f"{event.id}#w{number}", procedure)
    batch.deferred.add(event, lambda: batch.knowledge.add_date_mentions(payload))
    batch.deferred.add(event, lambda: batch.knowledge.add_questions(payload))


def _observations_recorded(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """Add observations."""
    batch.deferred.add(event, lambda: batch.knowledge.add_observations(event, payload))
    batch.deferred.add(event, lambda: batch.memory_edits.set_observation_sources(event, payload["source_events"]))


def _observations_reflected(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """Add observations that condense earlier ones."""
    batch.deferred.add(event, lambda: batch.knowledge.add_observations(event, payload, payload["source_events"]))
    batch.deferred.add(event, lambda: batch.memory_edits.set_observation_sources(event, payload["source_events"]))


def _memory_pinned(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """Pin a memory."""
    batch.episode_updates.pin(event, payload["memory_id"])
    batch.deferred.add(event, lambda: batch.knowledge.pin(payload["memory_id"]))


def _memory_invalidated(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """Set the status of a memory; a fact or preference is also retracted: extraction does not add it again."""
    memory_id: str = payload["memory_id"]
    batch.episode_updates.set_status(event, [memory_id], "invalidated")
    batch.deferred.add(event, lambda: _retract(batch, event, memory_id))
    batch.deferred.add(event, lambda: batch.knowledge.set_status(event, memory_id, "invalidated"))


def _memory_unpinned(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """Remove the pin of a memory."""
    batch.episode_updates.unpin(event, payload["memory_id"])
    batch.deferred.add(event, lambda: batch.memory_edits.unpin(payload["memory_id"]))


def _memory_ended(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """End a memory, which was true until then."""
    ended_at_us = parse_rfc3339(payload.get("ended_at")) or event.occurred_at_us
    for timelines in batch.timelines:
        batch.deferred.add(
            event, lambda timelines=timelines: timelines.end_row(event, payload["memory_id"], ended_at_us)
        )
    batch.deferred.add(event, lambda: batch.memory_edits.end(event, payload["memory_id"]))


def _memory_forgotten(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """Hide a memory and what was derived from it; a forgotten fact or preference is also retracted."""
    memory_id: str = payload["memory_id"]
    kind = payload.get("kind", "memory")
    if kind == "entity":
        entity_id = batch.forget_entity(event, memory_id)
        if entity_id is not None:
            batch.deferred.add(event, lambda: batch.memory_edits.forget_entity(event, entity_id, memory_id))
            batch.deferred.add(event, lambda: batch.entities.forget_entity(entity_id))
        return
    if kind == "document":
        batch.deferred.add(event, lambda: batch.knowledge.remove_document(memory_id))
        return
    if memory_id not in batch.forgotten:
        batch.forgotten.add(memory_id)
        batch.forgettings[event.id] = memory_id
    if event.session_id is not None:
        batch.session(event, is_activity=False).summary = None
    batch.episode_updates.forget(event, memory_id)
    batch.deferred.add(event, lambda: _retract(batch, event, memory_id))
    batch.deferred.add(event, lambda: _forget_source(batch, event, memory_id))
    batch.deferred.add(event, lambda: batch.memory_edits.forget(event, memory_id))
    batch.deferred.add(event, lambda: batch.entities.forget_source(memory_id))


def _memory_status_changed(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """Set the status of a memory."""
    batch.episode_updates.set_status(event, [payload["memory_id"]], payload["status"])
    batch.deferred.add(event, lambda: batch.knowledge.set_status(event, payload["memory_id"], payload["status"]))


def _memory_quarantined(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """Hold a memory back until it is reviewed; of a document, retrieval leaves out the instructions."""
    memory_id: str = payload["memory_id"]
    batch.deferred.add(event, lambda: batch.memory_edits.quarantine(event, payload))
    if payload.get("kind", "memory") == "memory":
        batch.episode_updates.set_status(event, [memory_id], "quarantined")
        batch.deferred.add(event, lambda: batch.knowledge.set_status(event, memory_id, "quarantined"))


def _memory_reviewed(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """Set the status of a memory in quarantine by the decision."""
    memory_id: str = payload["memory_id"]
    status: Status = "active" if payload["decision"] == "approve" else "rejected"
    batch.deferred.add(event, lambda: batch.memory_edits.review(memory_id, payload["decision"]))
    batch.episode_updates.set_status(event, [memory_id], status)
    batch.deferred.add(event, lambda: batch.knowledge.set_status(event, memory_id, status))


def _memories_merged(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """Supersede memories by the memory that they are merged into."""
    merged = [merged_id for merged_id in payload["merged_ids"] if merged_id != payload["kept_id"]]
    batch.episode_updates.set_status(event, merged, "superseded")
    batch.deferred.add(event, lambda: batch.knowledge.merge(event, payload["kept_id"], merged))


def _stated_fact(
    batch: WriteBatch, event: RecordedEvent, id: str, payload: dict[str, Any], *, extracted: bool
) -> StatedMemory:
    """Return the fact of a payload; its subject becomes an entity."""
    entity_id = batch.entity_id(event, payload["subject"])
    return stated_fact(event, id, payload, entity_id=entity_id, extracted=extracted)


def _upsert_fact(batch: WriteBatch, event: RecordedEvent, id: str, payload: dict[str, Any], *, extracted: bool) -> None:
    """Upsert a fact later in the batch."""
    fact = _stated_fact(batch, event, id, payload, extracted=extracted)
    batch.deferred.add(event, lambda: batch.facts.upsert(event, fact))


def _end_facts(batch: WriteBatch, event: RecordedEvent, id: str, payload: dict[str, Any]) -> None:
    """End the facts, preferences and relationships that an ending speaks of, later in the batch."""
    ending = Ending.from_payload(id, payload, said_us(event, payload))
    batch.deferred.add(event, lambda: _end(batch, event, ending))


def _doubt_facts(batch: WriteBatch, event: RecordedEvent, id: str, payload: dict[str, Any]) -> None:
    """Keep later in the batch what may have ended or changed a memory, which stays as it is."""
    doubt = Ending.from_payload(id, payload, said_us(event, payload))
    batch.deferred.add(event, lambda: batch.endings.add(doubt))


def _end(batch: WriteBatch, event: RecordedEvent, ending: Ending) -> None:
    """End what an ending speaks of, also what was said earlier and arrives later."""
    batch.endings.add(ending)
    batch.endings.end_relationships(ending)
    batch.facts.end(event, ending)
    batch.preferences.end(event, ending)


def _retract(batch: WriteBatch, event: RecordedEvent, memory_id: str) -> None:
    """Invalidate a fact or a preference; what was said up to now does not add it again."""
    for timelines in batch.timelines:
        timelines.retract(event, memory_id)


def _forget_source(batch: WriteBatch, event: RecordedEvent, source_id: str) -> None:
    """Undo what only the message `source_id` states, replaces or ends; the facts and preferences before it hold again.

    What no other event states keeps its status: `MemoryEdits.forget` hides it. Nothing is undone for the id of a
    fact or a preference, since a user who forgets a correction does not want the wrong value back.
    """
    if any(timelines.rows.select("id = ?", source_id) for timelines in batch.timelines):
        return
    groups = batch.facts.statements.forget(source_id, batch.endings.forget(source_id))
    for timelines in batch.timelines:
        timelines.refresh_groups(event, groups)


def _upsert_preference(
    batch: WriteBatch, event: RecordedEvent, id: str, payload: dict[str, Any], *, extracted: bool
) -> None:
    """Upsert a preference later in the batch."""
    preference = stated_preference(event, id, payload, extracted=extracted)
    batch.deferred.add(event, lambda: batch.preferences.upsert(event, preference))


def _upsert_relationship(batch: WriteBatch, event: RecordedEvent, id: str, payload: dict[str, Any]) -> None:
    """Upsert a relationship later in the batch; its source and target become entities."""
    source_id, target_id = (batch.entity_id(event, payload[end]) for end in ("source", "target"))
    batch.deferred.add(event, lambda: batch.knowledge.upsert_relationship(event, id, payload, source_id, target_id))
    if properties := payload.get("properties"):
        kind = relation_type(payload["type"])
        batch.deferred.add(event, lambda: batch.memory_edits.set_properties(source_id, kind, target_id, properties))


def _record_procedure(batch: WriteBatch, event: RecordedEvent, id: str, payload: dict[str, Any]) -> None:
    """Add a procedure later in the batch."""
    batch.deferred.add(event, lambda: batch.knowledge.record_procedure(event, id, payload))


def _edit_undone(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """Restore what was there before an edit, or before the undo of it."""
    edit_id: str = payload["event_id"]
    again: bool = payload.get("again", False)
    memory_id = batch.forgettings.get(edit_id)
    if memory_id is not None and again:
        batch.forgotten.add(memory_id)
    elif memory_id is not None:
        batch.forgotten.discard(memory_id)
    batch.deferred.add(event, lambda: _restore(batch, event, edit_id, again), episodes=True)


def _restore(batch: WriteBatch, event: RecordedEvent, edit_id: str, again: bool) -> None:
    """Restore rows, and write the facts and preferences again about which something else was stated since."""
    restored = batch.edits.restore(event, edit_id, again=again)
    # A correction may be about every value of a topic, which have groups of their own.
    of_topics = [row.group for topic in restored.groups for row in batch.facts.rows.select("topic = ?", topic)]
    batch.facts.refresh_groups(event, [*dict.fromkeys(of_topics)])
    for timelines in batch.timelines:
        timelines.refresh_groups(event, restored.groups)
        timelines.refresh_evidence(restored.kept_ids)


def is_edit(event: RecordedEvent, payload: dict[str, Any]) -> bool:
    """Return whether an event of an undoable type changes a memory; a forgotten entity comes back when it is named."""
    if event.type in _STATING:
        return event.causation_id is not None or payload.get("source_type") == "corrected"
    return payload.get("kind") != "entity"


def _undoable(handler: Handler) -> Handler:
    """Return a handler of an edit, whose changes are recorded so that it can be undone."""

    def handle(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
        if not is_edit(event, payload):
            handler(batch, event, payload)
            return
        batch.deferred.add(event, batch.edits.begin)
        handler(batch, event, payload)
        replaced_id = payload.get("corrects") or event.causation_id if event.type in _UPDATING else None
        if replaced_id is not None:
            batch.deferred.add(event, lambda: batch.memory_edits.carry_pin(replaced_id, event.id))
        forgets = batch.forgettings.get(event.id)
        batch.deferred.add(event, lambda: batch.edits.end(event, forgets))

    return handle


def _retrieval_rated(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """Add a rating to memories."""
    batch.deferred.add(event, lambda: batch.knowledge.add_rating(payload))


KNOWLEDGE_HANDLERS: dict[str, Handler] = {
    "fact.stated": _fact_stated,
    "fact.corrected": _undoable(_fact_corrected),
    "fact.retracted": _undoable(_fact_retracted),
    "fact.superseded": _fact_superseded,
    "facts.decayed": _facts_decayed,
    "facts.extracted": _facts_extracted,
    "preference.stated": _undoable(_preference_stated),
    "entity.described": _entity_described,
    "entity.separated": _entity_separated,
    "relationship.stated": _undoable(_relationship_stated),
    "procedure.recorded": _undoable(_procedure_recorded),
    "procedure.used": _procedure_used,
    "document.added": _document_added,
    "document.removed": _undoable(_document_removed),
    "observations.recorded": _observations_recorded,
    "observations.reflected": _observations_reflected,
    "memory.pinned": _undoable(_memory_pinned),
    "memory.unpinned": _undoable(_memory_unpinned),
    "memory.ended": _undoable(_memory_ended),
    "memory.invalidated": _undoable(_memory_invalidated),
    "memory.forgotten": _undoable(_memory_forgotten),
    "memory.status_changed": _memory_status_changed,
    "memory.quarantined": _memory_quarantined,
    "memory.reviewed": _memory_reviewed,
    "memories.merged": _memories_merged,
    "edit.undone": _edit_undone,
    "retrieval.rated": _retrieval_rated,
}
