"""Weighted sum: scores candidates by weighted features (`weights.toml`), or by reciprocal ranks of their lists."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from msgspec import Struct

from recollect.api.retrieval.contract.request import Ranking
from recollect.api.retrieval.ranking.candidates import Candidates
from recollect.api.retrieval.ranking.features import FEATURES
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.search_index.episode_arrays import SmallInts

#: The lists whose ranks each unweighted ranking adds up; None: all lists.
LISTS: Mapping[Ranking, tuple[str, ...] | None] = {
    "rrf": None,
    "seeds": ("keyword", "semantic"),
    "keyword": ("keyword",),
    "semantic": ("semantic",),
}
#: K of reciprocal ranks, in the rankings `rrf`, `seeds`, `keyword` and `semantic`: damps the lead of first places
#: (Cormack, Clarke and Büttcher 2009: 60).
_RECIPROCAL_RANK_K = 60
#: Lists that only add candidates; their order is not a sign of relevance.
_UNRANKED = frozenset(("recent",))

#: The weights for a query without a topic, such as "what do you know about me?": what the user said that is important.
#: Set by hand; the collections have no such questions.
_TOPICLESS_WEIGHTS: Mapping[str, float] = {
    "importance": 3.0,
    "from_user": 1.5,
    "asked_speaker": 1.5,
    "is_question": -1.0,
    "length": 1.0,
    "tells_of_span": 1.0,
    "graph": 1.0,
    "rating": 2.0,
}
#: The score that every episode of the same session before it costs an episode, in an overview.
_SAME_SESSION_COST = 0.3
#: Middle and width, in words, of the sigmoid that blends the weights of questions and of messages. Questions of the
#: benchmark collections have 6 to 29 words, messages 19 to 88.
_MESSAGE_WORDS = 25.0
_MESSAGE_WIDTH_WORDS = 5.0


class RankingWeights(Struct, frozen=True):
    """The weight of each feature, in the order of `FEATURES`: for a short question, and for a long message."""

    version: str
    question: Vector
    message: Vector
    #: The usual standard deviation of each numeric feature among the candidates of a query.
    spreads: Mapping[str, float]

    def blended(self, words: int) -> Vector:
        """Return the weights for a query of `words` words, shape (len(FEATURES),)."""
        share = message_share(words)
        return ((1 - share) * self.question + share * self.message).astype(np.float32)


@cache
def load_weights(name: str) -> RankingWeights:
    """Return the weights of the tables `name` of `weights.toml`."""
    content = tomllib.loads(files(__package__).joinpath("weights.toml").read_text(encoding="utf-8"))
    part: dict[str, Any] = content[name]
    return RankingWeights(
        version=f"{content['version']}-{name}",
        question=feature_vector(part["question"]),
        message=feature_vector(part["message"]),
        spreads=part["spread"],
    )


def message_share(words: int) -> float:
    """Return the share of the message weights for a query of `words` words, 0 to 1."""
    return float(1 / (1 + np.exp(-(min(words, 1_000) - _MESSAGE_WORDS) / _MESSAGE_WIDTH_WORDS)))


def feature_vector(weights: Mapping[str, float]) -> Vector:
    """Return the weights in the order of `FEATURES`, 0 for missing ones; raise `ValueError` for unknown features."""
    unknown = set(weights) - set(FEATURES)
    if unknown:
        raise ValueError(f"weights.toml has unknown features: {', '.join(sorted(unknown))}")
    return np.array([weights.get(name, 0.0) for name in FEATURES], np.float32)


def weighted_sum(matrix: Vector, words: int, weights: str) -> Vector:
    """Return the score of each candidate, shape (candidates,).

    Parameters:
        matrix: the features, shape (candidates, len(FEATURES)).
        words: the number of words of the query.
        weights: the tables of `weights.toml`.
    """
    return matrix @ load_weights(weights).blended(words)


def topicless_sum(matrix: Vector) -> Vector:
    """Return the score of each candidate for a query without a topic, shape (candidates,)."""
    return matrix @ feature_vector(_TOPICLESS_WEIGHTS)


def diversified(scores: Vector, sessions: SmallInts) -> Vector:
    """Return the scores lowered for every better candidate of the same session, for overviews over many sessions.

    Parameters:
        sessions: the session of each candidate, shape (candidates,).
    """
    lowered = scores.copy()
    seen: Counter[int] = Counter()
    for index in np.argsort(-scores, kind="stable").tolist():
        session = int(sessions[index])
        lowered[index] -= _SAME_SESSION_COST * seen[session]
        seen[session] += 1
    return lowered


def reciprocal_rank(candidates: Candidates, names: tuple[str, ...] | None) -> Vector:
    """Return the sum of 1 / (K + rank) over the lists `names`, or over all, shape (candidates,)."""
    scores = np.zeros(len(candidates.rows), np.float32)
    for name, rows in candidates.lists.items():
        if name not in _UNRANKED and (names is None or name in names):
            ranks = 1 + np.arange(len(rows), dtype=np.float32)
            scores[np.searchsorted(candidates.rows, rows)] += 1 / (_RECIPROCAL_RANK_K + ranks)
    return scores
