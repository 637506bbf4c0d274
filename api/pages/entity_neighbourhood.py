"""The graph of what is related to an entity: relationships, and documents that bear on it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from recollect.events.errors import InvalidInput
from recollect.projections.queries.snapshot import Snapshot

#: Steps from the entity, at most.
DEPTH_MAX = 5
#: Edges in one answer.
_EDGES_MAX = 500


def entity_neighbourhood(snapshot: Snapshot, entity: str, depth: int) -> dict[str, Any]:
    """Return what is related to `entity`, a name, an alias or a document's id, within `depth` steps.

    Each edge has its weight, by type, and its distance. What contradicts is shown and not gone on from.

    Raises:
        InvalidInput: `depth` is not from 1 to 5.
    """
    if not 1 <= depth <= DEPTH_MAX:
        raise InvalidInput(f"give a number from 1 to {DEPTH_MAX}", field="depth")
    name = snapshot.entities.node_name(entity)
    if name is None:
        return {"entity": None, "nodes": [], "edges": []}
    edges = [asdict(edge) for edge in snapshot.entities.neighbourhood(name, depth=depth, limit=_EDGES_MAX)]
    nodes = sorted({edge[end] for edge in edges for end in ("source", "target")} | {name})
    return {"entity": name, "nodes": nodes, "edges": edges}
