"""Profile questions: tells whether a question asks for what memory knows of its asker: `what do u know abt me`.

A logit over the words of the question and their parts; `ops/train/profile_questions` learns it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from recollect.projections.text.sentences import split_sentences

#: The probability from which a question is answered with a profile: see the model card.
ASKED_MIN = 0.6
#: Words of a question that are read; a longer text is a message.
_WORDS_MAX, _CHARS_MAX = 40, 400
#: Neighbouring words, and letters of a word, that are read together.
_WORDS_TOGETHER, _LETTERS_TOGETHER = 3, (2, 3, 4)
_WORD = re.compile(r"[^\W_]{1,40}(?:['’][^\W\d_]{1,10})?|[?!.,:\"“”]")


def asks_for_profile(question: str) -> bool:
    """Return whether a question, or one of its sentences, asks for what is known of its asker in general."""
    text = question[:_CHARS_MAX]
    return any(_probability({*inputs_of(part)}) >= ASKED_MIN for part in {text.strip(), *split_sentences(text)})


def _probability(inputs: set[str]) -> float:
    weights = _weights()
    odds = sum(weights.get(name, 0.0) for name in inputs)
    return 1 / (1 + math.exp(-odds)) if inputs else 0.0


def inputs_of(question: str) -> Iterator[str]:
    """Yield the names of the inputs of a question; none of a long text."""
    words = [match.group().replace("’", "'") for match in _WORD.finditer(question.casefold())]
    if not words or len(words) > _WORDS_MAX:
        return
    yield "any"
    around = ["^", *words, "$"]
    for count in range(1, _WORDS_TOGETHER + 1):
        yield from (" ".join(around[start : start + count]) for start in range(len(around) - count + 1))
    for word in words:
        for count in _LETTERS_TOGETHER:
            shown = f"_{word}_"
            yield from (f"~{shown[start : start + count]}" for start in range(len(shown) - count + 1))


@cache
def _weights() -> dict[str, float]:
    return json.loads(files(__package__).joinpath("profile_question_weights.json").read_text(encoding="utf-8"))
