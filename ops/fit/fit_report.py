"""What the fitted models do, printed by data set: on what they were fitted to, and on what was held out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from gate_model import GateModel, item_inputs
from samples import Sample, best_first

from recollect.projections.embeddings.token_codes import Vector

_TURN_CUTS = (5, 10, 20)
_SESSION_CUTS = (5, 10)
#: What comes to a caller, by default about so many items.
_SHOWN = 10
#: Logits from which on there is an answer, and probabilities from which on an item is shown, to choose from.
_ANSWER_LEAST = (-2.0, -1.5, -1.0, -0.5, 0.0)
_ITEM_LEAST = (0.0003, 0.001, 0.003, 0.01, 0.02)


def report_order(samples: Sequence[Sample], scored: Sequence[Vector]) -> None:
    """Print how much of the evidence comes first."""
    for held in (False, True):
        found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for one, scores in zip(samples, scored, strict=True):
            if one.own and one.held == held:
                for key, value in _figures(one, scores).items():
                    found[one.set_name][key].append(value)
        for name, row in sorted(found.items()):
            print(f"# {_part(held)}: {name}  " + "  ".join(f"{key} {100 * np.mean(of):.1f}" for key, of in row.items()))


def report_gate(samples: Sequence[Sample], scored: Sequence[Vector], model: GateModel) -> None:
    """Print what silence costs and saves, then what leaving out unlikely items does."""
    for held in (False, True):
        for name in _set_names(samples):
            chosen = [at for at, one in enumerate(samples) if one.held == held and one.set_name == name]
            if not chosen:
                continue
            line = f"# gate, {_part(held)}, {name}:"
            for least in _ANSWER_LEAST:
                gone: list[bool] = (model.logits < least).tolist()
                silent = 100 * _mean([gone[at] for at in chosen if not samples[at].own])
                lost = 100 * _mean([_recall(samples[at], scored[at]) * gone[at] for at in chosen if samples[at].own])
                line += f"  {least}: nothing for {silent:.0f} % of foreign, {lost:.1f} lost"
            print(line)
    for least in _ITEM_LEAST:
        line = f"# items under {least} left out:"
        for name in _set_names(samples):
            line += f"  {name} {_left_out(name, samples, scored, model, least)}"
        print(line)


def _part(held: bool) -> str:
    return "held out" if held else "fitted to"


def _set_names(samples: Sequence[Sample]) -> list[str]:
    return sorted({one.set_name for one in samples})


def _figures(one: Sample, scores: Vector) -> dict[str, float]:
    """Return recall of messages and sessions, and the reciprocal rank of the first message with evidence."""
    order = best_first(scores)
    row: dict[str, float] = {}
    if one.total:
        row |= {f"turn@{k}": one.recall(order[:k]) for k in _TURN_CUTS}
        first = np.flatnonzero(one.gold[order])
        row["MRR"] = 1 / (int(first[0]) + 1) if len(first) else 0.0
    if one.gold_sessions:
        sessions = one.distinct_sessions(order)
        row |= {f"session@{k}": one.session_recall(sessions[:k]) for k in _SESSION_CUTS}
    return row


def _recall(one: Sample, scores: Vector) -> float:
    """Return recall at 10, of messages or else of sessions."""
    order = best_first(scores)
    if one.total:
        return one.recall(order[:_SHOWN])
    return one.session_recall(one.distinct_sessions(order)[:_SHOWN])


def _left_out(name: str, samples: Sequence[Sample], scored: Sequence[Vector], model: GateModel, least: float) -> str:
    """Return what leaving out the items under a probability costs of recall, and how many are left."""
    lost: list[float] = []
    shown: list[int] = []
    for one, scores, logit in zip(samples, scored, model.logits.tolist(), strict=True):
        if one.set_name != name or not one.own:
            continue
        first = best_first(scores)[:_SHOWN]
        kept = first[model.item.probabilities(item_inputs(one, scores, logit, first)) >= least]
        shown.append(len(kept))
        if one.total:
            lost.append(one.recall(first) - one.recall(kept))
        elif one.gold_sessions:
            sessions = one.sessions
            lost.append(one.session_recall(sessions[first].tolist()) - one.session_recall(sessions[kept].tolist()))
    return f"{100 * _mean(lost):.1f} lost, {_mean(shown):.1f} of 10 shown"


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else 0.0
