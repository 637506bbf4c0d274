"""Entity graph: spreads activation from the entities of a query over relationships to the episodes that name them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from recollect.projections.queries.entity_queries import EntityQueries
from recollect.projections.search_index.episode_arrays import Ints

#: Steps along relationships from the entities of a query.
_STEPS_MAX = 2
#: Relationships followed from one entity, strongest first.
_EDGES_MAX = 10
#: Confidence under which a relationship is not followed.
_CONFIDENCE_MIN = 0.3
#: Strength of entities that the same episodes name as an entity of the query; entities of the query have 1.
_CO_MENTION_STRENGTH = 0.35
#: Entities reached in all.
_ENTITIES_MAX = 40
#: Episodes read for each entity, newest first. An entity that more episodes name is not a sign of relevance.
_EPISODES_MAX = 500
#: Entities that the same episodes name as an entity of the query, without a relationship.
_CO_MENTIONS_MAX = 5


def spread_activation(queries: EntityQueries, entities: Sequence[int]) -> dict[int, float]:
    """Return the activation of each reached entity, 0 to 1; `entities` have 1.

    A step multiplies the activation by the relationship's weight and confidence, and the second step also by 2/3. Each
    entity is reached once, so cycles end. A relationship of weight 0, such as `contradicts`, is not followed.
    """
    strength = dict.fromkeys(entities, 1.0)
    frontier = list(entities)
    for step in range(_STEPS_MAX):
        next_strength: dict[int, float] = {}
        for entity in frontier:
            for other, weight in queries.strongest_edges(entity, confidence_min=_CONFIDENCE_MIN, limit=_EDGES_MAX):
                next_value = strength[entity] * min(weight, 1.0) / (1 + 0.5 * step)
                if other not in strength:
                    next_strength[other] = max(next_value, next_strength.get(other, 0.0))
        frontier = sorted(next_strength, key=lambda entity: (-next_strength[entity], entity))[
            : _ENTITIES_MAX - len(strength)
        ]
        strength |= {entity: next_strength[entity] for entity in frontier}
    for entity, versions in zip(entities, queries.episodes_naming(entities, limit=_EPISODES_MAX), strict=True):
        for other in queries.co_mentioned(entity, versions, limit=_CO_MENTIONS_MAX):
            strength.setdefault(other, _CO_MENTION_STRENGTH)
    return strength


def episodes_naming(queries: EntityQueries, strength: dict[int, float]) -> tuple[Ints, NDArray[np.float64]]:
    """Return the versions of the episodes that name the entities, ascending, and the highest activation of each."""
    strongest_first = sorted(strength.items(), key=lambda pair: -pair[1])
    listed = queries.episodes_naming([entity for entity, _ in strongest_first], limit=_EPISODES_MAX)
    values = np.repeat([value for _, value in strongest_first], [len(versions) for versions in listed])
    versions, first = np.unique(np.concatenate([np.empty(0, np.int64), *listed]), return_index=True)
    return versions, values[first]
