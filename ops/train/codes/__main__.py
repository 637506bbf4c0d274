"""Training of the codes: fits the weights by which a number or a word is a code to labelled messages.

    .venv/bin/python ops/train/codes [--write] [--wrong]

Prints what the weights find in the held-out messages, and in the conversations of another part than they were fitted
to. With `--write`, fits all labels and writes `code_number_weights.json` and `code_word_weights.json` of
`events/intake`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from logit import Logit, write

from recollect.events.intake import code_numbers, code_words
from recollect.events.intake.secrets import find_secrets

sys.path.append(str(Path(__file__).parents[1] / "relevance"))
labelled_chats: Any = import_module("labelled_chats")

_FOLDER = Path(__file__).parent / "labels"
_TRAIN = Path(__file__).parents[1]
#: Conversations whose numbers and words are not codes, but for those of `conversation-codes.json`.
_CONVERSATIONS = ("relevance/chats", "changes/slips", "changes/held-out-slips", "changes/held-out-chats")
#: Examples that an input occurs in, at least.
_COUNT_MIN = 2


class Example(NamedTuple):
    """A number or a word of a message, and whether it is a code."""

    inputs: set[str]
    is_code: bool
    about: str


class Form(NamedTuple):
    """What is read as a code: numbers, or words."""

    #: Of its file of weights.
    name: str
    #: Of its label files: `{name}-*train.jsonl`, `{name}-heldout.jsonl`.
    labels: tuple[str, ...]
    #: Inverse strength of the L2 penalty.
    penalty: float
    least: float
    #: Yields the beginning, the end and the inputs of what may be a code.
    read: Callable[[str], Iterator[tuple[int, int, set[str]]]]


def _numbers(text: str) -> Iterator[tuple[int, int, set[str]]]:
    for match in code_numbers.possible_codes(text):
        yield *match.span(), code_numbers.inputs_of(text, match)


def _words(text: str) -> Iterator[tuple[int, int, set[str]]]:
    """Yield the words that may be a code, but for those that `stated_secrets` finds for sure."""
    known = find_secrets(text)
    for it in code_words.possible_words(text):
        if not any(secret.start < it.end and it.start < secret.end for secret in known):
            yield it.start, it.end, code_words.inputs_of(text, it)


_FORMS = (
    Form("code_number", ("own", "replies"), 0.6, code_numbers.CODE_MIN, _numbers),
    Form("code_word", ("words",), 1.5, code_words.CODE_WORD_MIN, _words),
)


def examples(form: Form, text: str, codes: Sequence[str]) -> Iterator[Example]:
    """Yield what may be a code in a message."""
    for start, end, inputs in form.read(text):
        about = f"{text[max(0, start - 70) : start]}[{text[start:end]}]{text[end : end + 40]}"
        yield Example(inputs, any(text[start:end] in code for code in codes), about.replace("\n", " "))


def labelled(form: Form, pattern: str) -> list[Example]:
    """Return the examples of the label files of a name."""
    lines = [line for file in sorted(_FOLDER.glob(pattern)) for line in file.read_text(encoding="utf-8").splitlines()]
    return [it for row in map(json.loads, lines) for it in examples(form, row["text"], row["codes"])]


def in_conversations(form: Form) -> list[Example]:
    """Return the examples of the conversations."""
    codes: dict[str, list[str]] = json.loads((_FOLDER / "conversation-codes.json").read_text(encoding="utf-8"))
    found: list[Example] = []
    for folder in _CONVERSATIONS:
        for chat in labelled_chats.read_chats(_TRAIN / folder):
            for event in chat.events:
                found += examples(form, event["payload"]["text"], codes.get(chat.name, ()))
    return found


def fitted(form: Form, read: Sequence[Example]) -> Logit:
    """Return the logit that is fitted to examples."""
    return Logit([it.inputs for it in read], [it.is_code for it in read], penalty=form.penalty, count_min=_COUNT_MIN)


def report(form: Form, title: str, read: Sequence[Example], model: Logit, *, wrong: bool) -> None:
    """Print how many codes are found, and how many others are taken for one."""
    probabilities = model.probabilities([it.inputs for it in read])
    codes = sum(it.is_code for it in read)
    print(f"{form.name}, {title}: {codes} codes, {len(read) - codes} others")
    for threshold in sorted({0.3, 0.4, 0.5, 0.6, 0.7, form.least}):
        taken = [it.is_code for it, p in zip(read, probabilities, strict=True) if p >= threshold]
        print(f"  from {threshold}: {sum(taken)} codes, {len(taken) - sum(taken)} others")
    for it, p in zip(read, probabilities, strict=True) if wrong else ():
        if it.is_code != (p >= form.least):
            print(f"  {p:.2f} {'code' if it.is_code else 'none'}: {it.about}")


def main() -> None:
    """Fit, report and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the weights")
    parser.add_argument("--wrong", action="store_true", help="list what is taken wrongly")
    arguments = parser.parse_args()
    for form in _FORMS:
        own = [it for name in form.labels for it in labelled(form, f"{name}-*train.jsonl")]
        said = in_conversations(form)
        model = fitted(form, [*own, *said])
        for name in form.labels:
            if held_out := labelled(form, f"{name}-heldout.jsonl"):
                report(form, f"held-out {name}", held_out, model, wrong=arguments.wrong)
        for half in (0, 1):
            rest, read = said[1 - half :: 2], said[half::2]
            report(form, "half of the conversations", read, fitted(form, [*own, *rest]), wrong=arguments.wrong)
        if arguments.write:
            write(f"{form.name}_weights.json", {"weights": model.weights()})


if __name__ == "__main__":
    main()
