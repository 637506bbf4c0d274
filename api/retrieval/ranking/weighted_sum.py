"""The order of candidates: a weighted sum of their features, by one versioned configuration; or reciprocal ranks."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from recollect.api.retrieval.contract.request import Ranking
from recollect.api.retrieval.ranking.candidates import Candidates
from recollect.api.retrieval.ranking.features import FEATURES
from recollect.projections.embeddings.token_codes import Vector

#: Damps the lead of first places (Cormack, Clarke and Büttcher 2009; `000` and `001` use the same).
RECIPROCAL_RANK_K = 60
#: The lists that each other ranking goes by; None: all.
LISTS: Mapping[Ranking, tuple[str, ...] | None] = {
    "rrf": None,
    "seeds": ("keyword", "semantic"),
    "keyword": ("keyword",),
    "semantic": ("semantic",),
}
#: Lists that are there to be looked at, and say nothing about relevance.
_UNRANKED = frozenset(("recent",))


#: Words at which a query counts as half a message, and how wide the way from a question to a message is. Questions of
#: the collections have 6 to 29 words, messages 19 to 88.
_MESSAGE_WORDS = 25.0
_MESSAGE_WIDTH_WORDS = 5.0


@dataclass(frozen=True, slots=True)
class RankingWeights:
    """What each feature counts, in the order of `FEATURES`: of a short question, and of a long message."""

    version: str
    question: Vector
    message: Vector

    def blended(self, words: int) -> Vector:
        """Return the weights for a query of so many words."""
        share = message_share(words)
        return ((1 - share) * self.question + share * self.message).astype(np.float32)


@cache
def load_weights(*, semantic: bool) -> RankingWeights:
    """Return the weights in use: those with vectors, or those of keywords alone."""
    content = tomllib.loads(files(__package__).joinpath("weights.toml").read_text(encoding="utf-8"))
    part: dict[str, Any] = content["hybrid" if semantic else "keyword"]
    return RankingWeights(
        version=f"{content['version']}-{'hybrid' if semantic else 'keyword'}",
        question=feature_vector(part["question"]),
        message=feature_vector(part["message"]),
    )


def message_share(words: int) -> float:
    """Return how much a query of so many words is a long message, and no short question: 0 to 1."""
    return float(1 / (1 + np.exp(-(min(words, 1_000) - _MESSAGE_WORDS) / _MESSAGE_WIDTH_WORDS)))


def feature_vector(weights: Mapping[str, float]) -> Vector:
    """Return the weights of all features, 0 for those that `named` leaves out; raise `ValueError` for unknown ones."""
    unknown = set(weights) - set(FEATURES)
    if unknown:
        raise ValueError(f"weights.toml has unknown features: {', '.join(sorted(unknown))}")
    return np.array([weights.get(name, 0.0) for name in FEATURES], np.float32)


def weighted_sum(matrix: Vector, words: int, *, semantic: bool) -> Vector:
    """Return the score of each candidate."""
    return matrix @ load_weights(semantic=semantic).blended(words)


def reciprocal_rank(candidates: Candidates, names: tuple[str, ...] | None) -> Vector:
    """Return Σ 1 / (K + rank) over the lists `names`, or over all, of each candidate."""
    scores = np.zeros(len(candidates.rows), np.float32)
    for name, rows in candidates.lists.items():
        if name not in _UNRANKED and (names is None or name in names):
            scores[np.searchsorted(candidates.rows, rows)] += 1 / (
                RECIPROCAL_RANK_K + 1 + np.arange(len(rows), dtype=np.float32)
            )
    return scores
