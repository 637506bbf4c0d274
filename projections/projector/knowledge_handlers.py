"""What each event about knowledge does to a read model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from recollect.events.envelope import RecordedEvent, parse_rfc3339
from recollect.projections.projector.facts import StatedFact
from recollect.projections.projector.write_batch import WriteBatch

Handler = Callable[[WriteBatch, RecordedEvent, dict[str, Any]], None]


def _fact_stated(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    _state(batch, event, event.id, payload, extracted=False)


def _fact_corrected(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    fact = _stated(batch, event, event.id, payload | {"source_type": "corrected"}, extracted=False)
    batch.deferred.add(event, lambda: batch.facts.correct(event, fact))


def _fact_retracted(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    batch.deferred.add(event, lambda: batch.facts.retract(event, payload["fact_id"]))


def _fact_superseded(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    until = payload.get("valid_until")
    batch.deferred.add(
        event,
        lambda: batch.facts.supersede(event, payload["fact_id"], payload["superseded_by"], parse_rfc3339(until)),
    )


def _facts_decayed(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    for one in payload["facts"]:
        batch.deferred.add(event, lambda one=one: batch.facts.decay(event, one["fact_id"], one["confidence"]))


def _preference_stated(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    _prefer(batch, event, event.id, payload)


def _entity_described(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    batch.describe(
        event,
        payload["name"],
        kind=payload.get("type", "other"),
        description=payload.get("description"),
        aliases=payload.get("aliases", []),
    )


def _relationship_stated(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    _relate(batch, event, event.id, payload)


def _procedure_recorded(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    _record_procedure(batch, event, event.id, payload)


def _procedure_used(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    batch.deferred.add(event, lambda: batch.knowledge.use_procedure(event, payload))


def _document_added(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    batch.deferred.add(event, lambda: batch.knowledge.add_document(event, payload))


def _document_removed(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    batch.deferred.add(event, lambda: batch.knowledge.remove_document(payload["document_id"]))


def _facts_extracted(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """Fold everything that was read out of events; ids count up behind the event's own."""
    through: int | None = payload.get("through")
    if through is not None:
        # A log of before may hold a forged version beyond the event's own, which would turn extraction off.
        batch.set_job_cursor("extraction", min(through, event.version))
    for entity in payload.get("entities", ()):
        _entity_described(batch, event, entity)
    for number, fact in enumerate(payload.get("facts", ())):
        _state(batch, event, f"{event.id}#f{number}", fact, extracted=True)
    for number, fact in enumerate(payload.get("rejected", ())):
        rejected = _stated(batch, event, f"{event.id}#r{number}", fact, extracted=True)
        batch.deferred.add(event, lambda rejected=rejected: batch.facts.reject(event, rejected))
    for number, correction in enumerate(payload.get("corrections", ())):
        right = _stated(
            batch, event, f"{event.id}#c{number}", correction | {"source_type": "corrected"}, extracted=True
        )
        batch.deferred.add(event, lambda right=right: batch.facts.correct(event, right))
    for number, preference in enumerate(payload.get("preferences", ())):
        _prefer(batch, event, f"{event.id}#p{number}", preference)
    for number, relationship in enumerate(payload.get("relationships", ())):
        _relate(batch, event, f"{event.id}#l{number}", relationship)
    for number, procedure in enumerate(payload.get("procedures", ())):
        _record_procedure(batch, event, f"{event.id}#w{number}", procedure)
    batch.deferred.add(event, lambda: batch.knowledge.add_date_mentions(payload))
    batch.deferred.add(event, lambda: batch.knowledge.add_questions(payload))


def _observations_recorded(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    batch.deferred.add(event, lambda: batch.knowledge.add_observations(event, payload))


def _observations_reflected(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    batch.deferred.add(event, lambda: batch.knowledge.add_observations(event, payload, payload["source_events"]))


def _memories_clustered(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    batch.deferred.add(event, lambda: batch.knowledge.set_clusters(payload))


def _memory_pinned(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    batch.tiers.pin(event, payload["memory_id"])
    batch.deferred.add(event, lambda: batch.knowledge.pin(payload["memory_id"]))


def _memory_invalidated(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """An invalidated fact is taken back like a retracted one: extraction does not bring it again."""
    memory_id: str = payload["memory_id"]
    batch.tiers.set_status(event, [memory_id], "invalidated")
    batch.deferred.add(event, lambda: batch.facts.retract(event, memory_id))
    batch.deferred.add(event, lambda: batch.knowledge.set_status(event, memory_id, "invalidated"))


def _memory_status_changed(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    batch.tiers.set_status(event, [payload["memory_id"]], payload["status"])
    batch.deferred.add(event, lambda: batch.knowledge.set_status(event, payload["memory_id"], payload["status"]))


def _memories_merged(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    merged = [one for one in payload["merged_ids"] if one != payload["kept_id"]]
    batch.tiers.set_status(event, merged, "superseded")
    batch.deferred.add(event, lambda: batch.knowledge.merge(event, payload["kept_id"], merged))


def _stated(
    batch: WriteBatch, event: RecordedEvent, id: str, payload: dict[str, Any], *, extracted: bool
) -> StatedFact:
    entity_id = batch.entity_id(event, payload["subject"])
    return StatedFact(id, entity_id, payload, payload.get("source_type", "stated"), extracted)


def _state(batch: WriteBatch, event: RecordedEvent, id: str, payload: dict[str, Any], *, extracted: bool) -> None:
    fact = _stated(batch, event, id, payload, extracted=extracted)
    batch.deferred.add(event, lambda: batch.facts.upsert(event, fact))


def _prefer(batch: WriteBatch, event: RecordedEvent, id: str, payload: dict[str, Any]) -> None:
    source_type = payload.get("source_type", "stated")
    batch.deferred.add(event, lambda: batch.knowledge.upsert_preference(event, id, payload, source_type))


def _relate(batch: WriteBatch, event: RecordedEvent, id: str, payload: dict[str, Any]) -> None:
    source_id, target_id = (batch.entity_id(event, payload[end]) for end in ("source", "target"))
    batch.deferred.add(event, lambda: batch.knowledge.upsert_relationship(event, id, payload, source_id, target_id))


def _record_procedure(batch: WriteBatch, event: RecordedEvent, id: str, payload: dict[str, Any]) -> None:
    batch.deferred.add(event, lambda: batch.knowledge.record_procedure(event, id, payload))


def _retrieval_rated(batch: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    batch.deferred.add(event, lambda: batch.knowledge.add_rating(payload))


KNOWLEDGE_HANDLERS: dict[str, Handler] = {
    "fact.stated": _fact_stated,
    "fact.corrected": _fact_corrected,
    "fact.retracted": _fact_retracted,
    "fact.superseded": _fact_superseded,
    "facts.decayed": _facts_decayed,
    "facts.extracted": _facts_extracted,
    "preference.stated": _preference_stated,
    "entity.described": _entity_described,
    "relationship.stated": _relationship_stated,
    "procedure.recorded": _procedure_recorded,
    "procedure.used": _procedure_used,
    "document.added": _document_added,
    "document.removed": _document_removed,
    "observations.recorded": _observations_recorded,
    "observations.reflected": _observations_reflected,
    "memories.clustered": _memories_clustered,
    "memory.pinned": _memory_pinned,
    "memory.invalidated": _memory_invalidated,
    "memory.status_changed": _memory_status_changed,
    "memories.merged": _memories_merged,
    "retrieval.rated": _retrieval_rated,
}
