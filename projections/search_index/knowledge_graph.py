"""Knowledge graph: the entities and documents that knowledge is about, connected by relationships, facts and documents.

The graph of a namespace fits in memory, like its knowledge. Episodes are not part of it: `entity_queries` reads the
episodes that name an entity.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import islice
from typing import NamedTuple

from msgspec import Struct, field

from recollect.projections.queries.entity_queries import DocumentRelation, NamedEntity
from recollect.projections.queries.knowledge_items import KnowledgeItem
from recollect.projections.text.words import STOP_WORDS, WORD

#: An entity by its id, a document by `document_node`, a name that is neither by `name_node`.
Node = int | str
#: Relationships up to this confidence connect nothing, and are not items of a result (`000`).
CONFIDENCE_MIN = 0.3
#: The weight of a relationship of no particular type (`004`): such an edge of confidence 1 has the strength 1.
_WEIGHT_DEFAULT = 0.5
#: A node with more edges is a hub: nearly everything is a neighbour of it, so a walk does not pass it.
_HUB_EDGES = 12
#: Longest name within the object of a fact, in words.
_NAME_WORDS_MAX = 5
#: Words of an object that are searched for names.
_OBJECT_WORDS_MAX = 64
#: The speakers without a name.
_ROLES = frozenset(("user", "assistant"))
#: Words of a name with fewer letters match no query.
_NAME_LETTERS_MIN = 3


class GraphEdge(NamedTuple):
    """An edge of the graph, from one of its ends."""

    node: Node
    #: 0 to 1.
    strength: float


class NodeName(NamedTuple):
    """A name of a node."""

    node: Node
    #: The stems of the name without stop words.
    stems: frozenset[str]


class KnowledgeGraph(Struct, frozen=True, eq=False):
    """Nodes, their edges in both directions, and the rows of the knowledge index about them."""

    #: Strongest first.
    edges: Mapping[Node, Sequence[GraphEdge]] = field(default_factory=dict[Node, Sequence[GraphEdge]])
    #: Rows of `KnowledgeIndex.items` about each node.
    rows: Mapping[Node, Sequence[int]] = field(default_factory=dict[Node, Sequence[int]])
    #: The nodes of each row.
    nodes: Sequence[Sequence[Node]] = ()
    #: The names that contain a stem.
    names_with_stem: Mapping[str, Sequence[NodeName]] = field(default_factory=dict[str, Sequence[NodeName]])
    #: The words of all names with their nodes, sorted.
    name_words: Sequence[tuple[str, Node]] = ()
    #: Speakers: the participants of the conversations, `user` and `assistant`.
    speakers: frozenset[Node] = frozenset()
    #: Speakers, and nodes with many edges.
    hubs: frozenset[Node] = frozenset()

    def nodes_of(self, row: int) -> Sequence[Node]:
        """Return the nodes that a row of the knowledge index is about."""
        return self.nodes[row] if row < len(self.nodes) else ()

    def nodes_with_prefix(self, prefix: str, limit: int) -> list[Node]:
        """Return up to `limit` nodes with a word in their names that begins with `prefix`, which is lower case."""
        start = bisect_left(self.name_words, (prefix,))
        words = islice(self.name_words, start, start + limit)
        return [node for word, node in words if word.startswith(prefix)]


class _Edges:
    """The edges of a graph while it is built."""

    def __init__(self) -> None:
        self._strengths: dict[Node, dict[Node, float]] = {}

    def add(self, first: Node, second: Node, strength: float) -> None:
        """Connect two nodes; of several edges between them, the strongest one counts."""
        if first == second or strength <= 0:
            return
        for source, target in ((first, second), (second, first)):
            targets = self._strengths.setdefault(source, {})
            targets[target] = max(strength, targets.get(target, 0.0))

    def sorted(self) -> dict[Node, Sequence[GraphEdge]]:
        """Return the edges of each node, strongest first."""
        return {
            node: [
                GraphEdge(other, strength)
                for other, strength in sorted(targets.items(), key=lambda pair: (-pair[1], str(pair[0])))
            ]
            for node, targets in self._strengths.items()
        }


def document_node(document_id: str) -> Node:
    """Return the node of a document."""
    return f"document {document_id}"


def name_node(name: str) -> Node:
    """Return the node of a name that is neither an entity nor a document of the graph."""
    return f"name {name.casefold()}"


def build_graph(
    items: Sequence[tuple[KnowledgeItem, Sequence[str]]],
    entities: Sequence[NamedEntity],
    relations: Sequence[DocumentRelation],
    stem: Callable[[str], list[str]],
) -> KnowledgeGraph:
    """Return the graph of knowledge items.

    Parameters:
        items: each with its `object_words`.
        entities: the names of the entities that the items are about.
        relations: the relations of the documents.
        stem: returns the stems of a text, in order.
    """
    by_name: dict[str, Node] = {entity.name: entity.entity_id for entity in entities}
    first_words = {name.partition(" ")[0] for name in by_name}
    documents = {item.document_id for item, _ in items if item.document_id is not None}
    edges = _Edges()
    rows: dict[Node, list[int]] = {}
    nodes_by_row: list[Sequence[Node]] = []
    for row, (item, object_words) in enumerate(items):
        nodes: list[Node] = list(item.entities)
        if item.document_id is not None:
            nodes.append(document_node(item.document_id))
        if item.kind == "fact":
            if not first_words.isdisjoint(object_words):
                named = _nodes_named(object_words, by_name, first_words)
                nodes += [node for node in named if node not in nodes]
            for node in nodes[1:]:
                edges.add(nodes[0], node, item.confidence if item.confidence > CONFIDENCE_MIN else 0.0)
        elif item.kind == "relationship" and item.confidence > CONFIDENCE_MIN:
            source, target = item.entities
            edges.add(source, target, min(1.0, item.weight / _WEIGHT_DEFAULT) * item.confidence)
        nodes_by_row.append(nodes)
        for node in nodes:
            rows.setdefault(node, []).append(row)
    names: list[tuple[str, Node]] = [(entity.name, entity.entity_id) for entity in entities]
    for relation in relations:
        target = by_name.get(relation.target.casefold())
        if relation.target in documents:
            target = document_node(relation.target)
        elif target is None:
            target = name_node(relation.target)
            names.append((relation.target.casefold(), target))
        edges.add(document_node(relation.document_id), target, relation.weight)
    sorted_edges = edges.sorted()
    speakers = frozenset(entity.entity_id for entity in entities if entity.is_participant or entity.name in _ROLES)
    return KnowledgeGraph(
        edges=sorted_edges,
        rows=rows,
        nodes=nodes_by_row,
        names_with_stem=_names_by_stem(names, stem),
        name_words=sorted(
            ((word, node) for name, node in names for word in _name_words(name)),
            key=lambda pair: (pair[0], str(pair[1])),
        ),
        speakers=speakers,
        hubs=speakers | {node for node, others in sorted_edges.items() if len(others) > _HUB_EDGES},
    )


def object_words(text: str) -> Sequence[str]:
    """Return the words of an object that are searched for names."""
    return WORD.findall(text.casefold())[:_OBJECT_WORDS_MAX]


def _nodes_named(words: Sequence[str], by_name: Mapping[str, Node], first_words: Set[str]) -> list[Node]:
    """Return the nodes whose names are in `words`, longest names first.

    Parameters:
        first_words: the first words of the names.
    """
    starts = [place for place, word in enumerate(words) if word in first_words]
    candidates = (
        " ".join(words[start : start + length])
        for length in range(_NAME_WORDS_MAX, 0, -1)
        for start in starts
        if start + length <= len(words)
    )
    nodes: Iterable[Node] = (by_name[name] for name in candidates if name in by_name and name not in STOP_WORDS)
    return list(dict.fromkeys(nodes))


def _name_words(name: str) -> list[str]:
    """Return the words of a name that a query may contain."""
    return [word for word in WORD.findall(name) if len(word) >= _NAME_LETTERS_MIN and word not in STOP_WORDS]


def _names_by_stem(
    names: Iterable[tuple[str, Node]], stem: Callable[[str], list[str]]
) -> dict[str, Sequence[NodeName]]:
    """Return the names that contain each stem."""
    by_stem: dict[str, list[NodeName]] = {}
    for name, node in names:
        stems = frozenset(stem(" ".join(_name_words(name))))
        for part in stems:
            by_stem.setdefault(part, []).append(NodeName(node, stems))
    return dict(by_stem)
