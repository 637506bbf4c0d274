"""Knowledge queries: read facts, preferences, procedures, relationships, described entities and document chunks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import apsw
import orjson

from recollect.events.envelope import DAY_US
from recollect.projections.queries.grouped_facts import subject_with_role
from recollect.projections.queries.later_statements import LaterStatement, later_statements
from recollect.projections.queries.page_queries import DESCRIBED_BY
from recollect.projections.queries.records import fetch_dicts, fetch_records, fetch_tuples, fetch_values
from recollect.projections.schema.time_to_live import TTL_DAYS
from recollect.projections.text.statement_lines import fact_line, preference_line, relationship_line

#: The kinds of knowledge items.
Kind = Literal["fact", "entity", "preference", "procedure", "relationship", "document"]

# The statements of `KnowledgeQueries.items`, one for each kind. The time of confirmation is the time to live before
# `stale_at_us`.
_FACTS = """
SELECT id, subject, predicate, object, statement, statement_kind, confidence, status, pinned, source_type,
    source_events, version, updated_at_us,
    valid_from_us, valid_until_us, group_id AS entity_id, topic, type, layer, stated_by,
    stale_at_us - ttl_days * ? AS confirmed_at_us,
    (SELECT aliases FROM entities WHERE id = group_id AND aliases <> '[]') AS aliases,
    (SELECT name FROM entities WHERE id = group_id) AS name
FROM current_facts JOIN entity_groups USING (entity_id) WHERE status IN ('active', 'stale') ORDER BY key
"""
# An entity that is described by a relationship that ended, or was forgotten, is left out: `Ann's boyfriend`.
_OUTDATED_DESCRIPTION = DESCRIBED_BY.format(statuses="'superseded', 'ended', 'forgotten'")
_ENTITIES = f"""
SELECT id, name, type, description, aliases, last_seen_us, group_id
FROM entities JOIN entity_groups ON entity_id = id
WHERE description IS NOT NULL AND NOT {_OUTDATED_DESCRIPTION} ORDER BY id
"""
_PREFERENCES = """
SELECT id, subject, category, name, value, strength, status, pinned, standing, source_type, source_events, version,
    updated_at_us, stale_at_us - ? AS confirmed_at_us
FROM preferences WHERE status IN ('active', 'stale') ORDER BY key
"""
_PROCEDURES = """
SELECT id, name, trigger, steps, context, confidence, status, pinned, source_events, version, updated_at_us,
    stale_at_us - ? AS confirmed_at_us
FROM procedures WHERE status IN ('active', 'stale') ORDER BY key
"""
_RELATIONSHIPS = """
SELECT r.id, a.name AS source, r.type, b.name AS target, r.confidence, r.status, r.pinned, r.source_events, r.version,
    r.updated_at_us, source.group_id AS source_id, target.group_id AS target_id, r.weight,
    r.stale_at_us - ? AS confirmed_at_us, r.voice
FROM relationships AS r
JOIN entity_groups AS source ON source.entity_id = source_id
JOIN entity_groups AS target ON target.entity_id = target_id
JOIN entities AS a ON a.id = source.group_id JOIN entities AS b ON b.id = target.group_id
WHERE r.status IN ('active', 'stale') AND weight > 0 ORDER BY r.key
"""
_CHUNKS = """
SELECT id, number, title, chunks.text AS text, version, added_at_us FROM documents JOIN chunks ON document_id = id
ORDER BY id, number
"""
# The document that supersedes another one, with its title. Of two that supersede each other, the newer one counts.
_REPLACEMENTS = """
SELECT r.target AS id, new.id AS other_id, new.title AS other_title
FROM document_relations AS r JOIN documents AS new ON new.id = r.document_id JOIN documents AS old ON old.id = r.target
WHERE r.type = 'supersedes' AND old.id <> new.id AND NOT EXISTS (
    SELECT 1 FROM document_relations AS back
    WHERE back.type = 'supersedes' AND back.document_id = old.id AND back.target = new.id AND old.version > new.version
)
ORDER BY new.version
"""
# Two documents that contradict each other, each with its authority: the weight of its strongest relation to something
# else, such as 1 for `governs` and 0.35 for `mentions`; 0.5 without one.
_CONTRADICTIONS = """
WITH authorities AS (
    SELECT id, title, coalesce((
        SELECT max(weight) FROM document_relations
        WHERE document_id = id AND type NOT IN ('contradicts', 'supersedes')
    ), 0.5) AS authority FROM documents
)
SELECT a.id AS id, a.title AS title, a.authority AS authority,
    b.id AS other_id, b.title AS other_title, b.authority AS other_authority
