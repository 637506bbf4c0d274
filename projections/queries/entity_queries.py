"""Entity queries: look up entities and participants by name, and walk the graph of relationships and mentions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import apsw
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from recollect.projections.queries.page_queries import READABLE_ENTITY
from recollect.projections.queries.records import (
    fetch_records,
    fetch_tuples,
    fetch_value,
    fetch_values,
    json_list,
)
from recollect.projections.text.entity_roles import words_for

# Entities that are one by different names have one group (`entity_groups`), whose id is that of one of them: everything
# that these queries return has the id of the group.

# The groups with one of the names of a JSON list, in one statement: a question of ten words has forty such names.
_GROUPS_OF_NAMES = """
SELECT group_id FROM json_each(?) CROSS JOIN entity_names ON name = value JOIN entity_groups USING (entity_id)
"""
# Every name of the entities that wrote a message.
# From the few participants to their names: joined by the view `entity_groups`, all names would be read.
_PARTICIPANTS = """
WITH participants AS MATERIALIZED (
    SELECT DISTINCT coalesce(into_id, id) AS group_id FROM entities LEFT JOIN entity_merges ON entity_id = id
    WHERE spoken_count > 0
), members AS MATERIALIZED (
    SELECT group_id, group_id AS entity_id FROM participants
    UNION ALL SELECT group_id, entity_id FROM participants JOIN entity_merges ON into_id = group_id
)
SELECT name, group_id FROM members JOIN entity_names USING (entity_id) ORDER BY group_id, entity_id, name
"""
_NAMES_OF = """
WITH asked AS MATERIALIZED (SELECT value AS id FROM json_each(?))
SELECT name FROM entity_names WHERE entity_id IN (
    SELECT id FROM asked UNION ALL SELECT entity_id FROM entity_merges WHERE into_id IN (SELECT id FROM asked)
)
"""
_MAIN_NAMES = "SELECT name FROM entities WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"
# Groups with a member that an episode before a version names.
_NAMED_BEFORE = """
WITH asked AS MATERIALIZED (SELECT value AS id FROM json_each(?1))
SELECT id FROM asked
WHERE EXISTS (SELECT 1 FROM mentions WHERE entity_id = id AND version < ?2)
    OR EXISTS (SELECT 1 FROM entity_merges JOIN mentions USING (entity_id) WHERE into_id = id AND version < ?2)
