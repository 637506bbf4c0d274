"""The weights of features: those that make the evidence most likely to be drawn first (a listwise fit).

Candidates are drawn with softmax probabilities of their scores. Weights of long messages are those of questions and a
difference, which is fitted along for the features in `_MIXED`. Every set counts the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from samples import Sample

from recollect.api.retrieval.ranking.features import FEATURES, SEMANTIC
from recollect.projections.embeddings.token_codes import Vector

#: Features that no collection says anything about: set by hand.
_BY_HAND = {"importance": 0.3, "phrase": 1.0, "rating": 2.0}
#: What mixes for long messages; the other features keep the weight of a question.
_MIXED = (
    "bm25_turn",
    "bm25_window",
    "bm25_session",
    "dense_turn",
    "dense_window",
    "dense_session",
    "dense_session_mean",
    "late_session",
    "late",
    "age",
    "from_user",
    "is_question",
    "length",
)
#: What a long message's own details say nothing about.
_QUESTIONS_ONLY = ("said_in_span", "said_near_span", "tells_of_span")
_SHRINKING = 1e-3
_STEPS_MAX = 150
#: The score of what is not there: its probability is 0.
_NEVER = -1e9


@dataclass(frozen=True, slots=True)
class Order:
    """What each of `FEATURES` counts: of a short question, and of a long message."""

    question: Vector
    message: Vector

    def scores(self, sample: Sample) -> Vector:
        """Return the score of each candidate."""
        weights = (1 - sample.share) * self.question + sample.share * self.message
        return sample.matrix @ weights.astype(np.float32)


def fit_order(samples: Sequence[Sample], *, semantic: bool) -> Order:
    """Fit the weights to own questions that are not held out, with the features of vectors or without."""
    columns = [at for at, name in enumerate(FEATURES) if semantic or name not in SEMANTIC]
    mixed = [at for at in columns if FEATURES[at] in _MIXED]
    usable = [one for one in samples if one.own and not one.held and one.gold.any() and len(one.matrix) > 1]
    solved = _solved(usable, columns, mixed)
    question = np.zeros(len(FEATURES), np.float32)
    question[columns] = solved[: len(columns)]
    message = question.copy()
    message[mixed] += solved[len(columns) :]
    for name, value in _BY_HAND.items():
        question[FEATURES.index(name)] = message[FEATURES.index(name)] = value
    for name in _QUESTIONS_ONLY:
        message[FEATURES.index(name)] = 0
    return Order(question, message)


def _solved(samples: Sequence[Sample], columns: Sequence[int], mixed: Sequence[int]) -> Vector:
    """Return the weights of `columns`, then what those of `mixed` differ by for long messages."""
    # By name: its types are of no use to a type checker.
    torch: Any = import_module("torch")
    longest, width = max(len(one.matrix) for one in samples), len(columns) + len(mixed)
    values = torch.zeros(len(samples), longest, width)
    gold = torch.zeros(len(samples), longest, dtype=torch.bool)
    there = torch.zeros(len(samples), longest, dtype=torch.bool)
    for at, one in enumerate(samples):
        size = len(one.matrix)
        values[at, :size] = torch.from_numpy(_inputs(one, columns, mixed))
        gold[at, :size] = torch.from_numpy(one.gold)
        there[at, :size] = True
    count = Counter(one.set_name for one in samples)
    weight = torch.tensor([1 / count[one.set_name] for one in samples])
    by_session = torch.tensor([one.by_session for one in samples])
    found = torch.full((width,), 0.1, requires_grad=True)
    optimizer = torch.optim.LBFGS([found], max_iter=_STEPS_MAX, line_search_fn="strong_wolfe")

    def closure() -> Any:
        optimizer.zero_grad()
        scores = (values @ found).masked_fill(~there, _NEVER)
        whole = torch.logsumexp(scores, 1)
        any_of = torch.logsumexp(scores.masked_fill(~gold, _NEVER), 1)
        each_of = (scores * gold).sum(1) / gold.sum(1)
        # Any turn of a session will do; of marked turns each one is wanted.
        loss = torch.where(by_session, whole - any_of, whole - (any_of + each_of) / 2)
        total = (loss * weight).sum() + _SHRINKING * (found * found).sum()
        total.backward()
        return total

    optimizer.step(closure)
    return found.detach().numpy()


def _inputs(one: Sample, columns: Sequence[int], mixed: Sequence[int]) -> Vector:
    """Return the features as they are fitted: the columns, then the mixed ones as far as it is a long message."""
    values = one.matrix.copy()
    for name in _QUESTIONS_ONLY:
        values[:, FEATURES.index(name)] *= 1 - one.share
    for name in _BY_HAND:
        values[:, FEATURES.index(name)] = 0
    return np.hstack([values[:, columns], values[:, mixed] * one.share])
