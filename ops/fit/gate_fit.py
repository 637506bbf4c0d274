"""The logistic models of the gate: is there an answer, where every set counts the same, and is an item evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from samples import Sample, best_first

from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.search_index.episode_arrays import Ints

Doubles = NDArray[np.float64]

#: How little weights are shrunk.
_LOOSENESS = 30.0
_STEPS_MAX = 5_000
#: Candidates of each question, best first, that the second model is fitted to.
_ITEMS = 50


@dataclass(frozen=True, slots=True)
class Logistic:
    """A logistic model: the logit is x @ weights + constant."""

    weights: Doubles
    constant: float

    @property
    def row(self) -> list[float]:
        """Return the weights, the constant last."""
        return [*self.weights.tolist(), self.constant]

    def logits(self, x: Doubles) -> Doubles:
        """Return the logit of each row of `x`."""
        return x @ self.weights + self.constant

    def probabilities(self, x: Doubles) -> Doubles:
        """Return the probability of each row of `x`."""
        return 1 / (1 + np.exp(-self.logits(x)))


@dataclass(frozen=True, slots=True)
class GateModel:
    """The fitted gate, and what it says of each sample."""

    #: Of a short question and of a long message, as in `gate.MEASURES`.
    question: Logistic
    message: Logistic
    #: Of the answer's logit, then as in `gate.ITEM_MEASURES`.
    item: Logistic
    #: Of there being an answer, one a sample.
    logits: Doubles


def fit_gate(samples: Sequence[Sample], scored: Sequence[Vector]) -> GateModel:
    """Fit both models to the samples that are not held out.

    Parameters:
        scored: the score of each candidate, by sample.
    """
    x = np.array([one.measures for one in samples], np.float64)
    share = np.array([[one.share] for one in samples], np.float64)
    both = np.hstack([x, share, x * share])
    used = [at for at, one in enumerate(samples) if not one.held]
    groups = Counter((one.set_name, one.own) for one in samples)
    weight = [1 / groups[samples[at].set_name, samples[at].own] * len(samples) for at in used]
    answer = _fitted(both[used], [samples[at].own for at in used], weight)
    size = x.shape[1]
    question = Logistic(answer.weights[:size], answer.constant)
    message = Logistic(
        answer.weights[:size] + answer.weights[size + 1 :], answer.constant + float(answer.weights[size])
    )
    logits = answer.logits(both)
    return GateModel(question, message, _fit_items(samples, scored, logits), logits)


def item_inputs(one: Sample, scores: Vector, logit: float, places: Ints) -> Doubles:
    """Return what the model of items goes by, for the candidates at `places`, best first."""
    behind = scores[places] - scores[places[0]]
    return np.column_stack([np.full(len(places), logit), behind, one.items[places, 1:]])


def _fit_items(samples: Sequence[Sample], scored: Sequence[Vector], logits: Doubles) -> Logistic:
    rows: list[Doubles] = []
    labels: list[bool] = []
    for one, scores, logit in zip(samples, scored, logits.tolist(), strict=True):
        # Where only sessions are marked, nobody knows which item is evidence.
        if not one.held and not (one.own and one.by_session):
            places = best_first(scores)[:_ITEMS]
            rows.append(item_inputs(one, scores, logit, places))
            labels += (one.gold[places] & one.own).tolist()
    return _fitted(np.concatenate(rows), labels)


def _fitted(x: Doubles, y: Sequence[bool], weight: Sequence[float] | None = None) -> Logistic:
    # By name: its types are partial. It comes with the embedding model's library.
    linear: Any = import_module("sklearn.linear_model")
    model: Any = linear.LogisticRegression(C=_LOOSENESS, max_iter=_STEPS_MAX)
    model.fit(x, np.array(y), sample_weight=weight)
    return Logistic(np.asarray(model.coef_[0], np.float64), float(model.intercept_[0]))
