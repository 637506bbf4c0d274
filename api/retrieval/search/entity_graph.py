"""The entity graph: from the entities that a query names over their relationships to the episodes that name them."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.projections.queries.entity_queries import EntityQueries

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
_CO_MENTION_STRENGTH = 0.35
_CO_MENTIONS_MAX = 5


def spread_activation(queries: EntityQueries, entities: Sequence[int]) -> dict[int, float]:
    """Return how strongly each entity is related to `entities`, which are at 1: 0 to 1, each once, circles or not.

    A step over a relationship counts its weight and confidence, and the second step half; one of weight 0, such as
    `contradicts`, is never taken.
    """
    strength = dict.fromkeys(entities, 1.0)
    frontier = list(entities)
    for step in range(_STEPS_MAX):
        next_strength: dict[int, float] = {}
        for entity in frontier:
            edges = queries.strongest_edges(entity, confidence_min=_CONFIDENCE_MIN, limit=_EDGES_MAX)
            for other, weight in edges:
                next_value = strength[entity] * min(weight, 1.0) / (1 + 0.5 * step)
                if other not in strength:
                    next_strength[other] = max(next_value, next_strength.get(other, 0.0))
        frontier = sorted(next_strength, key=lambda entity: (-next_strength[entity], entity))[
            : _ENTITIES_MAX - len(strength)
        ]
        strength |= {entity: next_strength[entity] for entity in frontier}
    for entity in entities:
        for other in queries.co_mentioned(entity, episodes_max=_EPISODES_MAX, limit=_CO_MENTIONS_MAX):
            strength.setdefault(other, _CO_MENTION_STRENGTH)
    return strength


def episodes_naming(queries: EntityQueries, strength: dict[int, float]) -> dict[int, float]:
    """Return the episodes that name entities, each with the strength of the strongest one."""
    strength_by_version: dict[int, float] = {}
    for entity, value in sorted(strength.items(), key=lambda pair: -pair[1]):
        for version in queries.episodes_naming(entity, limit=_EPISODES_MAX):
            strength_by_version.setdefault(version, value)
    return strength_by_version
