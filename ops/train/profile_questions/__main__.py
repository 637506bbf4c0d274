"""Training of profile questions: fits the weights of `api/retrieval/understanding/profile_questions.py`.

    .venv/bin/python ops/train/profile_questions [--write] [--wrong]

Prints how many questions of the held-out writer are recognised. With `--write`, writes the weights into the package.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from recollect.api.retrieval import understanding
from recollect.api.retrieval.understanding.profile_questions import ASKED_MIN, inputs_of, parts_of

_TRAIN = Path(__file__).parents[1]
sys.path += [str(_TRAIN / "relevance"), str(_TRAIN / "codes")]
labelled_chats: Any = import_module("labelled_chats")
logit: Any = import_module("logit")

_LABELS = Path(__file__).parent / "labels"
#: Inverse strength of the penalty, and examples that an input occurs in, at least.
_PENALTY, _COUNT_MIN = 1.0, 2
#: Those that ask for one.
_OVERVIEW = re.compile(r"know about me\b|savez-vous de moi|weißt du über mich", re.IGNORECASE)
_THRESHOLDS = (0.4, 0.5, 0.6, 0.7, 0.8)


def labelled(pattern: str) -> list[tuple[str, bool]]:
    """Return the questions of label files, and whether each asks for a profile."""
    lines = [line for path in sorted(_LABELS.glob(pattern)) for line in path.read_text(encoding="utf-8").splitlines()]
    return [(line[2:].strip(), line[0] == "+") for line in lines if line[:2] in ("+ ", "- ")]


def chat_questions() -> list[tuple[str, bool]]:
    """Return the questions of our conversations that are not overviews: none of them asks for a profile."""
    queries = {asked.query for chat in labelled_chats.read_chats() for asked in chat.asked}
    return [(query, False) for query in sorted(queries) if _OVERVIEW.search(query) is None]


def fitted(examples: Sequence[tuple[str, bool]]) -> Any:
    """Return the logit of labelled questions."""
    inputs = [{*inputs_of(question)} for question, _ in examples]
    return logit.Logit(inputs, [asks for _, asks in examples], penalty=_PENALTY, count_min=_COUNT_MIN)


def report(title: str, model: Any, read: Sequence[tuple[str, bool]], *, wrong: bool) -> None:
    """Print how many of the questions have each probability."""
    found = [max(model.probabilities([{*inputs_of(part)} for part in parts_of(question)])) for question, _ in read]
    asks = sum(is_asked for _, is_asked in read)
    for least in _THRESHOLDS:
        right = sum(p >= least and is_asked for p, (_, is_asked) in zip(found, read, strict=True))
        false = sum(p >= least and not is_asked for p, (_, is_asked) in zip(found, read, strict=True))
        print(f"{title} from {least}: {right} of {asks}, {false} of {len(read) - asks} others")
    for p, (question, is_asked) in zip(found, read, strict=True) if wrong else ():
        if (p >= ASKED_MIN) != is_asked:
            print(f"  {p:.2f} {'asks' if is_asked else 'other'}: {question}")


def main() -> None:
    """Fit, report and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the weights")
    parser.add_argument("--wrong", action="store_true", help="list what is taken wrongly")
    arguments = parser.parse_args()
    train, chats = labelled("train-*.txt"), chat_questions()
    for title, model, read in (
        ("held out", fitted([*train, *chats]), labelled("held-out.txt")),
        ("questions of chats, fitted to every second other one", fitted([*train, *chats[::2]]), chats[1::2]),
    ):
        report(title, model, read, wrong=arguments.wrong)
    if arguments.write:
        weights = fitted([*train, *chats]).weights()
        content = json.dumps(weights, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        path = Path(understanding.__path__[0]) / "profile_question_weights.json"
        path.write_text(f"{content}\n", encoding="utf-8")
        print(f"{path}: {len(weights)} inputs, {path.stat().st_size >> 10} KiB")


if __name__ == "__main__":
    main()