FROM document_relations AS r JOIN authorities AS a ON a.id = r.document_id JOIN authorities AS b ON b.id = r.target
WHERE r.type = 'contradicts' AND a.id <> b.id ORDER BY r.document_id, r.target
"""
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
_EPISODE_RATINGS = "SELECT version, rating FROM ratings JOIN episodes ON id = memory_id"
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


class Replacement(NamedTuple):
    """The document that supersedes another one."""

    document_id: str
    title: str


class KnowledgeItem(NamedTuple):
    """An item of knowledge for search and display; a NamedTuple, since thousands are created at once."""

    kind: Kind
    #: The id in the lists; for an entity its name; for a chunk the document's id, `#` and the number of the chunk.
    id: str
    #: The indexed and embedded text.
    text: str
    #: The displayed text.
    line: str
    #: Time of the last confirmation or change.
    occurred_at_us: int
    confidence: float = 1.0
    #: active or stale.
    status: str = "active"
    pinned: bool = False
    #: Whether it is an instruction for every conversation.
    standing: bool = False
    #: corrected, stated, observed or inferred; for documents authoritative.
    source_type: str = "stated"
    #: Ids of the source events; empty for chunks and entities.
    source_events: tuple[str, ...] = ()
    #: Version of the event that added it; for a chunk, the source event is looked up by this version.
    version: int = 0
    #: Start of validity; None: not stated.
    valid_from_us: int | None = None
    #: End of validity; None: still valid.
    valid_until_us: int | None = None
    #: Ids of the subject, source and target entities.
    entities: tuple[int, ...] = ()
    #: Subject and predicate of a fact, normalised: facts with one topic may contradict each other.
    topic: str | None = None
    #: Time of the last statement; None: not recorded for this kind.
    confirmed_at_us: int | None = None
    #: Predicate of a fact, type of a relationship; empty for other kinds.
    predicate: str = ""
    #: Object of a fact; empty for other kinds.
    object: str = ""
    #: Names of the item that a task or a question may contain: of a procedure its name and trigger, of a preference its
    #: name, of an entity its names, of a document its title.
    titles: tuple[str, ...] = ()
    #: Weight of a relationship in graph walks, 0 to 1.
    weight: float = 1.0
    #: Layer of a fact, given by its producer; None: that of its kind.
    layer: str | None = None
    #: Id of a chunk's document.
    document_id: str | None = None
    #: Id and title of the document that supersedes this one.
    replaced_by: Replacement | None = None
    #: Title of a document of more authority that contradicts this one.
    contradicted_by: str | None = None
    #: Who says it: of a fact about another person the speaker, of a preference its user; None: not recorded.
    stated_by: str | None = None
    #: The type of a fact: fact, event, decision, problem, commit, task; None for other kinds.
    memory_type: str | None = None
    #: What a fact is about: home, work, health, …; None: not known, or another kind of memory.
    statement_kind: str | None = None

    def is_valid_at(self, at_us: int) -> bool:
        """Return whether the item is valid at `at_us`, in microseconds."""
        return self.valid_until_us is None or self.valid_until_us > at_us


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveMemory:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorStatement:
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
        readers = (_facts, _entities, _preferences, _procedures, _relationships, _chunks)
        return [item for read in readers for item in read(self._connection)]

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


def _facts(connection: apsw.Connection) -> Iterator[KnowledgeItem]:
    """Yield the active and stale facts."""
    for row in fetch_dicts(connection, _FACTS, (DAY_US,)):
        subject = subject_with_role(row["subject"], row["name"], row["aliases"])
        line = row["statement"] or fact_line(subject, row["predicate"], row["object"])
        yield KnowledgeItem(
            kind="fact",
            text=line,
            line=line,
            source_type=row["source_type"],
            valid_from_us=row["valid_from_us"],
            valid_until_us=row["valid_until_us"],
            memory_type=row["type"],
            statement_kind=row["statement_kind"],
            entities=(row["entity_id"],),
            topic=row["topic"],
            predicate=row["predicate"],
            object=row["object"],
            layer=row["layer"],
            stated_by=row["stated_by"],
            **_state(row),
        )


def _entities(connection: apsw.Connection) -> Iterator[KnowledgeItem]:
    """Yield the entities with a description."""
    for row in fetch_dicts(connection, _ENTITIES):
        name, description = row["name"], row["description"]
        yield KnowledgeItem(
            kind="entity",
            id=name,
            text=" ".join([name, *orjson.loads(row["aliases"]), description]),
            line=f"**{name}** ({row['type']}): {description}",
            occurred_at_us=row["last_seen_us"],
            entities=(row["group_id"],),
            titles=(name, *orjson.loads(row["aliases"])),
        )


def _preferences(connection: apsw.Connection) -> Iterator[KnowledgeItem]:
    """Yield the active and stale preferences."""
    for row in fetch_dicts(connection, _PREFERENCES, (TTL_DAYS["preference"] * DAY_US,)):
        value, name = row["value"], row["name"]
        row["confidence"] = row["strength"]
        yield KnowledgeItem(
            kind="preference",
            text=f"{name} {value}" if row["category"] == "other" else f"{row['category']}: {name} {value}",
            line=value if row["standing"] else preference_line(row["subject"], row["category"], name, value),
            standing=bool(row["standing"]),
            source_type=row["source_type"],
            titles=(name,),
            stated_by=row["subject"] or None,
            **_state(row),
        )


def _procedures(connection: apsw.Connection) -> Iterator[KnowledgeItem]:
    """Yield the active and stale procedures."""
    for row in fetch_dicts(connection, _PROCEDURES, (TTL_DAYS["procedure"] * DAY_US,)):
        steps: list[str] = orjson.loads(row["steps"])
        name, trigger = row["name"], row["trigger"]
        yield KnowledgeItem(
            kind="procedure",
            text=" ".join([name, trigger, *steps, row["context"] or ""]),
            line=f"**{name}** (confidence: {row['confidence']:.2f}): {trigger}: {' → '.join(steps)}",
            titles=(name, trigger),
            **_state(row),
        )


def _relationships(connection: apsw.Connection) -> Iterator[KnowledgeItem]:
    """Yield the active and stale relationships."""
    for row in fetch_dicts(connection, _RELATIONSHIPS, (TTL_DAYS["relationship"] * DAY_US,)):
        line = relationship_line(row["source"], row["type"], row["target"])
        yield KnowledgeItem(
            kind="relationship",
            text=line,
            line=line,
            entities=(row["source_id"], row["target_id"]),
            predicate=row["type"],
            weight=row["weight"],
            stated_by=row["voice"] or None,
            **_state(row),
        )


def _chunks(connection: apsw.Connection) -> Iterator[KnowledgeItem]:
    """Yield the chunks of the documents."""
    replacements = {
        row["id"]: Replacement(row["other_id"], row["other_title"]) for row in fetch_dicts(connection, _REPLACEMENTS)
    }
    contradictions = _contradictions(connection, replacements)
    for row in fetch_dicts(connection, _CHUNKS):
        text = f"{row['title']}: {row['text']}"
        yield KnowledgeItem(
            kind="document",
            id=f"{row['id']}#{row['number']}",
            text=text,
            line=text,
            source_type="authoritative",
            version=row["version"],
            occurred_at_us=row["added_at_us"],
            titles=(row["title"],),
            document_id=row["id"],
            replaced_by=replacements.get(row["id"]),
            contradicted_by=contradictions.get(row["id"]),
        )


def _contradictions(connection: apsw.Connection, replacements: Mapping[str, Replacement]) -> dict[str, str]:
    """Return the title of the document that contradicts a document of less authority, by the latter's id.

    Of equal authority, the document that states the contradiction yields. A superseded document contradicts nothing.
    """
    titles: dict[str, str] = {}
    for row in fetch_dicts(connection, _CONTRADICTIONS):
        if row["id"] in replacements or row["other_id"] in replacements:
            continue
        if row["other_authority"] >= row["authority"]:
            titles.setdefault(row["id"], row["other_title"])
        else:
            titles.setdefault(row["other_id"], row["title"])
    return titles


def _state(row: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that all kinds of memories have."""
    return {
        "id": row["id"],
        "confidence": row["confidence"],
        "status": row["status"],
        "pinned": bool(row["pinned"]),
        "source_events": tuple(orjson.loads(row["source_events"])),
        "version": row["version"],
        "occurred_at_us": row["updated_at_us"],
        "confirmed_at_us": row["confirmed_at_us"],
    }
