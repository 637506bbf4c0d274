"""Ranking fit: the weights of features that make the evidence most likely to rank first (a listwise fit).

The probability of ranking first is the softmax of the scores. Weights of long messages are those of questions plus a
difference, which is fitted too for the features in `_MIXED`. Every set and size of memory has its weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from msgspec import Struct
from training_samples import LONG_CASE, Sample, sample_weights

from recollect.api.retrieval.ranking.features import FEATURES, SEMANTIC
from recollect.api.retrieval.ranking.weighted_sum import load_weights
from recollect.projections.embeddings.token_codes import Vector

#: Features that no data set has labels for; their weights are set by hand. Of what the assistant said, the collections
#: mark the question that led to it.
_BY_HAND = {
    "importance": 0.3,
    "phrase": 1.0,
    "rating": 2.0,
    "from_assistant_recalled": 2.0,
    "change_present": 0.4,
    "answer_type": 1.0,
    "counts_asked": 1.2,
    "states_answer": 2.5,
    "outdated_present": -2.0,
}
#: Features with another weight for long messages; the others keep the weight of a question.
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
#: Features with weight 0 for long messages, whose time spans do not limit the answer.
_QUESTIONS_ONLY = ("said_in_span", "said_near_span", "tells_of_span")
#: Factor of the L2 penalty.
_PENALTY = 1e-3
_STEPS_MAX = 150
#: The score of padding and of candidates without evidence in a masked sum: its probability is 0.
_MASKED_SCORE = -1e9


class RankingWeights(Struct, frozen=True):
    """The weight of each of `FEATURES`."""

    #: For short questions, shape (features,).
    question: Vector
    #: For long messages, shape (features,).
    message: Vector

    def scores(self, sample: Sample) -> Vector:
        """Return the score of each candidate."""
        share = sample.message_share
        weights = (1 - share) * self.question + share * self.message
        return sample.features @ weights.astype(np.float32)


def weights_in_use(name: str) -> RankingWeights:
    """Return the weights of the tables `name` of `weights.toml`."""
    weights = load_weights(name)
    return RankingWeights(weights.question, weights.message)


def fit_weights(samples: Sequence[Sample], *, semantic: bool) -> RankingWeights:
    """Fit the weights to the samples with an answer that are not held out.

    Parameters:
        semantic: fit the features of vectors too.
    """
    columns = [column for column, name in enumerate(FEATURES) if semantic or name not in SEMANTIC]
    mixed = [column for column in columns if FEATURES[column] in _MIXED]
    usable = [
        sample
        for sample in samples
        if sample.is_own
        # They teach the gate; with them in the ranking, long conversations lose a point.
        and sample.size != LONG_CASE
        and sample.has_topic
        and not sample.is_held_out
        and sample.gold.any()
        and len(sample.features) > 1
    ]
    fitted = _minimise(usable, columns, mixed)
    question = np.zeros(len(FEATURES), np.float32)
    question[columns] = fitted[: len(columns)]
    message = question.copy()
    message[mixed] += fitted[len(columns) :]
    for name, value in _BY_HAND.items():
        question[FEATURES.index(name)] = message[FEATURES.index(name)] = value
    for name in _QUESTIONS_ONLY:
        message[FEATURES.index(name)] = 0
    return RankingWeights(question, message)


def _minimise(samples: Sequence[Sample], columns: Sequence[int], mixed: Sequence[int]) -> Vector:
    """Return the weights of `columns`, then the differences of those of `mixed` for long messages."""
    # Imported by name, because its types are partial.
    torch: Any = import_module("torch")
    longest, width = max(len(sample.features) for sample in samples), len(columns) + len(mixed)
    values = torch.zeros(len(samples), longest, width)
    gold = torch.zeros(len(samples), longest, dtype=torch.bool)
    is_candidate = torch.zeros(len(samples), longest, dtype=torch.bool)
    for row, sample in enumerate(samples):
        size = len(sample.features)
        values[row, :size] = torch.from_numpy(_inputs(sample, columns, mixed))
        gold[row, :size] = torch.from_numpy(sample.gold)
        is_candidate[row, :size] = True
    weight = torch.tensor(sample_weights(samples))
    by_session = torch.tensor([sample.by_session for sample in samples])
    weights = torch.full((width,), 0.1, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=_STEPS_MAX, line_search_fn="strong_wolfe")

    def closure() -> Any:
        optimizer.zero_grad()
        scores = (values @ weights).masked_fill(~is_candidate, _MASKED_SCORE)
        log_total = torch.logsumexp(scores, 1)
        log_any = torch.logsumexp(scores.masked_fill(~gold, _MASKED_SCORE), 1)
        log_each = (scores * gold).sum(1) / gold.sum(1)
        # Where only sessions are marked, any turn of them is enough; of marked turns every one is wanted.
        loss = torch.where(by_session, log_total - log_any, log_total - (log_any + log_each) / 2)
        total = (loss * weight).sum() + _PENALTY * (weights * weights).sum()
        total.backward()
        return total

    optimizer.step(closure)
    return weights.detach().numpy()


def _inputs(sample: Sample, columns: Sequence[int], mixed: Sequence[int]) -> Vector:
    """Return the inputs of the fit: the features of `columns`, then those of `mixed` times the message share."""
    values = sample.features.copy()
    for name in _QUESTIONS_ONLY:
        values[:, FEATURES.index(name)] *= 1 - sample.message_share
    for name in _BY_HAND:
        values[:, FEATURES.index(name)] = 0
    return np.hstack([values[:, columns], values[:, mixed] * sample.message_share])
