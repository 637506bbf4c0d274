"""Model fit: the weights and the gate of another embedding model than the default one.

Only what depends on the model is fitted, as a difference from the coefficients of the default model with an L2 penalty
on it: the others come from more conversations than one model needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from gate_fit import Doubles, GateModels, Logistic, item_inputs
from ranking_fit import RankingWeights, weights_in_use
from training_samples import LONG_CASE, Sample, rows_best_first, sample_weights

from recollect.api.retrieval.ranking.features import FEATURES, SEMANTIC
from recollect.api.retrieval.ranking.relevance_gate import MEASURES, load_gate
from recollect.projections.embeddings.token_codes import Vector

#: The ranking whose coefficients are the start.
_START = "hybrid"
#: Features that depend on the model, and those that it makes more or less needed.
_FEATURES = [row for row, name in enumerate(FEATURES) if name in SEMANTIC or name.startswith("bm25_")]
#: The same of the gate's measures; the constant is fitted too.
_MEASURES = [
    MEASURES.index(name)
    for name in ("dense", "late", "coverage", "coverage_together", "known", "unknown_name", "impersonal_unknown")
]
#: Factors of the L2 penalty on a difference, beside the mean loss of a sample.
_RANKING_PENALTY, _GATE_PENALTY = 1e-2, 1e-3
_STEPS_MAX = 200
#: Candidates of each question, best first, that the item model is fitted to.
_ITEMS = 50


def fit_model_weights(samples: Sequence[Sample]) -> RankingWeights:
    """Return weights whose `_FEATURES` are fitted to the samples with an answer that are not held out."""
    torch: Any = import_module("torch")
    start = weights_in_use(_START)
    used = [
        sample
        for sample in samples
        if sample.is_own and sample.size != LONG_CASE and sample.has_topic and not sample.is_held_out
    ]
    used = [sample for sample in used if sample.gold.any() and len(sample.features) > 1]
    weights = np.array(sample_weights(used))
    weights /= weights.sum()
    rows = [
        (
            torch.from_numpy(sample.features[:, _FEATURES]),
            torch.from_numpy(start.scores(sample)),
            torch.from_numpy(sample.gold),
        )
        for sample in used
    ]

    def loss(difference: Any) -> Any:
        total = _RANKING_PENALTY * (difference * difference).sum()
        for (values, base, gold), sample, weight in zip(rows, used, weights.tolist(), strict=True):
            scores = base + values @ difference
            evidence = scores[gold]
            log_any = torch.logsumexp(evidence, 0)
            wanted = log_any if sample.by_session else (log_any + evidence.mean()) / 2
            total = total + weight * (torch.logsumexp(scores, 0) - wanted)
        return total

    difference = np.zeros(len(FEATURES), np.float32)
    difference[_FEATURES] = _minimised(loss, len(_FEATURES))
    return RankingWeights(start.question + difference, start.message + difference)


def fit_model_gate(samples: Sequence[Sample], scores: Sequence[Vector]) -> GateModels:
    """Return a gate whose `_MEASURES` and item model are fitted to the samples that are not held out.

    Parameters:
        scores: the score of each candidate, by sample.
    """
    start = load_gate(_START)
    measures = np.array([sample.measures for sample in samples], np.float64)
    share = np.array([[sample.message_share] for sample in samples], np.float64)
    rows = (1 - share) * start.question + share * start.message
    base = (measures * rows[:, :-1]).sum(axis=1) + rows[:, -1]
    used = [row for row, sample in enumerate(samples) if not sample.is_held_out]
    difference = _fit_difference(
        measures[used][:, _MEASURES],
        base[used],
        [samples[row].is_own for row in used],
        sample_weights([samples[row] for row in used]),
    )
    logits = base + measures[:, _MEASURES] @ difference[:-1] + difference[-1]
    moved = np.zeros(len(MEASURES) + 1)
    moved[[*_MEASURES, -1]] = difference
    question, message = (_logistic(row + moved) for row in (start.question, start.message))
    return GateModels(question, message, _fit_items(samples, scores, logits, start.item), logits)


def _fit_items(samples: Sequence[Sample], scores: Sequence[Vector], logits: Doubles, start: Vector) -> Logistic:
    inputs: list[Doubles] = []
    labels: list[bool] = []
    for sample, sample_scores, logit in zip(samples, scores, logits.tolist(), strict=True):
        # Where only sessions are marked, it is not known which item is evidence.
        if not sample.is_held_out and not (sample.is_own and sample.by_session):
            rows = rows_best_first(sample_scores)[:_ITEMS]
            inputs.append(item_inputs(sample, sample_scores, logit, rows))
            labels += (sample.gold[rows] & sample.is_own).tolist()
    x = np.concatenate(inputs)
    return _logistic(start + _fit_difference(x, x @ start[:-1] + start[-1], labels, [1.0] * len(x)))


def _fit_difference(x: Doubles, base: Doubles, labels: Sequence[bool], weights: Sequence[float]) -> Doubles:
    """Return what is added to the coefficients of `x` and to the constant of a logistic model with logits `base`."""
    torch: Any = import_module("torch")
    values = torch.from_numpy(np.column_stack([x, np.ones(len(x))]).astype(np.float32))
    start, target, weight = (torch.tensor(np.asarray(each, np.float32)) for each in (base, labels, weights))
    entropy: Any = torch.nn.functional.binary_cross_entropy_with_logits

    def loss(difference: Any) -> Any:
        penalty = _GATE_PENALTY * (difference * difference).sum()
        return entropy(start + values @ difference, target, weight / weight.mean()) + penalty

    return _minimised(loss, values.shape[1]).astype(np.float64)


def _minimised(loss: Callable[[Any], Any], size: int) -> Vector:
    """Return the vector of `size` numbers at which a differentiable loss is least."""
    torch: Any = import_module("torch")
    numbers = torch.zeros(size, requires_grad=True)
    optimizer = torch.optim.LBFGS([numbers], max_iter=_STEPS_MAX, line_search_fn="strong_wolfe")

    def closure() -> Any:
        optimizer.zero_grad()
        value = loss(numbers)
        value.backward()
        return value

    optimizer.step(closure)
    return numbers.detach().numpy()


def _logistic(row: Sequence[float] | Doubles | Vector) -> Logistic:
    return Logistic(np.asarray(row[:-1], np.float64), float(row[-1]))
