"""The entity graph: from the entities that a query names over their relationships to the episodes that name them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw

#: Steps over relationships (`000`).
_STEPS_MAX = 2
#: Relationships followed from one entity, strongest first; entities reached in all.
_EDGES_MAX = 10
_ENTITIES_MAX = 40
#: Relationships that are hardly known are not followed (`000`).
_CONFIDENCE_MIN = 0.3
#: Episodes looked at for each entity, newest first. Who is named more often than that is no clue.
_EPISODES_MAX = 500
#: Entities that are named together are related a little, whatever was said (`004`: mentions).
_TOGETHER = 0.35
_TOGETHER_MAX = 5

_EDGES = """
SELECT CASE WHEN source_id = ?1 THEN target_id ELSE source_id END, weight * confidence FROM relationships
WHERE (source_id = ?1 OR target_id = ?1) AND status = 'active' AND confidence > ?2 AND weight > 0
ORDER BY weight * confidence DESC, key LIMIT ?3
"""
_NAMED_TOGETHER = f"""
WITH named AS (SELECT version FROM mentions WHERE entity_id = ? ORDER BY version DESC LIMIT {_EPISODES_MAX})
SELECT entity_id FROM named JOIN mentions USING (version) JOIN entities ON id = entity_id
WHERE spoken_count = 0 AND entity_id <> ?
GROUP BY entity_id ORDER BY count(*) DESC, entity_id LIMIT {_TOGETHER_MAX}
"""


def reach(connection: apsw.Connection, entities: Sequence[int]) -> dict[int, float]:
    """Return how strongly each entity is related to `entities`, which are at 1: 0 to 1, each once, circles or not.

    A step over a relationship counts its weight and confidence, and the second step half; one of weight 0, such as
    `contradicts`, is never taken.
    """
    strength = dict.fromkeys(entities, 1.0)
    edge = list(entities)
    for step in range(_STEPS_MAX):
        following: dict[int, float] = {}
        for entity in edge:
            rows: list[tuple[Any, ...]] = connection.execute(_EDGES, (entity, _CONFIDENCE_MIN, _EDGES_MAX)).fetchall()
            for other, weight in rows:
                reached = strength[entity] * min(weight, 1.0) / (1 + 0.5 * step)
                if other not in strength:
                    following[other] = max(reached, following.get(other, 0.0))
        edge = sorted(following, key=lambda entity: (-following[entity], entity))[: _ENTITIES_MAX - len(strength)]
        strength |= {entity: following[entity] for entity in edge}
    for entity in entities:
        together: list[tuple[Any, ...]] = connection.execute(_NAMED_TOGETHER, (entity, entity)).fetchall()
        for (other,) in together:
            strength.setdefault(other, _TOGETHER)
    return strength


def naming(connection: apsw.Connection, strength: dict[int, float]) -> dict[int, float]:
    """Return the episodes that name entities, each with the strength of the strongest one."""
    found: dict[int, float] = {}
    for entity, reached in sorted(strength.items(), key=lambda pair: -pair[1]):
        rows: list[tuple[Any, ...]] = connection.execute(
            "SELECT version FROM mentions WHERE entity_id = ? ORDER BY version DESC LIMIT ?", (entity, _EPISODES_MAX)
        ).fetchall()
        for (version,) in rows:
            found.setdefault(version, reached)
    return found
