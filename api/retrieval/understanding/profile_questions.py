"""Profile questions: detects whether a question asks for what memory knows of its asker: `what do u know abt me`.

A logit over the words of the question and their parts; `ops/train/profile_questions` learns it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from recollect.events.intake.code_numbers import probability
from recollect.events.late_pattern import late_pattern
from recollect.projections.text.sentences import split_sentences

#: The probability from which a question is answered with a profile: see the model card.
ASKED_MIN = 0.6
#: Words of a question that are read; a longer text is a message.
_WORDS_MAX, _CHARS_MAX = 40, 400
#: Neighbouring words, and letters of a word, that are read together.
_WORDS_TOGETHER, _LETTERS_TOGETHER = 3, (2, 3, 4)
_WORD = late_pattern(r"[^\W_]{1,40}(?:['’][^\W\d_]{1,10})?|[?!.,:\"“”]")


def asks_for_profile(question: str) -> bool:
    """Return whether a question, or one of its sentences, asks for what is known of its asker in general."""
    probabilities = (probability(inputs, _weights()) for part in parts_of(question) if (inputs := {*inputs_of(part)}))
    return any(it >= ASKED_MIN for it in probabilities)


def parts_of(question: str) -> set[str]:
    """Return what is read of a question: the whole and each sentence."""
    text = question[:_CHARS_MAX]
    return {text.strip(), *split_sentences(text)}


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
