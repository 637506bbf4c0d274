"""Questions for codes: fits the weights by which a question asks for a code to labelled questions.

    .venv/bin/python ops/train/codes/questions.py [--write] [--wrong]

The labels `questions-*.jsonl` name messages of the files of codes, and have questions for their codes and others about
the same things. Every question is also compared with the codes of other messages, which it does not ask for. With
`--write`, writes `events/intake/asked_code_weights.json`.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from logit import Logit, write

from recollect.events.intake.asked_codes import ASKED_MIN, inputs_of, words_of

sys.path.append(str(Path(__file__).parents[1] / "relevance"))
labelled_chats: Any = import_module("labelled_chats")

_FOLDER = Path(__file__).parent / "labels"
_SEED = 4
#: The messages with numbers and with passwords, and the questions for them.
_FILES = (("own", ("questions", "rest")), ("words", ("word-questions",)))
#: Codes of other messages that a question is compared with.
_OTHERS = 6
#: Questions of conversations that may ask for a code.
_ASKS_CODE = re.compile(r"code|pin|combin|passw|number|key", re.IGNORECASE)
#: Share of the questions with a word, above which the word identifies no thing.
_COMMON_SHARE = 0.012
_PENALTY, _COUNT_MIN = 0.5, 3
_THRESHOLDS = (0.4, 0.5, 0.6, 0.7, 0.8)


class Pair(NamedTuple):
    """A question with a code."""

    query: str
    text: str
    start: int
    end: int
    #: `ask`: the question asks for it; `other`: it is about the same message; `apart`: it asks for another one.
    kind: str


def pairs(names: Sequence[str], messages: str, questions: Sequence[str]) -> list[Pair]:
    """Return the pairs of label files.

    Parameters:
        names: of writers: `{messages}-{name}.jsonl` has the texts.
        questions: beginnings of the files that name them.
    """
    chance = random.Random(_SEED)
    found: list[Pair] = []
    for name in names:
        texts = [json.loads(line)["text"] for line in _lines(f"{messages}-{name}.jsonl")]
        rows: list[dict[str, Any]] = [
            row
            for file in questions
            for row in map(json.loads, _lines(f"{file}-{name}.jsonl"))
            if row["code"] in texts[row["n"]]
        ]
        codes = [(text := texts[row["n"]], place := text.find(row["code"]), place + len(row["code"])) for row in rows]
        for row, code in zip(rows, codes, strict=True):
            found += [Pair(query, *code, "ask") for query in row["ask"]]
            found += [Pair(query, *code, "other") for query in row["other"]]
            apart = [it for it in chance.sample(codes, min(_OTHERS, len(codes))) if it[0] != code[0]]
            found += [Pair(query, *it, "apart") for query in row["ask"] for it in apart]
    return found


def of_conversations(fitted: Sequence[Pair], common: Collection[str]) -> Iterator[Pair]:
    """Yield the questions of conversations, none of which asks for a code, with codes of messages that share a word."""
    chance = random.Random(_SEED)
    codes = sorted({(pair.text, pair.start, pair.end) for pair in fitted})
    with_word: defaultdict[str, list[tuple[str, int, int]]] = defaultdict(list)
    for code in codes:
        for word in set(words_of(code[0])) - {*common}:
            with_word[word].append(code)
    for chat in labelled_chats.read_chats():
        for query in [asked.query for asked in chat.asked if not _ASKS_CODE.search(asked.query)]:
            near = sorted({code for word in words_of(query) for code in with_word.get(word, ())})
            yield from (Pair(query, *code, "apart") for code in chance.sample(near, min(_OTHERS, len(near))))


def _lines(name: str) -> Iterator[str]:
    path = _FOLDER / name
    yield from path.read_text(encoding="utf-8").splitlines() if path.exists() else ()


class Model:
    """A logit over the inputs of pairs."""

    def __init__(self, fitted: Sequence[Pair]) -> None:
        queries = {pair.query for pair in fitted}
        counts = Counter(word for query in queries for word in set(words_of(query)))
        self.common = sorted(word for word, count in counts.items() if count >= _COMMON_SHARE * len(queries))
        fitted = [*fitted, *of_conversations(fitted, frozenset(self.common))]
        labels = [pair.kind == "ask" for pair in fitted]
        self.logit = Logit(self._rows(fitted), labels, penalty=_PENALTY, count_min=_COUNT_MIN)

    def probabilities(self, read: Sequence[Pair]) -> list[float]:
        """Return the probability of each pair."""
        return self.logit.probabilities(self._rows(read))

    def _rows(self, read: Sequence[Pair]) -> list[set[str]]:
        common = frozenset(self.common)
        return [{*inputs_of(it.query, it.text, it.start, it.end, common)} for it in read]


def report(messages: str, read: Sequence[Pair], probabilities: Sequence[float], *, wrong: bool) -> None:
    """Print how many questions are answered, and how many of the others show a code."""
    print(f"held out, {messages}: {Counter(it.kind for it in read)}")
    for threshold in _THRESHOLDS:
        shown = Counter(it.kind for it, p in zip(read, probabilities, strict=True) if p >= threshold)
        print(f"  from {threshold}: {dict(shown)}")
    for it, p in zip(read, probabilities, strict=True) if wrong else ():
        if (it.kind == "ask") != (p >= ASKED_MIN):
            print(f"  {p:.2f} {it.kind}: {it.query} | {it.text[:110]}")


def main() -> None:
    """Fit, report and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the weights")
    parser.add_argument("--wrong", action="store_true", help="list what is taken wrongly")
    arguments = parser.parse_args()
    names = sorted(path.stem.removeprefix("questions-") for path in _FOLDER.glob("questions-*-train.jsonl"))
    model = Model([pair for files in _FILES for pair in pairs(names, *files)])
    for files in _FILES:
        held_out = pairs(["heldout"], *files)
        report(files[0], held_out, model.probabilities(held_out), wrong=arguments.wrong)
    if arguments.write:
        write("asked_code_weights.json", {"common": model.common, "weights": model.logit.weights()})


if __name__ == "__main__":
    main()
