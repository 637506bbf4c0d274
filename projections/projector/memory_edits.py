"""Memory edits: unpins, ends and forgets memories, and stores what they are labelled with.

A forgotten message leaves the read model. What was derived from it alone gets the status `forgotten`, which no list and
no retrieval returns; what other events state as well loses the forgotten event as a source. Its bytes stay in the log.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import apsw
import orjson

from recollect.events.envelope import RecordedEvent
from recollect.events.memory_kinds import MEMORY_KINDS, TABLES_WITH_STATUS
from recollect.projections.projector.predicates import normalised

#: Tables with a status whose rows follow no timeline; the caller changes the others.
_TABLES_WITHOUT_TIMELINE = tuple(kind.list_name for kind in MEMORY_KINDS if kind.has_status and not kind.has_timeline)
#: The lists of a payload whose items name their source events.
_DERIVED_ITEMS = (
    "facts",
    "rejected",
    "corrections",
    "endings",
    "preferences",
    "entities",
    "relationships",
    "procedures",
    "dates",
    "questions",
)
#: Events whose payload as a whole was derived from its source events.
_SUMMARY_TYPES = frozenset(("episodes.compressed", "conversation.compacted", "observations.recorded"))

# The memories that an event states.
_DERIVED = """
SELECT id, source_events FROM {table} AS memory
WHERE version < ?1 AND status <> 'forgotten'
    AND EXISTS (SELECT 1 FROM json_each(memory.source_events) WHERE value = ?2)
ORDER BY key
"""
_FORGET = "UPDATE {table} SET status = 'forgotten', pinned = 0, updated_at_us = ? WHERE id = ?"
_END = """
UPDATE {table} SET status = 'ended', pinned = 0, updated_at_us = :occurred_at_us
WHERE id = :id AND status IN ('active', 'stale')
"""
# A correction of a memory that is pinned is pinned; of a value that was stated before, the memory that has it.
_CARRY_PIN = """
UPDATE {table} SET pinned = 1
WHERE id IN (:new, (SELECT superseded_by FROM {table} WHERE id = :old))
    AND EXISTS (SELECT 1 FROM {table} WHERE id = :old AND pinned = 1)
