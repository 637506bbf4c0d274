"""Training of the code numbers: fits the weights by which a number is a code to labelled messages.

    .venv/bin/python ops/train/codes [--write] [--wrong]

Prints what the weights find in the held-out messages, and in the conversations of another part than they were fitted
to. With `--write`, fits all labels and writes `events/intake/code_number_weights.json`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recollect.events import intake
from recollect.events.intake.code_numbers import CODE_MIN, inputs_of, possible_codes

sys.path.append(str(Path(__file__).parents[1] / "relevance"))
labelled_chats: Any = import_module("labelled_chats")
# This library has no complete types.
linear_model: Any = import_module("sklearn.linear_model")
feature_extraction: Any = import_module("sklearn.feature_extraction")

_FOLDER = Path(__file__).parent / "labels"
_TRAIN = Path(__file__).parents[1]
#: Conversations whose numbers are no codes, but for those of `conversation-codes.json`.
_CONVERSATIONS = ("relevance/chats", "changes/slips", "changes/held-out-slips", "changes/held-out-chats")
#: Inverse strength of the penalty, and numbers that an input occurs with, at least.
_PENALTY = 0.6
_COUNT_MIN = 2
#: Weights next to zero are left out.
_WEIGHT_MIN = 0.02
_THRESHOLDS = (0.3, 0.5, 0.7, 0.9)


class Number(NamedTuple):
    """A number of a message, and whether it is a code."""

    inputs: set[str]
    is_code: bool
    about: str


def numbers(text: str, codes: Sequence[str]) -> Iterator[Number]:
    """Yield the numbers of a message."""
    for match in possible_codes(text):
        start, end = match.span()
        about = f"{text[max(0, start - 70) : start]}[{match.group()}]{text[end : end + 40]}"
        is_code = any(match.group() in code for code in codes)
        yield Number(inputs_of(text, match), is_code, about.replace("\n", " "))


def labelled(pattern: str) -> list[Number]:
    """Return the numbers of the label files of a name."""
    lines = [line for file in sorted(_FOLDER.glob(pattern)) for line in file.read_text(encoding="utf-8").splitlines()]
    return [number for row in map(json.loads, lines) for number in numbers(row["text"], row["codes"])]


def in_conversations() -> list[Number]:
    """Return the numbers of the conversations."""
    codes: dict[str, list[str]] = json.loads((_FOLDER / "conversation-codes.json").read_text(encoding="utf-8"))
    found: list[Number] = []
    for folder in _CONVERSATIONS:
        for chat in labelled_chats.read_chats(_TRAIN / folder):
            for event in chat.events:
                found += numbers(event["payload"]["text"], codes.get(chat.name, ()))
    return found


class Model:
    """A logit over the inputs of numbers."""

    def __init__(self, fitted: Sequence[Number]) -> None:
        self._vectorizer = feature_extraction.DictVectorizer()
        matrix = self._vectorizer.fit_transform([dict.fromkeys(it.inputs, 1) for it in fitted])
        counts = np.asarray((matrix > 0).sum(axis=0)).ravel()
        self._kept = np.flatnonzero(counts >= _COUNT_MIN)
        self._model = linear_model.LogisticRegression(C=_PENALTY, max_iter=2_000, fit_intercept=False)
        self._model.fit(matrix[:, self._kept], [it.is_code for it in fitted])

    def probabilities(self, read: Sequence[Number]) -> list[float]:
        """Return the probability of each number."""
        matrix = self._vectorizer.transform([dict.fromkeys(it.inputs, 1) for it in read])
        return [*self._model.predict_proba(matrix[:, self._kept])[:, 1]]

    def weights(self) -> dict[str, float]:
        """Return the weights that matter, by their inputs."""
        names = self._vectorizer.get_feature_names_out()[self._kept]
        pairs = zip(names, self._model.coef_[0], strict=True)
        return {str(name): round(float(weight), 2) for name, weight in pairs if abs(weight) >= _WEIGHT_MIN}


def report(title: str, read: Sequence[Number], probabilities: Sequence[float], *, wrong: bool) -> None:
    """Print how many codes are found, and how many other numbers are taken for one."""
    codes = sum(it.is_code for it in read)
    print(f"{title}: {codes} codes, {len(read) - codes} other numbers")
    for threshold in _THRESHOLDS:
        taken = [it.is_code for it, p in zip(read, probabilities, strict=True) if p >= threshold]
        print(f"  from {threshold}: {sum(taken)} codes, {len(taken) - sum(taken)} others")
    for it, p in zip(read, probabilities, strict=True) if wrong else ():
        if it.is_code != (p >= CODE_MIN):
            print(f"  {p:.2f} {'code' if it.is_code else 'none'}: {it.about}")


def main() -> None:
    """Fit, report and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the weights")
    parser.add_argument("--wrong", action="store_true", help="list what is taken wrongly")
    arguments = parser.parse_args()
    own, held_out, said = labelled("own-*-train.jsonl"), labelled("own-heldout.jsonl"), in_conversations()
    model = Model([*own, *said])
    report("held-out messages", held_out, model.probabilities(held_out), wrong=arguments.wrong)
    for half in (0, 1):
        rest, read = said[1 - half :: 2], said[half::2]
        report("half of the conversations", read, Model([*own, *rest]).probabilities(read), wrong=arguments.wrong)
    if arguments.write:
        content = json.dumps({"weights": model.weights()}, ensure_ascii=False, indent=0)
        (Path(intake.__path__[0]) / "code_number_weights.json").write_text(f"{content}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
