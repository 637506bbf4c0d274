"""Fit report: recall of the fitted ranking and effects of the gate, by data set and size of memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from gate_fit import GateModels, item_inputs
from training_samples import Sample, rows_best_first

from recollect.projections.embeddings.token_codes import Vector

_TURN_CUTS = (1, 5, 10, 20)
_SESSION_CUTS = (5, 10)
#: Items in an answer, about the default.
_SHOWN = 10
#: Thresholds to choose from: logits from which memory answers.
_ANSWER_LOGITS_MIN = (-3.0, -2.5, -2.0, -1.5, -1.0)
#: Thresholds to choose from: probabilities from which an item is shown.
_ITEM_PROBABILITIES_MIN = (0.0003, 0.001, 0.003, 0.01, 0.02)


def report_ranking(samples: Sequence[Sample], rankings: Mapping[str, Sequence[Vector]]) -> None:
    """Print recall and mean reciprocal rank of each set and part, a line for each ranking.

    Parameters:
        rankings: the score of each candidate, by sample; by the name of the ranking.
    """
    for is_held_out in (False, True):
        chosen = [row for row, sample in enumerate(samples) if sample.is_own and sample.is_held_out == is_held_out]
        for group in sorted({_group(samples[row]) for row in chosen}):
            rows = [row for row in chosen if _group(samples[row]) == group]
            for name, scores in rankings.items():
                means = _means([(samples[row], scores[row]) for row in rows])
                print(f"# {_part(is_held_out)}: {group}, {name}  {means}")


def _means(scored: Sequence[tuple[Sample, Vector]]) -> str:
    """Return the mean of each figure of samples of one group, in percent."""
    figures: dict[str, list[float]] = defaultdict(list)
    for sample, scores in scored:
        for key, value in _figures(sample, scores).items():
            figures[key].append(value)
    return "  ".join(f"{key} {100 * np.mean(values):.1f}" for key, values in figures.items())


def report_gate(samples: Sequence[Sample], scores: Sequence[Vector], models: GateModels) -> None:
    """Print the effect of each threshold of the answer model, then of the item model.

    Parameters:
        scores: the score of each candidate, by sample.
    """
    for is_held_out in (False, True):
        for name in sorted({_group(sample) for sample in samples if sample.is_held_out == is_held_out}):
            chosen = [
                row
                for row, sample in enumerate(samples)
                if sample.is_held_out == is_held_out and _group(sample) == name
            ]
            effects = "".join(_answer_effect(chosen, samples, scores, models, least) for least in _ANSWER_LOGITS_MIN)
            print(f"# gate, {_part(is_held_out)}, {name}:{effects}")
    for probability_min in _ITEM_PROBABILITIES_MIN:
        line = f"# items under {probability_min} left out:"
        for name in sorted({_group(sample) for sample in samples}):
            line += f"  {name} {_item_effect(name, samples, scores, models, probability_min)}"
        print(line)


def _group(sample: Sample) -> str:
    """Return the set and the size of memory: whole conversations, crops of some messages, cases."""
    return f"{sample.set_name} {sample.size}"


def _part(is_held_out: bool) -> str:
    return "held out" if is_held_out else "fitted to"


def _figures(sample: Sample, scores: Vector) -> dict[str, float]:
    """Return recall of messages and sessions, and the reciprocal rank of the first message with evidence."""
    order = rows_best_first(scores)
    row: dict[str, float] = {}
    if sample.gold_messages:
        row |= {f"turn@{k}": sample.recall(order[:k]) for k in _TURN_CUTS}
        ranks = np.flatnonzero(sample.gold[order])
        row["MRR"] = 1 / (int(ranks[0]) + 1) if len(ranks) else 0.0
    if sample.gold_sessions:
        sessions = sample.distinct_sessions(order)
        row |= {f"session@{k}": sample.session_recall(sessions[:k]) for k in _SESSION_CUTS}
    return row


def _recall(sample: Sample, scores: Vector) -> float:
    """Return recall at 10: of messages, or of sessions where only those are marked."""
    order = rows_best_first(scores)
    if sample.gold_messages:
        return sample.recall(order[:_SHOWN])
    return sample.session_recall(sample.distinct_sessions(order)[:_SHOWN])


def _answer_effect(
    rows: Sequence[int], samples: Sequence[Sample], scores: Sequence[Vector], models: GateModels, logit_min: float
) -> str:
    """Return the foreign questions without an answer and the recall lost when the answer's logit is at least a value.

    Parameters:
        rows: the samples to count.
    """
    is_silent: list[bool] = (models.logits < logit_min).tolist()
    foreign = [row for row in rows if not samples[row].is_own]
    silent = 100 * _mean([is_silent[row] for row in foreign if not samples[row].is_general])
    general = 100 * _mean([is_silent[row] for row in foreign if samples[row].is_general])
    lost = 100 * _mean([_recall(samples[row], scores[row]) * is_silent[row] for row in rows if samples[row].is_own])
    return f"  {logit_min}: nothing for {general:.0f} % general, {silent:.0f} % foreign, {lost:.1f} lost"


def _item_effect(
    group: str, samples: Sequence[Sample], scores: Sequence[Vector], models: GateModels, probability_min: float
) -> str:
    """Return the recall lost and the items shown when items under `probability_min` are left out."""
    lost: list[float] = []
    shown: list[int] = []
    for sample, sample_scores, logit in zip(samples, scores, models.logits.tolist(), strict=True):
        if _group(sample) != group or not sample.is_own:
            continue
        best = rows_best_first(sample_scores)[:_SHOWN]
        likely = best[models.item.probabilities(item_inputs(sample, sample_scores, logit, best)) >= probability_min]
        shown.append(len(likely))
        if sample.gold_messages:
            lost.append(sample.recall(best) - sample.recall(likely))
        elif sample.gold_sessions:
            recall_before = sample.session_recall(sample.sessions[best].tolist())
            lost.append(recall_before - sample.session_recall(sample.sessions[likely].tolist()))
    return f"{100 * _mean(lost):.1f} lost, {_mean(shown):.1f} of 10 shown"


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else 0.0
