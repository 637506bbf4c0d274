"""Entity neighbourhood: the graph of relationships and documents around an entity."""

from __future__ import annotations

from dataclasses import asdict
from typing import cast

from recollect.api.result_types import GraphEdge, Neighbourhood
from recollect.events.errors import InvalidInput
from recollect.projections.queries.snapshot import Snapshot

#: Largest number of steps from the entity; the number of edges grows with each step.
DEPTH_MAX = 5
#: Edges in one answer; the nearest ones are returned.
_EDGES_MAX = 500


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
    nearest = snapshot.entities.neighbourhood(name, depth=depth, limit=_EDGES_MAX)
    edges = [cast("GraphEdge", asdict(edge)) for edge in nearest]
    nodes = sorted({node for edge in edges for node in (edge["source"], edge["target"])} | {name})
    return {"entity": name, "nodes": nodes, "edges": edges}
