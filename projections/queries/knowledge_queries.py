"""Knowledge queries: read facts, preferences, procedures, relationships, described entities and document chunks."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import apsw
from msgspec import Struct

from recollect.projections.queries.knowledge_items import Derived, DerivedItem, ItemKey, KnowledgeItem, derived_items
from recollect.projections.queries.later_statements import LaterStatement, later_statements
from recollect.projections.queries.records import fetch_dicts, fetch_records, fetch_tuples, fetch_values

# Source events of facts and preferences that ended or were replaced, and of relationships that ended. A fact that was
# merged into an equal one has no end of validity; one that was over when it was said (`I used to live in Oslo`) is not
# outdated.
_OUTDATED_SOURCES = """
SELECT DISTINCT source.value FROM current_facts, json_each(current_facts.source_events) AS source
WHERE status = 'invalidated' OR (status = 'superseded' AND valid_until_us IS NOT NULL)
OR (status = 'ended' AND valid_until_us > created_at_us)
UNION SELECT source.value FROM preferences, json_each(preferences.source_events) AS source
WHERE status IN ('invalidated', 'ended') OR (status = 'superseded' AND valid_until_us IS NOT NULL)
UNION SELECT source.value FROM relationships, json_each(relationships.source_events) AS source WHERE status = 'ended'
"""
_OUTDATED_VERSIONS = f"SELECT version FROM episodes WHERE id IN ({_OUTDATED_SOURCES}) ORDER BY version"
# Ratings whose memory is an episode.
_EPISODE_RATINGS = "SELECT version, rating FROM ratings CROSS JOIN episodes ON id = memory_id"
# The latest active facts, preferences and relationships, with speaker and session of the first source: a message may
# repeat, replace, end or correct them.
_LATEST_STATEMENTS = """
SELECT session_id, speaker, subject, predicate, object, known.text AS text, known.kind AS kind, is_preference FROM (
    SELECT * FROM (
        SELECT id, subject, predicate, object, coalesce(statement, '') AS text, statement_kind AS kind,
            0 AS is_preference, json_extract(source_events, '$[0]') AS source, updated_at_us AS at_us
        FROM facts WHERE status = 'active' ORDER BY key DESC LIMIT ?1
    )
    UNION ALL SELECT * FROM (
        SELECT id, '', '', value, '', iif(standing, 'rule', 'preference'),
            1, json_extract(source_events, '$[0]'), updated_at_us
        FROM preferences WHERE status = 'active' ORDER BY key DESC LIMIT ?1
    )
    UNION ALL SELECT * FROM (
        SELECT r.id, a.name, r.type, b.name, '', 'relation', 0, json_extract(r.source_events, '$[0]'), r.updated_at_us
        FROM relationships AS r JOIN entities AS a ON a.id = source_id JOIN entities AS b ON b.id = target_id
        WHERE r.status = 'active' ORDER BY r.key DESC LIMIT ?1
    )
) AS known JOIN episodes ON episodes.id = source WHERE version <= ?2 ORDER BY at_us DESC, known.id DESC LIMIT ?1
"""
#: Statements for the memories that can become stale or be merged, by kind, with the columns of `ActiveMemory`.
_ACTIVE_MEMORIES = {
    "fact": """
SELECT id, subject || ' ' || predicate || ' ' || object AS text, lower(subject || ' ' || predicate) AS topic,
    confidence, evidence_count AS evidence, source_type, updated_at_us, stale_at_us, type, ttl_days
FROM facts WHERE status = 'active' AND pinned = 0 AND source_type <> 'corrected' ORDER BY id
""",
    "preference": """
SELECT id, value || ' ' || name AS text, category AS topic, strength AS confidence, evidence_count AS evidence,
    source_type, updated_at_us, stale_at_us, 'preference' AS type, NULL AS ttl_days
FROM preferences WHERE status = 'active' AND pinned = 0 AND source_type <> 'corrected' ORDER BY id
""",
    "procedure": """
SELECT id, name || ': ' || trigger AS text, lower(name) AS topic, confidence, success_count + failure_count AS evidence,
    'stated' AS source_type, updated_at_us, stale_at_us, 'procedure' AS type, NULL AS ttl_days
