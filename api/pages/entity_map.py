"""Entity map: all entities of a namespace with the relationships, facts and common messages that connect them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, cast

import orjson
from msgspec.structs import asdict

from recollect.api.result_types import GraphEdge, Neighbourhood
from recollect.events.envelope import rfc3339
from recollect.events.errors import InvalidInput
from recollect.events.late_pattern import late_pattern
from recollect.projections.queries.map_queries import MapDocument, MapFact, MapQueries
from recollect.projections.queries.snapshot import Snapshot

#: Entities of one answer: about 1 MB of JSON with the edges, which a browser lays out in two seconds.
ENTITIES_MAX = 5_000
#: Relationships and facts of one answer, each: twice the entities, as in graphs extracted from chats.
_EDGES_MAX = 10_000
#: Mentions that are read for the common messages, the newest ones: 50 ms.
_MENTIONS_MAX = 20_000
#: Entities of one message that are connected with one another; a longer list names everything.
_ENTITIES_OF_MESSAGE_MAX = 8
#: Pairs with common messages in one answer, the most frequent ones.
_PAIRS_MAX = 10_000
#: Documents of one answer, the newest ones, and characters of each that are read for names: 20 ms.
_DOCUMENTS_MAX, _DOCUMENT_CHARACTERS_MAX = 200, 4_000
#: Entities that a document is connected with because its text names them: those that it names most.
_ENTITIES_OF_DOCUMENT_MAX = 8
#: Stated relations of a document that are returned: more than a person looks through.
_RELATIONS_OF_DOCUMENT_MAX = 100
#: Words of a name that is searched in a document; longer names are titles.
_NAME_WORDS_MAX = 4
_WORD = late_pattern(r"\w+")
#: Largest number of steps from the entity; the number of edges grows with each step.
DEPTH_MAX = 5
#: Edges in one answer; the nearest ones are returned.
_NEIGHBOUR_EDGES_MAX = 500


def entity_map(snapshot: Snapshot, limit: int) -> dict[str, Any]:
    """Return the `limit` entities that matter most, and the edges between them.

    An edge has the kind ``relationship``, ``fact`` or ``together``: messages that name both, or that one wrote and that
    name the other. A fact whose object is not an entity has `target` None and the object as `text`. A document has
    `links`: to the entities and documents that it is stated to relate to, and to the entities that its text names.

    Raises:
        InvalidInput: `limit` is not from 1 to 5,000.
    """
    if not 1 <= limit <= ENTITIES_MAX:
        raise InvalidInput(f"give a number from 1 to {ENTITIES_MAX:,}", field="limit")
    entities = snapshot.map.entities(limit)
    ids = {entity.id for entity in entities}
    names = snapshot.map.names()
    edges: list[dict[str, Any]] = [
        {"kind": "relationship", **asdict(edge)}
        for edge in snapshot.map.relationships(_EDGES_MAX)
        if edge.source in ids and edge.target in ids
    ]
    edges += [_fact_edge(fact, names, ids) for fact in snapshot.map.facts(_EDGES_MAX) if fact.subject in ids]
    edges += [
        {"kind": "together", "source": first, "target": second, "count": count}
        for (first, second), count in _pairs(snapshot.map, names, ids)
    ]
    return {
        "version": snapshot.version,
        "entities": [asdict(entity) for entity in entities],
        "edges": edges,
        "documents": _documents(snapshot.map, names, ids),
        "total": snapshot.map.entity_count(),
    }


def _fact_edge(fact: MapFact, names: Mapping[str, int], ids: set[int]) -> dict[str, Any]:
    """Return the edge of a fact."""
    target = names.get(fact.object.casefold())
    return {
        "kind": "fact",
        "id": fact.id,
        "source": fact.subject,
        "type": fact.predicate,
        "target": target if target in ids and target != fact.subject else None,
        "text": fact.object,
        "status": fact.status,
        "valid_until": None if fact.valid_until_us is None else rfc3339(fact.valid_until_us),
    }


def _documents(queries: MapQueries, names: Mapping[str, int], ids: set[int]) -> list[dict[str, Any]]:
    """Return the documents with their links; `entity` is an id of `ids`, `document` that of a returned document."""
    documents = queries.documents(_DOCUMENTS_MAX, characters=_DOCUMENT_CHARACTERS_MAX)
    returned = {document.id for document in documents}
    words_of_names = {" ".join(_WORD.findall(name)): group for name, group in names.items() if group in ids}
    answer: list[dict[str, Any]] = []
    for document in documents:
        links: list[dict[str, Any]] = []
        for kind, target in orjson.loads(document.relations)[:_RELATIONS_OF_DOCUMENT_MAX]:
            entity = names.get(target.casefold())
            if target in returned:
                links.append({"type": kind, "entity": None, "document": target})
            elif entity in ids:
                links.append({"type": kind, "entity": entity, "document": None})
        related = {link["entity"] for link in links}
        links += [
            {"type": "mentions", "entity": entity, "document": None}
            for entity in _named_entities(document, words_of_names)
            if entity not in related
        ]
        answer.append({"id": document.id, "title": document.title, "review": document.review, "links": links})
    return answer


def _named_entities(document: MapDocument, words_of_names: Mapping[str, int]) -> list[int]:
    """Return the entities that a document names with a capital letter, those that it names most often."""
    words = _WORD.findall(f"{document.title}\n{document.beginning}")
    counts: Counter[int] = Counter()
    for start, word in enumerate(words):
        if word[0].islower() or word[0].isdigit():
            continue
        for count in range(_NAME_WORDS_MAX, 0, -1):
            entity = words_of_names.get(" ".join(words[start : start + count]).casefold())
            if entity is not None:
                counts[entity] += 1
                break
    return [entity for entity, _ in counts.most_common(_ENTITIES_OF_DOCUMENT_MAX)]


def _pairs(queries: MapQueries, names: Mapping[str, int], ids: set[int]) -> Sequence[tuple[tuple[int, int], int]]:
    """Return the pairs of entities with common messages and the number of these, the most frequent pairs first."""
    groups_of_messages: defaultdict[int, set[int]] = defaultdict(set)
    for version, group, speaker in queries.mentions(_MENTIONS_MAX):
        groups = groups_of_messages[version]
        groups.add(group)
        speaking = names.get(speaker.casefold())
        if speaking is not None:
            groups.add(speaking)
    counts: Counter[tuple[int, int]] = Counter()
    for groups in groups_of_messages.values():
        counts.update(combinations(sorted(groups & ids)[:_ENTITIES_OF_MESSAGE_MAX], 2))
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:_PAIRS_MAX]


def entity_neighbourhood(snapshot: Snapshot, entity: str, depth: int) -> Neighbourhood:
    """Return the nodes and edges within `depth` steps of `entity`: a name, an alias or the id of a document.

    Each edge has the weight of its type, and its distance. Contradictions are returned but not followed.

    Raises:
        InvalidInput: `depth` is not from 1 to 5.
    """
    if not 1 <= depth <= DEPTH_MAX:
        raise InvalidInput(f"give a number from 1 to {DEPTH_MAX}", field="depth")
    name = snapshot.entities.node_name(entity)
    if name is None:
        return {"entity": None, "nodes": [], "edges": []}
    nearest = snapshot.entities.neighbourhood(name, depth=depth, limit=_NEIGHBOUR_EDGES_MAX)
    edges = [cast("GraphEdge", asdict(edge)) for edge in nearest]
    nodes = sorted({node for edge in edges for node in (edge["source"], edge["target"])} | {name})
    return {"entity": name, "nodes": nodes, "edges": edges}