"""
_REPLACED = """
SELECT id FROM {table} WHERE superseded_by = ? AND status = 'superseded'
ORDER BY updated_at_us DESC, key DESC
"""
# Later properties of the same relationship replace earlier ones with the same name.
_SET_PROPERTIES = """
UPDATE relationships SET properties = json_patch(coalesce(properties, '{}'), ?)
WHERE source_id = ? AND type = ? AND target_id = ?
"""
# The entities of a forgotten fact or relationship.
_FORGET_ENTITIES = {
    "facts": "INSERT OR IGNORE INTO forgotten_entities (entity_id) SELECT entity_id FROM facts WHERE id = ?",
    "relationships": "INSERT OR IGNORE INTO forgotten_entities (entity_id) "
    "SELECT source_id FROM relationships WHERE id = ?1 UNION SELECT target_id FROM relationships WHERE id = ?1",
}
_OBSERVATIONS_OF_SOURCE = """
SELECT key FROM observations
WHERE status <> 'forgotten' AND EXISTS (SELECT 1 FROM json_each(observations.source_events) WHERE value = ?)
"""
#: The observation with an id of the list `observations`: the event's id, `#o` and the number within the event.
_OBSERVATION = """
SELECT key FROM observations AS line
WHERE event_id || '#o' || (
    SELECT count(*) FROM observations AS other WHERE other.event_id = line.event_id AND other.key < line.key
) = ?
"""
#: A fact such as `has a mom named Wendy`.
_FORGET_NAMING = """
UPDATE facts SET status = 'forgotten', pinned = 0, updated_at_us = ?1
WHERE version < ?2 AND instr(' ' || value || ' ', ?3) > 0
"""


class MemoryEdits:
    """Changes that a producer makes to single memories, in the order of the log."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def unpin(self, memory_id: str) -> None:
        """Remove the pin of a memory that is not an episode."""
        for table in TABLES_WITH_STATUS:
            self._connection.execute(f"UPDATE {table} SET pinned = 0 WHERE id = ?", (memory_id,))

    def carry_pin(self, memory_id: str, new_id: str) -> None:
        """Pin what an event states in place of a pinned memory."""
        for table in TABLES_WITH_STATUS:
            self._connection.execute(_CARRY_PIN.format(table=table), {"old": memory_id, "new": new_id})

    def end(self, event: RecordedEvent, memory_id: str) -> None:
        """End an active or stale procedure or relationship."""
        bindings = {"id": memory_id, "occurred_at_us": event.occurred_at_us}
        for table in _TABLES_WITHOUT_TIMELINE:
            self._connection.execute(_END.format(table=table), bindings)

    def forget(self, event: RecordedEvent, memory_id: str) -> None:
        """Hide a memory and what was derived from the event `memory_id` alone."""
        self._connection.execute("INSERT OR IGNORE INTO forgotten (id) VALUES (?)", (memory_id,))
        for table in TABLES_WITH_STATUS:
            self._connection.execute(_FORGET.format(table=table), (event.occurred_at_us, memory_id))
            self._forget_derived(event, table, memory_id)
        for statement in (_OBSERVATIONS_OF_SOURCE, _OBSERVATION):
            keys: list[tuple[Any, ...]] = self._connection.execute(statement, (memory_id,)).fetchall()
            self._connection.executemany("UPDATE observations SET status = 'forgotten' WHERE key = ?", keys)
        for table in ("date_mentions", "questions"):
            self._connection.execute(f"DELETE FROM {table} WHERE event_id = ?", (memory_id,))

    def forget_entity(self, event: RecordedEvent, entity_id: int, name: str) -> None:
        """Hide the facts about an entity, those that name it, and its relationships."""
        at_us, before = event.occurred_at_us, event.version
        self._connection.execute(_FORGET_NAMING, (at_us, before, f" {normalised(name)} "))
        for table, condition in (("facts", "entity_id = ?3"), ("relationships", "?3 IN (source_id, target_id)")):
            self._connection.execute(
                f"UPDATE {table} SET status = 'forgotten', pinned = 0, updated_at_us = ?1 "
                f"WHERE version < ?2 AND {condition}",
                (at_us, before, entity_id),
            )

    def quarantine(self, event: RecordedEvent, payload: dict[str, Any]) -> None:
        """Add a memory to the quarantine; a document that was reviewed in an older form waits again."""
        reasons = orjson.dumps(payload["reasons"]).decode()
        self._connection.execute(
            "INSERT OR REPLACE INTO quarantine (memory_id, kind, reasons, status, version, at_us) "
            "VALUES (?, ?, ?, 'waiting', ?, ?)",
            (payload["memory_id"], payload.get("kind", "memory"), reasons, event.version, event.occurred_at_us),
        )

    def review(self, memory_id: str, decision: str) -> None:
        """Set the decision on a memory in quarantine."""
        self._connection.execute("UPDATE quarantine SET status = ? WHERE memory_id = ?", (decision, memory_id))

    def set_properties(self, source_id: int, kind: str, target_id: int, properties: dict[str, Any]) -> None:
        """Add the properties of a relationship, whose type is `kind`."""
        self._connection.execute(_SET_PROPERTIES, (orjson.dumps(properties).decode(), source_id, kind, target_id))

    def set_observation_sources(self, event: RecordedEvent, source_events: Iterable[str]) -> None:
        """Set the events that the observations of `event` were derived from."""
        self._connection.execute(
            "UPDATE observations SET source_events = ? WHERE event_id = ?",
            (orjson.dumps(list(source_events)).decode(), event.id),
        )

    def _forget_derived(self, event: RecordedEvent, table: str, source_id: str) -> None:
        """Hide the memories of `table` that no other event states; the others lose the source."""
        rows: list[tuple[Any, ...]] = self._connection.execute(
            _DERIVED.format(table=table), (event.version, source_id)
        ).fetchall()
        for memory_id, source_events in rows:
            sources = [id for id in orjson.loads(source_events) if id != source_id]
            if sources:
                self._connection.execute(
                    f"UPDATE {table} SET source_events = ? WHERE id = ?", (orjson.dumps(sources).decode(), memory_id)
                )
                continue
            self._connection.execute(_FORGET.format(table=table), (event.occurred_at_us, memory_id))
            if table in _TABLES_WITHOUT_TIMELINE:
                self._reopen_replaced(table, memory_id)
            if table in _FORGET_ENTITIES:
                self._connection.execute(_FORGET_ENTITIES[table], (memory_id,))

    def _reopen_replaced(self, table: str, memory_id: str) -> None:
        """Let the newest memory that `memory_id` replaced hold again."""
        query = _REPLACED.format(table=table)
        ids = [id for (id,) in self._connection.execute(query, (memory_id,))]
        for position, id in enumerate(ids):
            newest = (ids[0], id) if position else (None, id)
            self._connection.execute(f"UPDATE {table} SET superseded_by = ? WHERE id = ?", newest)
        if ids:
            self._connection.execute(f"UPDATE {table} SET status = 'active' WHERE id = ?", (ids[0],))


def remaining_payload(event: RecordedEvent, payload: dict[str, Any], forgotten: set[str]) -> dict[str, Any] | None:
    """Return the payload of a derived event without what forgotten events alone state; None when nothing remains.

    A job may read a message before it is forgotten, and record what it derived afterwards.
    """
    sources: list[str] = payload.get("source_events") or []
    if not sources:
        return payload
    if event.type in _SUMMARY_TYPES:
        # A summary cannot be divided. Its job summarises the remaining messages again.
        return payload if forgotten.isdisjoint(sources) else None
    if event.type != "facts.extracted":
        return payload
    return payload | {
        name: [_without(item, forgotten) for item in payload[name] if _remains(item, sources, forgotten)]
        for name in _DERIVED_ITEMS
        if name in payload
    }


def _without(item: dict[str, Any], forgotten: set[str]) -> dict[str, Any]:
    """Return an extracted item without forgotten source events."""
    sources = item.get("source_events")
    return item | {"source_events": [id for id in sources if id not in forgotten]} if sources else item


def _remains(item: dict[str, Any], event_sources: list[str], forgotten: set[str]) -> bool:
    """Return whether an event that is not forgotten states an extracted item."""
    sources = [item["source_event"]] if "source_event" in item else item.get("source_events") or event_sources
    return not forgotten.issuperset(sources)
