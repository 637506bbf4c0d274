"""Fit of the order: the weights of `api/retrieval/ranking/newest_first.py`, by the questions of conversations.

    .venv/bin/python ops/train/changes/order.py [FOLDER]

Two messages are an update when the older one has a former value of what is asked for and the newer one the last value.
A message that answers a question for good is updated by none: `stable_questions.txt`, and the LoCoMo conversations in
the folder, two of them held out. Prints the weights, the constant, and how many pairs change their order.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
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
#: The conversations of LoCoMo.
DATA = Path(os.environ.get("RECOLLECT_TEST_DATA") or Path(__file__).parents[4] / "shared" / "data")
_STABLE_QUESTIONS = Path(__file__).parent / "stable_questions.txt"
_PENALTY = 3e-3
_STEPS_MAX = 100
#: Weights of a pair of a life, of a question whose answer stays, and of a question of LoCoMo; such questions are more
#: frequent among users than among these.
_LIFE, _STABLE, _LOCOMO = 1.0, 3.0, 0.3
#: Conversations of LoCoMo that are not trained on, and the category of its questions without an answer.
_HELD_OUT, _NO_ANSWER = ("locomo-conv-26", "locomo-conv-30"), 5


class Pairs(NamedTuple):
    """The pairs of messages that were found for a question."""

    features: Any
    is_update: Any
    weight: float


class Label(NamedTuple):
    """What is right for a question: the texts or ids of messages, and those whose former value they replace."""

    new: frozenset[str]
    old: frozenset[str]


@contextmanager
def found_pairs() -> Generator[Callable[[Label, float], list[Pairs]]]:
    """Yield a function that labels the pairs of messages of the last retrieval."""
    found: list[tuple[Any, Any]] = []

    def keep(context: Any, items: Sequence[Any]) -> list[Any]:
        first = items[: newest_first.FIRST_MAX]
        found[:] = [(first, newest_first.update_features(first, newest_first.cosines(context, first)))] if first else []
        return [*items]

    def labelled(right: Label, weight: float) -> list[Pairs]:
        pairs: list[Pairs] = []
        for items, features in found:
            is_new, is_old = ([bool({it.id, it.text} & names) for it in items] for names in right)
            # Where nothing is replaced, only what would come before the answer is wrong.
            used = np.outer(np.array(is_new) & (not right.old), ~np.array(is_new)) | bool(right.old)
            is_pair = ~np.isnan(features[..., 0]) & used
            pairs.append(Pairs(features[is_pair], np.outer(is_old, is_new)[is_pair], weight))
        found.clear()
        return pairs

    with patch.object(namespace_search, "newest_first", keep):
        yield labelled


def pairs_of_lives(path: Path) -> Iterator[Pairs]:
    """Yield the pairs of each question of the conversations of a file."""
    clock = Clock()
    stable = [line.split(" | ") for line in _STABLE_QUESTIONS.read_text(encoding="utf-8").splitlines() if " | " in line]
    with (
        tempfile.TemporaryDirectory() as folder,
        Recollect(folder, workers=False, clock=clock) as memory,
        found_pairs() as labelled,
    ):
        for life in read_lives(path):
            record(memory, life)
            questions = [(it.text, Label(it.new, it.old), _LIFE) for it in asked(life)]
            for voice, words, text in stable:
                right = frozenset(said for _, said, *_ in life.messages if voice == life.voice and words in said)
                questions += [(text, Label(right, frozenset()), _STABLE)] if right else []
            clock.now = life.messages[-1][2] + timedelta(days=1)
            for text, right, weight in questions:
                memory.retrieve(life.voice, text, speaker=life.speaker, no_store=True)
                yield from labelled(right, weight)


def pairs_of_locomo(path: Path) -> Iterator[Pairs]:
    """Yield the pairs of each question of a conversation of LoCoMo."""
    conversation = json.loads(path.read_text(encoding="utf-8"))
    with (
        tempfile.TemporaryDirectory() as folder,
        Recollect(folder, workers=False) as memory,
        found_pairs() as labelled,
    ):
        memory.append(path.stem, conversation["events"])
        memory.settle(path.stem)
        for question in conversation["questions"]:
            if question["category"] != _NO_ANSWER:
                memory.retrieve(path.stem, question["query"], no_store=True)
                yield from labelled(Label(frozenset(question["gold"]), frozenset()), _LOCOMO)


def fit(pairs: Sequence[Pairs]) -> tuple[Any, float]:
    """Return the weights of the features and the constant."""
    features = np.concatenate([it.features for it in pairs])
    mean, spread = features.mean(0), features.std(0) + 1e-3
    inputs = torch.tensor((features - mean) / spread)
    labels = torch.tensor(np.concatenate([it.is_update for it in pairs]).astype(np.float32))
    shares = torch.tensor(np.concatenate([np.full(len(it.features), it.weight, np.float32) for it in pairs]))
    weights = torch.zeros(inputs.shape[1] + 1, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=_STEPS_MAX)

    def closure() -> Any:
        optimizer.zero_grad()
        scores = inputs @ weights[:-1] + weights[-1]
        loss = torch.nn.functional.binary_cross_entropy_with_logits(scores, labels, weight=shares / shares.mean())
        loss = loss + _PENALTY * (weights[:-1] ** 2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    raw = weights.detach().numpy()[:-1] / spread
    return raw, float(weights.detach().numpy()[-1] - mean @ raw)


def main() -> None:
    """Fit to the conversations that are read, and print the figures of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=DATA)
    folder: Path = parser.parse_args().folder
    pairs = {path.stem: [*pairs_of_lives(path)] for path in sorted(FOLDER.glob("*.txt"))}
    pairs |= {path.stem: [*pairs_of_locomo(path)] for path in sorted(folder.glob("locomo-*.json"))}
    held_out = ("held-out", *_HELD_OUT)
    weights, constant = fit([it for name, rows in pairs.items() if name not in held_out for it in rows])
    print("weights", [round(float(weight), 2) for weight in weights], "constant", round(constant, 2))
    for name, rows in pairs.items():
        scores = [1 / (1 + np.exp(-(it.features @ weights + constant))) for it in rows]
        for least in (0.1, 0.2, 0.25, 0.3):
            right = sum(int((it.is_update & (score >= least)).sum()) for it, score in zip(rows, scores, strict=True))
            moved = sum(int((score >= least).sum()) for score in scores)
            print(f"{name} from {least}: {right} of {sum(int(it.is_update.sum()) for it in rows)}, of {moved} pairs")


if __name__ == "__main__":
    main()
