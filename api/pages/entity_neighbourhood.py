"""The graph of what is related to an entity: relationships, and documents that bear on it."""

from __future__ import annotations

from typing import Any

import apsw

from recollect.events.errors import InvalidInput

#: Steps from the entity, at most.
DEPTH_MAX = 5
#: Edges in one answer.
_EDGES_MAX = 500

# UNION, not UNION ALL: an entity that was reached in as many steps before is not gone on from, so circles end.
_EDGES = f"""
WITH RECURSIVE
edges (source, type, target, weight, confidence) AS (
    SELECT a.name, relationships.type, b.name, weight, confidence FROM relationships
    JOIN entities AS a ON a.id = source_id JOIN entities AS b ON b.id = target_id WHERE status = 'active'
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
SELECT source, type, target, weight, confidence, min(depth) + 1 FROM edges
JOIN reached ON reached.name IN (edges.source COLLATE NOCASE, edges.target COLLATE NOCASE)
WHERE depth < ?2
GROUP BY source, type, target ORDER BY min(depth), weight DESC, source, type, target LIMIT {_EDGES_MAX}
"""
_NAME = """
SELECT name FROM entities WHERE id = (SELECT entity_id FROM entity_names WHERE name = ?)
UNION ALL SELECT id FROM documents WHERE id = ? LIMIT 1
"""


def graph(connection: apsw.Connection, entity: str, depth: int) -> dict[str, Any]:
    """Return what is related to `entity`, a name, an alias or a document's id, within `depth` steps.

    Each edge has its weight, by type, and its distance. What contradicts is shown and not gone on from.

    Raises:
        InvalidInput: `depth` is not from 1 to 5.
    """
    if not 1 <= depth <= DEPTH_MAX:
        raise InvalidInput(f"give a number from 1 to {DEPTH_MAX}", field="depth")
    row: Any = connection.execute(_NAME, (entity.casefold(), entity)).fetchone()
    if row is None:
        return {"entity": None, "nodes": [], "edges": []}
    rows: list[tuple[Any, ...]] = connection.execute(_EDGES, (row[0], depth)).fetchall()
    columns = ("source", "type", "target", "weight", "confidence", "distance")
    edges = [dict(zip(columns, edge, strict=True)) for edge in rows]
    nodes = sorted({edge[end] for edge in edges for end in ("source", "target")} | {row[0]})
    return {"entity": row[0], "nodes": nodes, "edges": edges}
