"""What each event about knowledge does to a read model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from recollect.events.envelope import RecordedEvent, parse_rfc3339
from recollect.projections.projector.facts import StatedFact
from recollect.projections.projector.write_batch import WriteBatch

Handler = Callable[[WriteBatch, RecordedEvent, dict[str, Any]], None]


def _fact_stated(changes: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    _state(changes, event, event.id, payload, extracted=False)


def _fact_corrected(changes: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    fact = _stated(changes, event, event.id, payload | {"source_type": "corrected"}, extracted=False)
    changes.deferred.add(event, lambda: changes.facts.correct(event, fact))


def _fact_retracted(changes: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    changes.deferred.add(event, lambda: changes.facts.retract(event, payload["fact_id"]))


def _fact_superseded(changes: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    until = payload.get("valid_until")
    changes.deferred.add(
        event,
        lambda: changes.facts.supersede(event, payload["fact_id"], payload["superseded_by"], parse_rfc3339(until)),
    )


def _facts_decayed(changes: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    for one in payload["facts"]:
        changes.deferred.add(event, lambda one=one: changes.facts.decay(event, one["fact_id"], one["confidence"]))


def _preference_stated(changes: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    _prefer(changes, event, event.id, payload)


def _entity_described(changes: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    changes.describe(
        event,
        payload["name"],
        kind=payload.get("type", "other"),
        description=payload.get("description"),
        aliases=payload.get("aliases", []),
    )


def _relationship_stated(changes: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    _relate(changes, event, event.id, payload)


def _procedure_recorded(changes: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    _record_procedure(changes, event, event.id, payload)


def _procedure_used(changes: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    changes.deferred.add(event, lambda: changes.knowledge.use_procedure(event, payload))


def _document_added(changes: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    changes.deferred.add(event, lambda: changes.knowledge.add_document(event, payload))


def _document_removed(changes: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    changes.deferred.add(event, lambda: changes.knowledge.remove_document(payload["document_id"]))


def _facts_extracted(changes: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """Fold everything that was read out of events; ids count up behind the event's own."""
    through: int | None = payload.get("through")
    if through is not None:
        # A log of before may hold a forged version beyond the event's own, which would turn extraction off.
        changes.set_job_cursor("extraction", min(through, event.version))
    for entity in payload.get("entities", ()):
        _entity_described(changes, event, entity)
    for number, fact in enumerate(payload.get("facts", ())):
        _state(changes, event, f"{event.id}#f{number}", fact, extracted=True)
    for number, fact in enumerate(payload.get("rejected", ())):
        rejected = _stated(changes, event, f"{event.id}#r{number}", fact, extracted=True)
        changes.deferred.add(event, lambda rejected=rejected: changes.facts.reject(event, rejected))
    for number, correction in enumerate(payload.get("corrections", ())):
        right = _stated(
            changes, event, f"{event.id}#c{number}", correction | {"source_type": "corrected"}, extracted=True
        )
        changes.deferred.add(event, lambda right=right: changes.facts.correct(event, right))
    for number, preference in enumerate(payload.get("preferences", ())):
        _prefer(changes, event, f"{event.id}#p{number}", preference)
    for number, relationship in enumerate(payload.get("relationships", ())):
        _relate(changes, event, f"{event.id}#l{number}", relationship)
    for number, procedure in enumerate(payload.get("procedures", ())):
        _record_procedure(changes, event, f"{event.id}#w{number}", procedure)
    changes.deferred.add(event, lambda: changes.knowledge.add_date_mentions(payload))
    changes.deferred.add(event, lambda: changes.knowledge.add_questions(payload))


def _observations_recorded(changes: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    changes.deferred.add(event, lambda: changes.knowledge.add_observations(event, payload))


def _observations_reflected(changes: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    changes.deferred.add(event, lambda: changes.knowledge.add_observations(event, payload, payload["source_events"]))


def _memories_clustered(changes: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    changes.deferred.add(event, lambda: changes.knowledge.set_clusters(payload))


def _memory_pinned(changes: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    changes.tiers.pin(event, payload["memory_id"])
    changes.deferred.add(event, lambda: changes.knowledge.pin(payload["memory_id"]))


def _memory_invalidated(changes: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    """An invalidated fact is taken back like a retracted one: extraction does not bring it again."""
    memory_id: str = payload["memory_id"]
    changes.tiers.set_status(event, [memory_id], "invalidated")
    changes.deferred.add(event, lambda: changes.facts.retract(event, memory_id))
    changes.deferred.add(event, lambda: changes.knowledge.set_status(event, memory_id, "invalidated"))


def _memory_status_changed(changes: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    changes.tiers.set_status(event, [payload["memory_id"]], payload["status"])
    changes.deferred.add(event, lambda: changes.knowledge.set_status(event, payload["memory_id"], payload["status"]))


def _memories_merged(changes: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    merged = [one for one in payload["merged_ids"] if one != payload["kept_id"]]
    changes.tiers.set_status(event, merged, "superseded")
    changes.deferred.add(event, lambda: changes.knowledge.merge(event, payload["kept_id"], merged))


def _stated(
    changes: WriteBatch, event: RecordedEvent, id: str, payload: dict[str, Any], *, extracted: bool
) -> StatedFact:
    entity_id = changes.entity_id(event, payload["subject"])
    return StatedFact(id, entity_id, payload, payload.get("source_type", "stated"), extracted)


def _state(changes: WriteBatch, event: RecordedEvent, id: str, payload: dict[str, Any], *, extracted: bool) -> None:
    fact = _stated(changes, event, id, payload, extracted=extracted)
    changes.deferred.add(event, lambda: changes.facts.upsert(event, fact))


def _prefer(changes: WriteBatch, event: RecordedEvent, id: str, payload: dict[str, Any]) -> None:
    source_type = payload.get("source_type", "stated")
    changes.deferred.add(event, lambda: changes.knowledge.upsert_preference(event, id, payload, source_type))


def _relate(changes: WriteBatch, event: RecordedEvent, id: str, payload: dict[str, Any]) -> None:
    source_id, target_id = (changes.entity_id(event, payload[end]) for end in ("source", "target"))
    changes.deferred.add(event, lambda: changes.knowledge.upsert_relationship(event, id, payload, source_id, target_id))


def _record_procedure(changes: WriteBatch, event: RecordedEvent, id: str, payload: dict[str, Any]) -> None:
    changes.deferred.add(event, lambda: changes.knowledge.record_procedure(event, id, payload))


def _retrieval_rated(changes: WriteBatch, event: RecordedEvent, payload: dict[str, Any]) -> None:
    changes.deferred.add(event, lambda: changes.knowledge.add_rating(payload))


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