"""
# The strongest relationships of an entity, in both directions. From the members of its group to their relationships:
# one condition for both directions takes twice as long, even where there are no relationships.
_EDGES = """
WITH members (id) AS (SELECT ?1 UNION ALL SELECT entity_id FROM entity_merges WHERE into_id = ?1),
edges (other, strength, key) AS (
    SELECT target_id, weight * confidence, key FROM members CROSS JOIN relationships ON source_id = members.id
    WHERE status = 'active' AND confidence > ?2 AND weight > 0
    UNION ALL
    SELECT source_id, weight * confidence, key FROM members CROSS JOIN relationships ON target_id = members.id
    WHERE status = 'active' AND confidence > ?2 AND weight > 0
)
SELECT coalesce(into_id, other) AS group_id, strength FROM edges LEFT JOIN entity_merges ON entity_id = other
WHERE group_id <> ?1 ORDER BY strength DESC, key LIMIT ?3
"""
# The groups of all mentions in some episodes, as one text.
_GROUPS_NAMED_IN = """
SELECT group_concat(coalesce(into_id, entity_id), ',')
FROM json_each(?) CROSS JOIN mentions ON version = value LEFT JOIN entity_merges USING (entity_id)
"""
_PARTICIPANT_IDS = """
SELECT DISTINCT coalesce(into_id, id) FROM entities LEFT JOIN entity_merges ON entity_id = id WHERE spoken_count > 0
"""
_MERGED_INTO = """
SELECT into_id, entity_id FROM json_each(?) CROSS JOIN entity_merges ON into_id = value WHERE entity_id <> into_id
"""
# The mentions of each entity, which are stored in this order: those of a group together would all be sorted. Numbers
# are one text: SQLite makes it faster than rows, and without Python's lock.
_EPISODES_NAMING = """
SELECT member.value, (
    SELECT group_concat(version, ',')
    FROM (SELECT version FROM mentions WHERE entity_id = member.value ORDER BY version DESC LIMIT ?2)
) FROM json_each(?1) AS member
"""
# The strongest relationships of several groups, with names.
_RELATIONS = """
WITH members (id) AS (
    SELECT value FROM json_each(?1) UNION ALL
    SELECT entity_id FROM json_each(?1) CROSS JOIN entity_merges ON into_id = value
),
edges (key, source_id, type, target_id, strength) AS (
    SELECT key, source_id, type, target_id, weight * confidence
    FROM members CROSS JOIN relationships ON source_id = members.id WHERE status = 'active'
    UNION
    SELECT key, source_id, type, target_id, weight * confidence
    FROM members CROSS JOIN relationships ON target_id = members.id WHERE status = 'active'
    ORDER BY 5 DESC, 1 LIMIT ?2
)
SELECT a.name, edges.type, b.name FROM edges
LEFT JOIN entity_merges AS source ON source.entity_id = source_id
LEFT JOIN entity_merges AS target ON target.entity_id = target_id
JOIN entities AS a ON a.id = coalesce(source.into_id, source_id)
JOIN entities AS b ON b.id = coalesce(target.into_id, target_id)
ORDER BY strength DESC, key
"""
# The graph around an entity or document. UNION, not UNION ALL: a name with the same depth is not expanded twice.
_NEIGHBOURHOOD = """
WITH RECURSIVE
edges (source, type, target, weight, confidence) AS (
    SELECT a.name, relationships.type, b.name, weight, confidence FROM relationships
    JOIN entity_groups AS source ON source.entity_id = source_id
    JOIN entity_groups AS target ON target.entity_id = target_id
    JOIN entities AS a ON a.id = source.group_id JOIN entities AS b ON b.id = target.group_id WHERE status = 'active'
    UNION ALL
    SELECT document_id, type, target, weight, 1.0 FROM document_relations
),
reached (name, depth) AS (
    SELECT ?1, 0
    UNION
    SELECT CASE WHEN edges.source = reached.name COLLATE NOCASE THEN edges.target ELSE edges.source END, depth + 1
    FROM reached JOIN edges ON reached.name IN (edges.source COLLATE NOCASE, edges.target COLLATE NOCASE)
    WHERE depth < ?2 AND weight > 0
)
SELECT source, type, target, weight, confidence, min(depth) + 1 AS distance FROM edges
JOIN reached ON reached.name IN (edges.source COLLATE NOCASE, edges.target COLLATE NOCASE)
WHERE depth < ?2
GROUP BY source, type, target ORDER BY min(depth), weight DESC, source, type, target LIMIT ?3
"""
# Every name of the entities that knowledge is about.
_KNOWLEDGE_NAMES = """
WITH named AS MATERIALIZED (
    SELECT entity_id FROM facts WHERE status IN ('active', 'stale')
    UNION SELECT source_id FROM relationships WHERE status IN ('active', 'stale')
    UNION SELECT target_id FROM relationships WHERE status IN ('active', 'stale')
    UNION SELECT id FROM entities WHERE description IS NOT NULL
), groups AS MATERIALIZED (
    SELECT DISTINCT coalesce(into_id, entity_id) AS group_id FROM named LEFT JOIN entity_merges USING (entity_id)
), members AS MATERIALIZED (
    SELECT group_id, group_id AS entity_id FROM groups
    UNION SELECT group_id, entity_id FROM groups JOIN entity_merges ON into_id = group_id
)
SELECT group_id, entity_names.name, max(spoken_count) OVER (PARTITION BY group_id) > 0
FROM members CROSS JOIN entities ON id = members.entity_id JOIN entity_names USING (entity_id)
ORDER BY group_id, entity_names.name
"""
# The relationships of people, with the name of the source and whether the target wrote a message.
_RELATED_PEOPLE = """
SELECT target.group_id, a.name, r.type, b.spoken_count > 0 FROM relationships AS r
JOIN entity_groups AS source ON source.entity_id = source_id
JOIN entity_groups AS target ON target.entity_id = target_id
JOIN entities AS a ON a.id = source.group_id JOIN entities AS b ON b.id = target.group_id
WHERE r.status IN ('active', 'stale') ORDER BY r.key
"""
# The evidence for each type of an entity, in hundredths.
_TYPE_EVIDENCE = """
SELECT entity_evidence.type, sum(confidence) FROM entity_evidence JOIN entity_names USING (entity_id)
WHERE name = ? GROUP BY entity_evidence.type
"""
# The relations of the documents.
_DOCUMENT_RELATIONS = """
SELECT document_id, target, weight FROM document_relations ORDER BY document_id, type, target
"""
# The relations of some documents, with their types.
_RELATIONS_OF_DOCUMENTS = """
SELECT document_id, type, target, weight FROM document_relations
WHERE document_id IN (SELECT value FROM json_each(?)) ORDER BY weight DESC, document_id, type, target LIMIT ?
"""
# The name of an entity by any of its names, the id of a document, or what a document relates to.
_NODE_NAME = f"""
SELECT name FROM entities WHERE id = (
    SELECT group_id FROM entity_names JOIN entity_groups USING (entity_id) WHERE name = ?1
) AND {READABLE_ENTITY}
UNION ALL SELECT id FROM documents WHERE id = ?2
UNION ALL SELECT target FROM document_relations WHERE target = ?2 COLLATE NOCASE LIMIT 1
"""


class Edge(Struct, frozen=True, kw_only=True):
    """An edge of a neighbourhood: a relationship of two entities, or a relation of a document."""

    #: Name of an entity or id of a document.
    source: str
    #: Type of the relationship.
    type: str
    #: Name of an entity or id of a document.
    target: str
    #: Weight in graph walks, 0 to 1; 0 for contradictions.
    weight: float
    #: 0 to 1.
    confidence: float
    #: Steps from the start of the neighbourhood, from 1.
    distance: int


class NamedEntity(NamedTuple):
    """A name of an entity that knowledge is about."""

    entity_id: int
    #: A name or alias, case folded.
    name: str
    #: Whether the entity wrote a message.
    is_participant: bool


class DocumentRelation(NamedTuple):
    """A relation of a document."""

    document_id: str
    #: Id of a document or name of an entity.
    target: str
    #: Weight in graph walks, 0 to 1; 0 for contradictions.
    weight: float


class EntityQueries:
    """Queries on the tables `entities`, `entity_names`, `mentions`, `relationships` and `document_relations`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        #: What `episodes_naming` has returned: a walk over the graph begins and ends with the same entities.
        self._naming: dict[tuple[int, int], NDArray[np.int64]] = {}
        self._participants: list[int] | None = None

    def ids_by_name(self, names: Iterable[str]) -> set[int]:
        """Return the ids of the entities with one of these case-folded names or aliases."""
        return set(fetch_values(self._connection, _GROUPS_OF_NAMES, (json_list(names),)))

    def participants(self) -> list[tuple[str, int]]:
        """Return the names and aliases of the participants, each with the entity's id, ordered by id."""
        rows: list[Any] = fetch_tuples(self._connection, _PARTICIPANTS)
        return rows

    def names_in_knowledge(self) -> list[NamedEntity]:
        """Return every name of the entities with facts, relationships or a description, ordered by entity.

        A person also has names by role, such as `ann's mom`, `ann's mum` and `ann's mother`.
        """
        names = [
            NamedEntity(entity_id, name, bool(is_participant))
            for entity_id, name, is_participant in fetch_tuples(self._connection, _KNOWLEDGE_NAMES)
        ]
        roles = [
            NamedEntity(entity_id, f"{source.casefold()}'s {word}", bool(is_participant))
            for entity_id, source, type, is_participant in fetch_tuples(self._connection, _RELATED_PEOPLE)
            for word in words_for(type)
        ]
        return list(dict.fromkeys([*names, *roles]))

    def described(self) -> list[str]:
        """Return the names of the entities with a description, also of one that a relationship gave which ended."""
        return fetch_values(self._connection, "SELECT name FROM entities WHERE description IS NOT NULL ORDER BY id")

    def type_evidence(self, names: Iterable[str]) -> dict[str, dict[str, int]]:
        """Return the evidence for the types of entities by case-folded name and by type, in hundredths."""
        rows: dict[str, list[Any]] = {name: fetch_tuples(self._connection, _TYPE_EVIDENCE, (name,)) for name in names}
        return {name: dict(types) for name, types in rows.items() if types}

    def people(self, limit: int) -> list[str]:
        """Return the names of up to `limit` people, the last mentioned first."""
        statement = (
            "SELECT name FROM entities WHERE id IN (SELECT entity_id FROM entity_evidence WHERE type = 'person') "
            "ORDER BY last_seen_us DESC, id DESC LIMIT ?"
        )
        return fetch_values(self._connection, statement, (limit,))

    def last_seen_us(self, name: str) -> int:
        """Return the time of the last event that names an entity."""
        statement = "SELECT last_seen_us FROM entities JOIN entity_names ON entity_id = id WHERE entity_names.name = ?"
        return fetch_value(self._connection, statement, (name.casefold(),))

    def document_relations(self) -> list[DocumentRelation]:
        """Return the relations of all documents."""
        return [DocumentRelation(*row) for row in fetch_tuples(self._connection, _DOCUMENT_RELATIONS)]

    def names_and_aliases(self, entity_ids: Sequence[int]) -> frozenset[str]:
        """Return the names and aliases of these entities, none of which was merged into another one, case folded."""
        names = fetch_values(self._connection, _NAMES_OF, (json_list(entity_ids),)) if entity_ids else ()
        return frozenset(names)

    def names(self, entity_ids: Sequence[int]) -> list[str]:
        """Return the names of these entities, ordered by id."""
        return fetch_values(self._connection, _MAIN_NAMES, (json_list(entity_ids),)) if entity_ids else []

    def strongest_edges(self, entity_id: int, *, confidence_min: float, limit: int) -> list[tuple[int, float]]:
        """Return the ids of related entities with weight × confidence, strongest first."""
        rows: list[Any] = fetch_tuples(self._connection, _EDGES, (entity_id, confidence_min, limit))
        return rows

    def co_mentioned(self, entity_id: int, versions: NDArray[np.int64], *, limit: int) -> list[int]:
        """Return the ids of the entities most often named in the episodes `versions`, most often first.

        The entity itself is left out, and so are participants, who are in all episodes.
        """
        named = _integers(fetch_value(self._connection, _GROUPS_NAMED_IN, (json_list(versions.tolist()),)))
        # Counted by NumPy in half of the time that SQLite takes, which would look each of them up.
        entities, counts = np.unique(named, return_counts=True)
        is_other = ~np.isin(entities, [entity_id, *self._participant_ids()])
        entities, counts = entities[is_other], counts[is_other]
        others: list[int] = entities[np.lexsort((entities, -counts))[:limit]].tolist()
        return others

    def episodes_naming(self, entity_ids: Sequence[int], *, limit: int) -> list[NDArray[np.int64]]:
        """Return the versions of the newest episodes that name each of some entities, each once, in any order."""
        members = {entity: [entity] for entity in entity_ids if (entity, limit) not in self._naming}
        if members:
            merged: list[Any] = fetch_tuples(self._connection, _MERGED_INTO, (json_list(members),))
            for into, entity in merged:
                members[into].append(entity)
            listed: Any = json_list([member for group in members.values() for member in group])
            of_member = {
                member: _integers(text)
                for member, text in fetch_tuples(self._connection, _EPISODES_NAMING, (listed, limit))
            }
            for entity, group in members.items():
                named = [of_member[member] for member in group]
                self._naming[entity, limit] = named[0] if len(named) == 1 else np.unique(np.concatenate(named))[-limit:]
        return [self._naming[entity, limit] for entity in entity_ids]

    def _participant_ids(self) -> list[int]:
        if self._participants is None:
            self._participants = fetch_values(self._connection, _PARTICIPANT_IDS)
        return self._participants

    def named_before(self, entity_ids: Sequence[int], version: int) -> set[int]:
        """Return those of these entities that an episode before `version` names."""
        return set(fetch_values(self._connection, _NAMED_BEFORE, (json_list(entity_ids), version)))

    def relations(self, entity_ids: Sequence[int], *, limit: int) -> list[tuple[str, str, str]]:
        """Return source, type and target of the strongest relationships of these entities."""
        if not entity_ids:
            return []
        rows: list[Any] = fetch_tuples(self._connection, _RELATIONS, (json_list(entity_ids), limit))
        return rows

    def relations_of_documents(self, document_ids: Sequence[str], *, limit: int) -> list[tuple[str, str, str, float]]:
        """Return document, type, target and weight of the relations of some documents, the heaviest first."""
        if not document_ids:
            return []
        bindings = (json_list(document_ids), limit)
        rows: list[Any] = fetch_tuples(self._connection, _RELATIONS_OF_DOCUMENTS, bindings)
        return rows

    def document_relations_of(self, type: str) -> list[tuple[str, str]]:
        """Return document and target of all relations of a type."""
        statement = "SELECT document_id, target FROM document_relations WHERE type = ?"
        rows: list[Any] = fetch_tuples(self._connection, statement, (type,))
        return rows

    def governing(self, topics: Collection[str]) -> list[str]:
        """Return the ids of the documents that govern a topic and that no other document supersedes, sorted."""
        names = {topic.casefold() for topic in topics}
        documents = {id for id, target in self.document_relations_of("governs") if target.casefold() in names}
        if not documents:
            return []
        return sorted(documents - {target for _, target in self.document_relations_of("supersedes")})

    def node_name(self, name: str) -> str | None:
        """Return the name of the entity with this name or alias, of a document or of what one relates to, or None."""
        return fetch_value(self._connection, _NODE_NAME, (name.casefold(), name))

    def neighbourhood(self, name: str, *, depth: int, limit: int) -> list[Edge]:
        """Return the edges within `depth` steps of an entity or document, nearest first."""
        return fetch_records(self._connection, Edge, _NEIGHBOURHOOD, (name, depth, limit))


def _integers(text: str | None) -> NDArray[np.int64]:
    """Return the integers of a text with commas between them; none for None."""
    return np.fromstring(text or "", np.int64, sep=",")
