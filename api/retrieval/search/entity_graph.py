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
_TOGETHER = 0.35
_TOGETHER_MAX = 5


def spread_activation(queries: EntityQueries, entities: Sequence[int]) -> dict[int, float]:
    """Return how strongly each entity is related to `entities`, which are at 1: 0 to 1, each once, circles or not.

    A step over a relationship counts its weight and confidence, and the second step half; one of weight 0, such as
    `contradicts`, is never taken.
    """
    strength = dict.fromkeys(entities, 1.0)
    edge = list(entities)
    for step in range(_STEPS_MAX):
        following: dict[int, float] = {}
        for entity in edge:
            edges = queries.strongest_edges(entity, confidence_min=_CONFIDENCE_MIN, limit=_EDGES_MAX)
            for other, weight in edges:
                reached = strength[entity] * min(weight, 1.0) / (1 + 0.5 * step)
                if other not in strength:
                    following[other] = max(reached, following.get(other, 0.0))
        edge = sorted(following, key=lambda entity: (-following[entity], entity))[: _ENTITIES_MAX - len(strength)]
        strength |= {entity: following[entity] for entity in edge}
    for entity in entities:
        for other in queries.co_mentioned(entity, episodes_max=_EPISODES_MAX, limit=_TOGETHER_MAX):
            strength.setdefault(other, _TOGETHER)
    return strength


def episodes_naming(queries: EntityQueries, strength: dict[int, float]) -> dict[int, float]:
    """Return the episodes that name entities, each with the strength of the strongest one."""
    found: dict[int, float] = {}
    for entity, reached in sorted(strength.items(), key=lambda pair: -pair[1]):
        for version in queries.episodes_naming(entity, limit=_EPISODES_MAX):
            found.setdefault(version, reached)
    return found
