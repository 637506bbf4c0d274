"""Fit of the order: the weights of `api/retrieval/ranking/newest_first.py`, by the questions of the lives.

    .venv/bin/python ops/train/changes/order.py

Two messages are an update when the older one has a former value of what is asked for and the newer one the last value.
Prints the weights, the constant, and how often the newest value comes first with them in the lives that are held out.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from lives import FOLDER, Clock, asked, read_lives, record

from recollect import Recollect
from recollect.api.retrieval import namespace_search
from recollect.api.retrieval.ranking import newest_first

# PyTorch comes with sentence-transformers, and its types are incomplete.
torch: Any = import_module("torch")
_PENALTY = 3e-3
_STEPS_MAX = 100


class Pairs(NamedTuple):
    """The pairs of messages that were found for a question."""

    features: Any
    is_update: Any


def pairs_of(path: Path) -> Iterator[Pairs]:
    """Yield the pairs of each question of the conversations of a file."""
    clock = Clock()
    found: list[Any] = []

    def keep(context: Any, items: Sequence[Any]) -> list[Any]:
        first = items[: newest_first.FIRST_MAX]
        found[:] = [(first, newest_first.update_features(first, newest_first.cosines(context, first)))] if first else []
        return [*items]

    with (
        tempfile.TemporaryDirectory() as folder,
        Recollect(folder, workers=False, clock=clock) as memory,
        patch.object(namespace_search, "newest_first", keep),
    ):
        for life in read_lives(path):
            record(memory, life)
            for question in asked(life):
                found.clear()
                clock.now = question.at
                memory.retrieve(life.voice, question.text, speaker=life.speaker, no_store=True)
                for items, features in found:
                    texts = [item.text for item in items]
                    label = [[old in question.old and new in question.new for new in texts] for old in texts]
                    is_pair = ~np.isnan(features[..., 0])
                    yield Pairs(features[is_pair], np.array(label, np.bool_)[is_pair])


def fit(pairs: Sequence[Pairs]) -> tuple[Any, float]:
    """Return the weights of the features and the constant."""
    features = np.concatenate([it.features for it in pairs])
    mean, spread = features.mean(0), features.std(0) + 1e-3
    inputs = torch.tensor((features - mean) / spread)
    labels = torch.tensor(np.concatenate([it.is_update for it in pairs]).astype(np.float32))
    weights = torch.zeros(inputs.shape[1] + 1, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=_STEPS_MAX)

    def closure() -> Any:
        optimizer.zero_grad()
        scores = inputs @ weights[:-1] + weights[-1]
        loss = torch.nn.functional.binary_cross_entropy_with_logits(scores, labels)
        loss = loss + _PENALTY * (weights[:-1] ** 2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    raw = weights.detach().numpy()[:-1] / spread
    return raw, float(weights.detach().numpy()[-1] - mean @ raw)


def main() -> None:
    """Fit to the lives that are read, and print the figures of the others."""
    pairs = {path.stem: [*pairs_of(path)] for path in sorted(FOLDER.glob("*.txt"))}
    weights, constant = fit([it for name, rows in pairs.items() if name != "held-out" for it in rows])
    print("weights", [round(float(weight), 2) for weight in weights], "constant", round(constant, 2))
    for name, rows in pairs.items():
        scores = [1 / (1 + np.exp(-(it.features @ weights + constant))) for it in rows]
        for least in (0.05, 0.1, 0.2, 0.3):
            right = sum(int((it.is_update & (score >= least)).sum()) for it, score in zip(rows, scores, strict=True))
            moved = sum(int((score >= least).sum()) for score in scores)
            print(f"{name} from {least}: {right} of {sum(int(it.is_update.sum()) for it in rows)}, of {moved} pairs")


if __name__ == "__main__":
    main()
