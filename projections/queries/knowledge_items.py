"""Knowledge items: reads the memories that are searched and displayed besides episodes, one item a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import apsw
import orjson

from recollect.events.envelope import DAY_US
from recollect.projections.queries.grouped_facts import subject_with_role
from recollect.projections.queries.page_queries import DESCRIBED_BY
from recollect.projections.queries.records import fetch_dicts
from recollect.projections.schema.time_to_live import TTL_DAYS
from recollect.projections.text.statement_lines import fact_line, preference_line, relationship_line

#: The kinds of knowledge items.
Kind = Literal["fact", "entity", "preference", "procedure", "relationship", "document"]

# One statement for each kind. The time of confirmation is the time to live before
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

#: The kind of an item, and what no other item of the kind has.
ItemKey = tuple[Kind, str | int]
#: What is derived from an item.
Derived = TypeVar("Derived")


class DerivedItem(NamedTuple, Generic[Derived]):
    """What was derived from an item, and the columns that the item was read from."""

    row: tuple[Any, ...]
    value: Derived


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


def derived_items(
    connection: apsw.Connection,
    previous: Mapping[ItemKey, DerivedItem[Derived]],
    derive: Callable[[KnowledgeItem], Derived],
) -> dict[ItemKey, DerivedItem[Derived]]:
    """Return what is derived from each active and stale item, grouped by kind.

    Parameters:
        previous: the result of an earlier call. Where the row of an item is the same, what was derived is used again:
            to derive it takes ten times as long as to read the row.
        derive: returns what an index needs of an item.
    """
    items: dict[ItemKey, DerivedItem[Derived]] = {}
    for kind, statement, bindings, item_of in _READERS:
        cursor = connection.execute(statement, bindings)
        names: list[str] = []
        for row in cursor:
            key = kind, row[0]
            last = previous.get(key)
            if last is None or last.row != row:
                names = names or [column[0] for column in cursor.get_description()]
                last = DerivedItem(row, derive(item_of(dict(zip(names, row, strict=True)))))
            items[key] = last
    for row, item in _chunks(connection):
        last = previous.get((item.kind, item.id))
        items[item.kind, item.id] = DerivedItem(row, derive(item)) if last is None or last.row != row else last
    return items


def _fact(row: dict[str, Any]) -> KnowledgeItem:
    """Return the item of a row of `_FACTS`."""
    subject = subject_with_role(row["subject"], row["name"], row["aliases"])
    line = row["statement"] or fact_line(subject, row["predicate"], row["object"])
    return KnowledgeItem(
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


def _entity(row: dict[str, Any]) -> KnowledgeItem:
    """Return the item of a row of `_ENTITIES`."""
    name, description = row["name"], row["description"]
    return KnowledgeItem(
        kind="entity",
        id=name,
        text=" ".join([name, *orjson.loads(row["aliases"]), description]),
        line=f"**{name}** ({row['type']}): {description}",
        occurred_at_us=row["last_seen_us"],
        entities=(row["group_id"],),
        titles=(name, *orjson.loads(row["aliases"])),
    )


def _preference(row: dict[str, Any]) -> KnowledgeItem:
    """Return the item of a row of `_PREFERENCES`."""
    value, name = row["value"], row["name"]
    return KnowledgeItem(
        kind="preference",
        text=f"{name} {value}" if row["category"] == "other" else f"{row['category']}: {name} {value}",
        line=value if row["standing"] else preference_line(row["subject"], row["category"], name, value),
        standing=bool(row["standing"]),
        source_type=row["source_type"],
        titles=(name,),
        stated_by=row["subject"] or None,
        **_state(row),
    )


def _procedure(row: dict[str, Any]) -> KnowledgeItem:
    """Return the item of a row of `_PROCEDURES`."""
    steps: list[str] = orjson.loads(row["steps"])
    name, trigger = row["name"], row["trigger"]
    return KnowledgeItem(
        kind="procedure",
        text=" ".join([name, trigger, *steps, row["context"] or ""]),
        line=f"**{name}** (confidence: {row['confidence']:.2f}): {trigger}: {' → '.join(steps)}",
        titles=(name, trigger),
        **_state(row),
    )


def _relationship(row: dict[str, Any]) -> KnowledgeItem:
    """Return the item of a row of `_RELATIONSHIPS`."""
    line = relationship_line(row["source"], row["type"], row["target"])
    return KnowledgeItem(
        kind="relationship",
        text=line,
        line=line,
        entities=(row["source_id"], row["target_id"]),
        predicate=row["type"],
        weight=row["weight"],
        stated_by=row["voice"] or None,
        **_state(row),
    )


#: Statement, values of its placeholders, and what makes an item of a row, by kind.
_READERS: Sequence[tuple[Kind, str, tuple[int, ...], Callable[[dict[str, Any]], KnowledgeItem]]] = (
    ("fact", _FACTS, (DAY_US,), _fact),
    ("entity", _ENTITIES, (), _entity),
    ("preference", _PREFERENCES, (TTL_DAYS["preference"] * DAY_US,), _preference),
    ("procedure", _PROCEDURES, (TTL_DAYS["procedure"] * DAY_US,), _procedure),
    ("relationship", _RELATIONSHIPS, (TTL_DAYS["relationship"] * DAY_US,), _relationship),
)


def _chunks(connection: apsw.Connection) -> Iterator[tuple[tuple[Any, ...], KnowledgeItem]]:
    """Yield the chunks of the documents, each with the row that it was read from."""
    replacements = {
        row["id"]: Replacement(row["other_id"], row["other_title"]) for row in fetch_dicts(connection, _REPLACEMENTS)
    }
    contradictions = _contradictions(connection, replacements)
    for row in fetch_dicts(connection, _CHUNKS):
        text = f"{row['title']}: {row['text']}"
        replaced_by, contradicted_by = replacements.get(row["id"]), contradictions.get(row["id"])
        item = KnowledgeItem(
            kind="document",
            id=f"{row['id']}#{row['number']}",
            text=text,
            line=text,
            source_type="authoritative",
            version=row["version"],
            occurred_at_us=row["added_at_us"],
            titles=(row["title"],),
            document_id=row["id"],
            replaced_by=replaced_by,
            contradicted_by=contradicted_by,
        )
        yield (*row.values(), replaced_by, contradicted_by), item


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
        "confidence": row["strength"] if "strength" in row else row["confidence"],
        "status": row["status"],
        "pinned": bool(row["pinned"]),
        "source_events": tuple(orjson.loads(row["source_events"])),
        "version": row["version"],
        "occurred_at_us": row["updated_at_us"],
        "confirmed_at_us": row["confirmed_at_us"],
    }
