"""Knowledge walk: from the entities and documents of a query over the knowledge graph to their neighbours (`000`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from recollect.projections.search_index.knowledge_graph import KnowledgeGraph, Node

#: Edges between an entity of the query and a neighbour, at most (`000`).
_STEPS_MAX = 2
#: Edges followed from one node, strongest first; nodes reached in all.
_EDGES_MAX = 10
_NODES_MAX = 40
#: The strength of a node that a query names by a part of its name (`Huber` for `Dr. Huber`) or by a word with another
#: ending (`LIKE` in `002`).
_PART_STRENGTH = 0.7
_PREFIX_STRENGTH = 0.5
#: A word that more names have is not the name of one of them.
_SHARED_NAMES_MAX = 3
#: Words of fewer letters are no prefix of a name.
_PREFIX_LETTERS_MIN = 5
#: The factor on the strength of a hub, whose items have little to do with a neighbour of it.
_HUB_FACTOR = 0.5


def named_nodes(
    graph: KnowledgeGraph, entities: Iterable[int], words: Sequence[str], stems: Sequence[frozenset[str]]
) -> dict[Node, float]:
    """Return the nodes that a query names, with strengths from 0 to 1.

    Parameters:
        entities: the entities that the query names exactly.
        words: the words of the query, case folded.
        stems: the stems of each of `words`.
    """
    nodes: dict[Node, float] = dict.fromkeys(entities, 1.0)
    query_stems = frozenset(form for forms in stems for form in forms)
    for word, forms in zip(words, stems, strict=True):
        names = [name for form in forms for name in graph.names_with_stem.get(form, ())]
        whole = {name.node for name in names if name.stems <= query_stems}
        shared = {name.node for name in names} - whole
        strengths = dict.fromkeys(whole, 1.0)
        if not whole and len(shared) <= _SHARED_NAMES_MAX:
            strengths = dict.fromkeys(shared, _PART_STRENGTH)
        if not names and len(word) >= _PREFIX_LETTERS_MIN:
            prefixed = set(graph.nodes_with_prefix(word, _SHARED_NAMES_MAX + 1))
            strengths = dict.fromkeys(prefixed if len(prefixed) <= _SHARED_NAMES_MAX else (), _PREFIX_STRENGTH)
        for node, strength in strengths.items():
            if node not in graph.speakers:
                nodes[node] = max(strength, nodes.get(node, 0.0))
    return nodes


def neighbours(graph: KnowledgeGraph, named: Mapping[Node, float], matched: Mapping[Node, float]) -> dict[Node, float]:
    """Return the strength of each node within two edges of the `named` nodes, without them; 0 to 1.

    A node has the product of the strengths of the entry and the edges on the way, times 1 / (1 + 0.5 · steps), as in
    `000`. Every node is reached once, so cycles end. A walk ends at a hub and does not start at a speaker, who is a
    neighbour of nearly everything.

    Parameters:
        matched: the nodes that items are about which match the query, with the probabilities of these items: one step
            from the query.
    """
    reached: dict[Node, float] = {}
    frontier = {node: strength for node, strength in named.items() if node not in graph.speakers}
    for step in range(1, _STEPS_MAX + 1):
        following = {node: strength for node, strength in matched.items() if step == 1 and node not in named}
        for node, strength in frontier.items():
            for edge in graph.edges.get(node, ())[:_EDGES_MAX]:
                if edge.node not in named and edge.node not in reached:
                    following[edge.node] = max(strength * edge.strength, following.get(edge.node, 0.0))
        strongest = sorted(following.items(), key=lambda pair: (-pair[1], str(pair[0])))[: _NODES_MAX - len(reached)]
        for node, strength in strongest:
            reached[node] = strength / (1 + 0.5 * step) * (_HUB_FACTOR if node in graph.hubs else 1.0)
        frontier = {node: strength for node, strength in strongest if node not in graph.hubs}
    return reached
