"""Knowledge relevance: the probability that a knowledge item belongs to the answer to a query.

Two logistic regressions, with vectors and without. `ops/fit/knowledge_fit.py` fits them to knowledge items and
questions written for it, since the benchmark conversations mark messages as evidence, not knowledge.
"""

from __future__ import annotations

import numpy as np

from recollect.api.retrieval.ranking.relevance_gate import probability
from recollect.projections.embeddings.token_codes import Vector

#: Measures of an item for a query, as `knowledge_search` describes them: by vector `near`, `distinct` and `closest`; by
#: word `coverage` and `title`; by the persons and things in the query `own`, `named` and `stranger`; by kind `sought`.
MEASURES = ("near", "distinct", "closest", "coverage", "title", "own", "named", "sought", "stranger")
#: The coefficients of `MEASURES`, the constant last.
_HYBRID = np.array([0.03, 1.3, 0.13, 0.43, 0.85, 1.35, 0.0, 2.06, -1.44, -5.4], np.float32)
_KEYWORD = np.array([0.0, 0.0, 0.0, 4.07, 2.29, 1.02, 1.37, 1.7, -1.74, -3.69], np.float32)


def relevance(measures: Vector, *, semantic: bool) -> Vector:
    """Return the probability of each item, shape (items,).

    With vectors it is the higher one of both regressions: a code or a number that matches by word means nothing to an
    embedding model.

    Parameters:
        measures: shape (items, len(MEASURES)).
        semantic: whether the measures of the vectors are there.
    """
    logits = measures @ _KEYWORD[:-1] + _KEYWORD[-1]
    if semantic:
        logits = np.maximum(logits, measures @ _HYBRID[:-1] + _HYBRID[-1])
    return probability(logits)
