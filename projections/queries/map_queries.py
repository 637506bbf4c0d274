"""Map queries: read the entities of a namespace and what connects them, and count its episodes over time."""

from __future__ import annotations

from collections.abc import Sequence

import apsw
from msgspec import Struct

from recollect.projections.queries.page_queries import LISTS, REVIEW
from recollect.projections.queries.records import fetch_records, fetch_tuples, fetch_value

_ENTITIES, _FACTS = LISTS["entities"], LISTS["facts"]
_LISTED_ENTITY = f"{_ENTITIES.readable} AND {_ENTITIES.listed}"

# The entities: those that wrote messages first, then those that messages and knowledge name most often.
_MAP_ENTITIES = f"""
WITH named AS (
    SELECT group_id, sum(mention_count) AS mentions_of_group, sum(spoken_count) AS spoken_by_group
    FROM entities JOIN entity_groups ON entity_id = id GROUP BY group_id
),
related AS (
    SELECT group_id, count(*) AS relationship_count FROM (
        SELECT source_id AS entity_id FROM relationships UNION ALL SELECT target_id FROM relationships
    ) JOIN entity_groups USING (entity_id) GROUP BY group_id
)
SELECT id, name, type, mentions_of_group AS mention_count, spoken_by_group AS spoken_count,
    coalesce(relationship_count, 0) AS relationship_count
FROM entities JOIN named ON named.group_id = id LEFT JOIN related ON related.group_id = id WHERE {_LISTED_ENTITY}
ORDER BY spoken_by_group > 0 DESC, mentions_of_group + 3 * coalesce(relationship_count, 0) DESC, id LIMIT ?
"""
_ENTITY_COUNT = f"SELECT count(*) FROM entities WHERE {_LISTED_ENTITY}"
# Every name of the entities, by group.
_NAMES = "SELECT entity_names.name, group_id FROM entity_names JOIN entity_groups USING (entity_id)"
# The strongest relationships, those that ended included.
_RELATIONSHIPS = """
SELECT relationships.id, source.group_id AS source, type, target.group_id AS target, status, weight * confidence
    AS weight
FROM relationships JOIN entity_groups AS source ON source.entity_id = source_id
JOIN entity_groups AS target ON target.entity_id = target_id
WHERE status NOT IN ('forgotten', 'rejected') ORDER BY weight * confidence DESC, key LIMIT ?
"""
# The facts, those that ended included: the surest ones, and of these the newest.
_MAP_FACTS = f"""
SELECT facts.id, group_id AS subject, predicate, object, status, valid_until_us FROM {_FACTS.source}
JOIN entity_groups USING (entity_id) WHERE {_FACTS.readable} AND {_FACTS.listed}
ORDER BY status = 'active' DESC, confidence DESC, facts.key DESC LIMIT ?
"""
# The entities that the newest messages name, with the speakers of the messages. The mentions of a message stay when it
# expires, as long as a summary stands for it; its speaker does not.
_MENTIONS = """
SELECT mentions.version, group_id, coalesce(speaker, '') FROM mentions JOIN entity_groups USING (entity_id)
LEFT JOIN episodes USING (version) WHERE coalesce(episodes.status, '') <> 'forgotten'
ORDER BY mentions.version DESC LIMIT ?
"""
# The newest documents, each with the beginning of its text, its review and its relations.
_MAP_DOCUMENTS = f"""
SELECT id, substr(title, 1, 200) AS title, substr(text, 1, ?) AS beginning, {REVIEW.format(id="documents.id")}, (
    SELECT json_group_array(json_array(type, target)) FROM document_relations WHERE document_id = documents.id
) AS relations FROM documents ORDER BY version DESC LIMIT ?
"""
_TIME_SPAN = """
SELECT min(occurred_at_us), max(occurred_at_us) FROM episodes WHERE status <> 'forgotten'
"""
_PERIODS = """
SELECT (occurred_at_us - ?1) / ?2, tier, count(*) FROM episodes WHERE status <> 'forgotten' GROUP BY 1, 2
"""


class MapEntity(Struct, frozen=True, kw_only=True):
    """An entity of the map."""

    #: Of its group: the entities that are one by different names.
    id: int
    name: str
    type: str
    #: Messages that name it.
    mention_count: int
    #: Messages that it wrote.
    spoken_count: int
    relationship_count: int


class MapRelationship(Struct, frozen=True, kw_only=True):
    """A relationship of the map, between two groups of entities."""

    id: str
    source: int
    type: str
    target: int
    status: str
    #: Weight times confidence, 0 to 1.
    weight: float


class MapFact(Struct, frozen=True, kw_only=True):
    """A fact of the map."""

    id: str
    #: The group of its subject.
    subject: int
    predicate: str
    object: str
    status: str
    #: None: still valid.
    valid_until_us: int | None


class MapDocument(Struct, frozen=True, kw_only=True):
    """A document of the map."""

    id: str
    #: The first 200 characters.
    title: str
    beginning: str
    #: waiting, or the decision of a review; None: it needs none.
    review: str | None
    #: JSON list of pairs: type, and name of an entity or id of a document.
    relations: str


class MapQueries:
    """Queries on all entities of a namespace, what connects them, and the times of its episodes."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def entities(self, limit: int) -> list[MapEntity]:
        """Return the `limit` entities that matter most, in this order."""
        return fetch_records(self._connection, MapEntity, _MAP_ENTITIES, (limit,))

    def entity_count(self) -> int:
        """Return the number of entities that the list of entities has."""
        return fetch_value(self._connection, _ENTITY_COUNT)

    def names(self) -> dict[str, int]:
        """Return the group of each name of an entity, case folded."""
        return dict(fetch_tuples(self._connection, _NAMES))

    def relationships(self, limit: int) -> list[MapRelationship]:
        """Return the strongest relationships."""
        return fetch_records(self._connection, MapRelationship, _RELATIONSHIPS, (limit,))

    def facts(self, limit: int) -> list[MapFact]:
        """Return facts, the active ones first."""
        return fetch_records(self._connection, MapFact, _MAP_FACTS, (limit,))

    def documents(self, limit: int, *, characters: int) -> list[MapDocument]:
        """Return the newest documents, of each text the first `characters`."""
        return fetch_records(self._connection, MapDocument, _MAP_DOCUMENTS, (characters, limit))

    def mentions(self, limit: int) -> Sequence[tuple[int, int, str]]:
        """Return the newest mentions: version of the message, group of the entity, and speaker, empty: unknown."""
        return [
            (version, group, speaker) for version, group, speaker in fetch_tuples(self._connection, _MENTIONS, (limit,))
        ]

    def time_span(self) -> tuple[int, int] | None:
        """Return the times of the first and of the last episode, in microseconds; None without episodes."""
        [(first_us, last_us)] = fetch_tuples(self._connection, _TIME_SPAN)
        return None if first_us is None else (first_us, last_us)

    def periods(self, start_us: int, width_us: int) -> list[tuple[int, str, int]]:
        """Return the number of episodes by period of `width_us` since `start_us`, from 0, and by tier."""
        rows = fetch_tuples(self._connection, _PERIODS, (start_us, width_us))
        return [(period, tier, count) for period, tier, count in rows]
