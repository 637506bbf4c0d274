"""Relevance gate: the probabilities that memory has an answer to a query, and that an item belongs to it.

Both are logistic regressions on a few measures of the best candidates (`gate.toml`), fitted on benchmark questions
asked to their own conversation and to others, which have no answer. The scores are calibrated: of the items with 0.3,
about three in ten are marked as evidence in the collections.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from recollect.api.retrieval.ranking.ranked_episodes import RankedEpisodes
from recollect.api.retrieval.ranking.weighted_sum import message_share
from recollect.api.retrieval.understanding.query import Query
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.search_index.episode_arrays import Ints

#: Probability of an answer from which a retrieval returns items. Chosen so that answerable questions lose at most half
#: a point of recall (see docs/benchmarks.md).
ANSWER_MIN = 0.09
#: The same without vectors: lower, because keywords alone separate less well.
KEYWORD_ANSWER_MIN = 0.06
#: Probability of relevance from which an item is returned. Chosen as `ANSWER_MIN`.
ITEM_MIN = 0.0003
#: The same in a passive retrieval: higher, because an unwanted item costs more than a missing one.
PASSIVE_ITEM_MIN = 0.01
#: The best candidates that the measures of an answer are taken from.
_BEST_CANDIDATES = 10
#: The coverage of a candidate that matches by substring, which has no whole words of the query.
_SUBSTRING_COVERAGE = 0.7
#: The size from which on a memory counts as large; the gate is fitted to memories up to about this size.
_MEMORY_EPISODES_MAX = 1_000
#: Measures of the best candidates, of the query and of the memory. The names are keys of `gate.toml` and of traces.
MEASURES = (
    "dense",
    "late",
    "coverage",
    "coverage_together",
    "known",
    "words",
    "asked_speaker",
    "named_entity",
    "graph",
    "unknown_name",
    "impersonal_unknown_name",
    "impersonal_unknown",
    "personal",
    "in_span",
    "memory_size",
)
#: Measures of an item, which its probability depends on in addition to the logit of an answer.
ITEM_MEASURES = ("behind", "coverage", "dense", "window", "late", "graph")


class RelevanceGate(Struct, frozen=True):
    """The coefficients of the logistic regressions, for searches with vectors or without."""

    #: For an answer to a short question, and to a long message: in the order of `MEASURES`, the constant last.
    question: Vector
    message: Vector
    #: For an item: the answer's logit, `ITEM_MEASURES`, the constant.
    item: Vector

    def answer(self, measures: Vector, words: int) -> float:
        """Return the logit of the probability that memory has an answer to a query of `words` words."""
        share = message_share(words)
        weights = (1 - share) * self.question + share * self.message
        return float(measures @ weights[:-1] + weights[-1])

    def items(self, answer: float, measured: Vector) -> Vector:
        """Return the probability of each item, shape (items,).

        Parameters:
            answer: the logit of an answer.
            measured: the measures of the items, shape (items, len(ITEM_MEASURES)).
        """
        return probability(self.item[0] * answer + measured @ self.item[1:-1] + self.item[-1])


@cache
def load_gate(name: str) -> RelevanceGate:
    """Return the coefficients of the tables `name` of `gate.toml`."""
    content = tomllib.loads(files(__package__).joinpath("gate.toml").read_text(encoding="utf-8"))
    part: dict[str, Any] = content[name]
    names = (*MEASURES, "constant")
    return RelevanceGate(
        _vector(part["question"], names),
        _vector(part["message"], names),
        _vector(part["item"], ("answer", *ITEM_MEASURES, "constant")),
    )


def answer_measures(ranked: RankedEpisodes, query: Query) -> Vector:
    """Return the measures of the best candidates, of the query and of the memory, shape (len(MEASURES),)."""
    best = ranked.order[:_BEST_CANDIDATES]
    rows = ranked.candidates.rows[best]
    signals = ranked.signals
    keywords, semantics, late = signals.keywords, signals.semantics, ranked.late
    # A substring match has no whole word of the query, so keyword search gives it no coverage.
    substring = ranked.candidates.lists.get("substring")
    has_substring_match = substring is not None and np.isin(rows, substring).any()
    personal = float(query.intent.personal or bool(query.participants))
    unknown_name = float(not keywords.unmatched.isdisjoint(query.names))
    measures: dict[str, float] = {
        "coverage": max(_highest(keywords.coverage[rows]), _SUBSTRING_COVERAGE if has_substring_match else 0.0),
        "coverage_together": float(min(1.0, keywords.coverage[rows].sum())),
        "known": keywords.matched_share,
        "words": float(np.log1p(keywords.word_count)),
        "asked_speaker": float(bool(query.participants)),
        "named_entity": float(bool(query.entities)),
        "graph": _highest(_graph_strength(ranked, rows)),
        "unknown_name": unknown_name,
        # A question about the world has words that no message has: "how many moons does Saturn have?".
        "impersonal_unknown_name": unknown_name * (1 - personal),
        "impersonal_unknown": (1 - keywords.matched_share) * (1 - personal),
        "personal": personal,
        "in_span": float(matches_span(ranked)),
        # The best of many scores is higher by chance.
        "memory_size": float(np.log(min(max(1, np.count_nonzero(signals.allowed)), _MEMORY_EPISODES_MAX))),
    }
    if semantics is not None and late is not None:
        measures |= {
            "dense": _highest(semantics.parts["turn"][rows]),
            "late": _highest(late[best]),
        }
    return np.array([measures.get(name, 0.0) for name in MEASURES], np.float32)


def matches_span(ranked: RankedEpisodes) -> bool:
    """Return whether a candidate was said in a time range of the query, or names a date in one."""
    return bool({"time", "date"} & ranked.candidates.lists.keys())


def item_measures(ranked: RankedEpisodes) -> Vector:
    """Return the measures of each candidate, best first, shape (candidates, len(ITEM_MEASURES))."""
    order = ranked.order
    rows = ranked.candidates.rows[order]
    scores = ranked.scores[order]
    semantics, late = ranked.signals.semantics, ranked.late
    columns: dict[str, Vector] = {
        "behind": scores - (scores[0] if len(scores) else 0),
        "coverage": ranked.signals.keywords.coverage[rows],
        "graph": _graph_strength(ranked, rows),
    }
    if semantics is not None and late is not None:
        columns |= {"dense": semantics.parts["turn"][rows], "window": semantics.parts["window"][rows]}
        columns["late"] = late[order]
    measures = np.zeros((len(rows), len(ITEM_MEASURES)), np.float32)
    for place, name in enumerate(ITEM_MEASURES):
        if name in columns:
            measures[:, place] = columns[name]
    return measures if semantics is None else np.nan_to_num(measures)


def _graph_strength(ranked: RankedEpisodes, rows: Ints) -> Vector:
    """Return the activation of the entity graph at `rows`; 0 when the query names no entity."""
    graph = ranked.signals.graph
    return np.zeros(len(rows), np.float32) if graph is None else graph[rows].astype(np.float32)


def probability(logits: NDArray[np.floating[Any]]) -> Vector:
    """Return the logistic function of `logits`."""
    return (1 / (1 + np.exp(-np.clip(logits, -30, 30)))).astype(np.float32)


def _highest(values: Vector) -> float:
    """Return the highest number of `values`; 0 when all are NaN."""
    numbers = values[~np.isnan(values)]
    return float(numbers.max()) if len(numbers) else 0.0


def _vector(values: Mapping[str, float], names: tuple[str, ...]) -> Vector:
    """Return the coefficients `names`, 0 for missing ones."""
    return np.array([values.get(name, 0.0) for name in names], np.float32)
