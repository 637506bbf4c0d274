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

from logit import Logit, write

from recollect.events.intake.code_numbers import CODE_MIN, inputs_of, possible_codes

sys.path.append(str(Path(__file__).parents[1] / "relevance"))
labelled_chats: Any = import_module("labelled_chats")

_FOLDER = Path(__file__).parent / "labels"
_TRAIN = Path(__file__).parents[1]
#: Conversations whose numbers are no codes, but for those of `conversation-codes.json`.
_CONVERSATIONS = ("relevance/chats", "changes/slips", "changes/held-out-slips", "changes/held-out-chats")
#: Inverse strength of the penalty, and numbers that an input occurs with, at least.
_PENALTY = 0.6
_COUNT_MIN = 2
_THRESHOLDS = (0.3, 0.5, CODE_MIN, 0.7, 0.9)


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


def fitted(read: Sequence[Number]) -> Logit:
    """Return the logit that is fitted to numbers."""
    return Logit([it.inputs for it in read], [it.is_code for it in read], penalty=_PENALTY, count_min=_COUNT_MIN)


def report(title: str, read: Sequence[Number], model: Logit, *, wrong: bool) -> None:
    """Print how many codes are found, and how many other numbers are taken for one."""
    probabilities = model.probabilities([it.inputs for it in read])
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
    model = fitted([*own, *said])
    report("held-out messages", held_out, model, wrong=arguments.wrong)
    for half in (0, 1):
        rest, read = said[1 - half :: 2], said[half::2]
        report("half of the conversations", read, fitted([*own, *rest]), wrong=arguments.wrong)
    if arguments.write:
        write("code_number_weights.json", {"weights": model.weights()})


if __name__ == "__main__":
    main()