FROM procedures WHERE status = 'active' AND pinned = 0 ORDER BY id
""",
    "relationship": """
SELECT relationships.id AS id, source.name || ' ' || relationships.type || ' ' || target.name AS text,
    relationships.type AS topic, confidence, evidence_count AS evidence, 'stated' AS source_type, updated_at_us,
    stale_at_us, 'relationship' AS type, NULL AS ttl_days
FROM relationships JOIN entities AS source ON source.id = source_id JOIN entities AS target ON target.id = target_id
WHERE status = 'active' AND pinned = 0 ORDER BY relationships.id
""",
}


class ActiveMemory(Struct, frozen=True, kw_only=True):
    """An active fact, preference, procedure or relationship that is neither pinned nor a correction by a user."""

    kind: str
    id: str
    #: The memory as a sentence.
    text: str
    #: Memories of one kind and topic may be duplicates: subject and predicate of a fact, category of a preference …
    topic: str
    confidence: float
    #: Number of statements; for procedures of successes and failures.
    evidence: int
    #: stated, observed or inferred.
    source_type: str
    updated_at_us: int
    #: The memory becomes stale at this time, by its time to live in the read model; None: never.
    stale_at_us: int | None
    #: The type that a time to live belongs to, a key of `TTL_DAYS`.
    type: str
    #: The time to live of a fact, in days; None: that of the type.
    ttl_days: int | None


class PriorStatement(Struct, frozen=True, kw_only=True):
    """A fact or a preference with the speaker and session of the message that stated it."""

    session_id: str | None
    speaker: str
    subject: str
    #: Empty for a preference.
    predicate: str
    #: The object of a fact; the value of a preference.
    object: str
    #: The sentence that has a vector; empty: subject, predicate and object make one.
    text: str = ""
    #: What it is about, as in `Fact`; None: not known.
    kind: str | None = None
    is_preference: bool = False


class KnowledgeQueries:
    """Queries on the tables of facts, preferences, procedures, relationships, documents and ratings."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def items(self) -> list[KnowledgeItem]:
        """Return all active and stale items, grouped by kind."""
        return [item.value for item in self.derived_items({}, lambda item: item).values()]

    def derived_items(
        self, previous: Mapping[ItemKey, DerivedItem[Derived]], derive: Callable[[KnowledgeItem], Derived]
    ) -> dict[ItemKey, DerivedItem[Derived]]:
        """Return what is derived from each active and stale item; see `knowledge_items.derived_items`."""
        return derived_items(self._connection, previous, derive)

    def outdated_sources(self) -> frozenset[str]:
        """Return the ids of the source events of superseded and invalidated facts."""
        return frozenset(fetch_values(self._connection, _OUTDATED_SOURCES))

    def later_statements(self) -> dict[str, LaterStatement]:
        """Return the newest statement that ended or replaced one of an event, by the id of that event."""
        return later_statements(self._connection)

    def outdated_versions(self) -> list[int]:
        """Return the versions of the episodes among `outdated_sources`, ascending."""
        return fetch_values(self._connection, _OUTDATED_VERSIONS)

    def ratings(self) -> dict[str, float]:
        """Return the ratings of memories by id."""
        return dict(fetch_tuples(self._connection, "SELECT memory_id, rating FROM ratings"))

    def episode_ratings(self) -> dict[int, float]:
        """Return the ratings of episodes by version."""
        return dict(fetch_tuples(self._connection, _EPISODE_RATINGS))

    def latest_statements(self, limit: int, *, through: int) -> list[PriorStatement]:
        """Return the latest `limit` active facts, preferences and relationships with their speakers, oldest first.

        Parameters:
            through: version of the last message whose statements are returned.
        """
        return fetch_records(self._connection, PriorStatement, _LATEST_STATEMENTS, (limit, through))[::-1]

    def active_memories(self) -> list[ActiveMemory]:
        """Return the memories that can become stale or be merged, ordered by kind and id."""
        return [
            ActiveMemory(kind=kind, **row)
            for kind, statement in _ACTIVE_MEMORIES.items()
            for row in fetch_dicts(self._connection, statement)
        ]
