"""Gate fit: the logistic models of the relevance gate, one for questions and messages, one for items.

The first gives the probability that memory has an answer; the second the probability that an item is evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from training_samples import Sample, rows_best_first, sample_weights

from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.search_index.episode_arrays import Ints

Doubles = NDArray[np.float64]

#: Inverse strength of the L2 penalty (`C` of scikit-learn).
_INVERSE_PENALTY = 30.0
_STEPS_MAX = 5_000
#: Candidates of each question, best first, that the item model is fitted to.
_ITEMS = 50


class Logistic(Struct, frozen=True):
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


class GateModels(Struct, frozen=True):
    """The fitted models of the gate, and the answer's logit of each sample."""

    #: Answer model of short questions; its inputs are `relevance_gate.MEASURES`.
    question: Logistic
    #: Answer model of long messages; its inputs are `relevance_gate.MEASURES`.
    message: Logistic
    #: Item model; its inputs are the answer's logit, then `relevance_gate.ITEM_MEASURES`.
    item: Logistic
    #: Logit of the answer, shape (samples,).
    logits: Doubles


def fit_gate(samples: Sequence[Sample], scores: Sequence[Vector]) -> GateModels:
    """Fit both models to the samples that are not held out.

    Parameters:
        scores: the score of each candidate, by sample.
    """
    measures = np.array([sample.measures for sample in samples], np.float64)
    share = np.array([[sample.message_share] for sample in samples], np.float64)
    # Long messages have weights of their own: those of questions and a fitted difference.
    inputs = np.hstack([measures, share, measures * share])
    used = [row for row, sample in enumerate(samples) if not sample.is_held_out]
    weights = [len(samples) * weight for weight in sample_weights([samples[row] for row in used])]
    answer = _fit_logistic(inputs[used], [samples[row].is_own for row in used], weights)
    size = measures.shape[1]
    question = Logistic(answer.weights[:size], answer.constant)
    message = Logistic(
        answer.weights[:size] + answer.weights[size + 1 :], answer.constant + float(answer.weights[size])
    )
    logits = answer.logits(inputs)
    return GateModels(question, message, _fit_items(samples, scores, logits), logits)


def item_inputs(sample: Sample, scores: Vector, logit: float, rows: Ints) -> Doubles:
    """Return the inputs of the item model for the candidates at `rows`, best first; shape (rows, inputs)."""
    score_gaps = scores[rows] - scores[rows[0]]
    return np.column_stack([np.full(len(rows), logit), score_gaps, sample.item_measures[rows, 1:]])


def _fit_items(samples: Sequence[Sample], scores: Sequence[Vector], logits: Doubles) -> Logistic:
    inputs: list[Doubles] = []
    labels: list[bool] = []
    for sample, sample_scores, logit in zip(samples, scores, logits.tolist(), strict=True):
        # Where only sessions are marked, it is not known which item is evidence.
        if not sample.is_held_out and not (sample.is_own and sample.by_session):
            rows = rows_best_first(sample_scores)[:_ITEMS]
            inputs.append(item_inputs(sample, sample_scores, logit, rows))
            labels += (sample.gold[rows] & sample.is_own).tolist()
    return _fit_logistic(np.concatenate(inputs), labels)


def _fit_logistic(x: Doubles, y: Sequence[bool], weight: Sequence[float] | None = None) -> Logistic:
    # Imported by name, because its types are partial. It comes with sentence-transformers.
    linear: Any = import_module("sklearn.linear_model")
    model: Any = linear.LogisticRegression(C=_INVERSE_PENALTY, max_iter=_STEPS_MAX)
    model.fit(x, np.array(y), sample_weight=weight)
    return Logistic(np.asarray(model.coef_[0], np.float64), float(model.intercept_[0]))
