"""Code numbers: finds the numbers that open a door, an alarm or a phone, by the words around them.

`gate's 4471`, `alarm changed, its 7713 now`: most people state a code without the word. A logit over the form of a
number and the words near it says how probable it is that it gives access; `ops/train/codes` learns its weights.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from itertools import islice, repeat

from recollect.events.intake.secret_formats import Secret, matches_at
from recollect.events.late_pattern import late_pattern

#: The probability from which a number is a code: see the model card.
CODE_MIN = 0.6
#: What may be a code: three to eight digits, with a few letters, `*` or `#`; or groups of digits, `4-4-7-1`. No years,
#: whose words are the same too often, no amounts, `15 000`, `R5200`, no values of programs, `port=5000`, and no parts
#: of longer numbers, `0512 555 018`.
_NUMBER = late_pattern(
    r"(?<![\w.,:/€$£@+*#-])(?<!\w=)(?<!\d )(?!(?:1[5-9]|20)\d\d(?![\w*#]))(?!\d{1,3} 000)[*#]?"
    r"(?:\d(?:[ -]\d){2,7}|\d{3} \d{3}"
    r"|\d{2}(?:[ -]\d{2}){2,3}|(?:(?!R\d)[A-Za-z]{1,6}-?)?\d{3,8}[A-Za-z]{0,2}|\d{1,4}[A-Za-z]\d{1,4})[*#]?"
    r"(?![\w€$£%@*#]|[.,:/-]\d| \d)"
)
#: The first digit of what may be a code by its first characters, and the letters and signs that may be before it.
_DIGIT = late_pattern(r"\d(?<!\d\d)(?=\d\d|\d?[ -]\d|\d{0,3}[A-Za-z]\d)")
_BEFORE_DIGIT_MAX = 8
_TOKEN = late_pattern(r"[^\W\d_]+(?:['’][^\W\d_]+)?|\d+|[^\w\s]|\n")
#: Characters on each side of a number whose words are read, words next to it whose order counts, and those near it.
_AROUND_CHARS = 120
_NEXT_WORDS, _NEAR_WORDS = 2, 20
#: Characters of the parts of a word: `schloss` of `fahrradschloss`.
_PART_CHARS = 5
#: Numbers of a text that are read: a table has thousands.
_NUMBERS_MAX = 40


def code_numbers(text: str) -> Iterator[Secret]:
    """Yield the numbers of a text that are probably codes."""
    for match in possible_codes(text):
        if probability(inputs_of(text, match), _weights()) >= CODE_MIN:
            yield Secret(*match.span(), "code")


def possible_codes(text: str) -> Iterator[re.Match[str]]:
    """Yield what may be a code, up to a number."""
    # The pattern is tried only before digits: a third of the time of a search of the whole text.
    return islice(matches_at(_NUMBER, text, _starts(text)), _NUMBERS_MAX)


def _starts(text: str) -> Iterator[int]:
    """Yield where a code may begin: up to some characters before the first digit of a number."""
    tried = 0
    for digit in _DIGIT.finditer(text):
        yield from range(max(tried, digit.start() - _BEFORE_DIGIT_MAX), digit.end())
        tried = digit.end()


def probability(inputs: Iterable[str], weights: Mapping[str, float]) -> float:
    """Return what a logit makes of the names of its inputs."""
    return 1 / (1 + math.exp(-math.fsum(map(weights.get, inputs, repeat(0.0)))))


def inputs_of(text: str, match: re.Match[str]) -> set[str]:
    """Return the names of the inputs of a number: its form, and the words around it."""
    return {"any", *_form(match.group()), *words_around(text, *match.span())}


def words_around(text: str, start: int, end: int) -> Iterator[str]:
    """Yield the names of the inputs of the words on each side of what may be a code."""
    before = _TOKEN.findall(text[max(0, start - _AROUND_CHARS) : start].lower().replace("’", "'"))
    after = _TOKEN.findall(text[end : end + _AROUND_CHARS].lower().replace("’", "'"))
    yield from _words(before[::-1], "before")
    yield from _words(after, "after")


def _form(number: str) -> Iterator[str]:
    digits = [char for char in number if char.isdigit()]
    yield f"digits={len(digits)}"
    if digits[0] == "0":
        yield "zero"
    if any(char.isalpha() for char in number):
        yield "letters"
    if number[0] in "*#" or number[-1] in "*#":
        yield "mark"
    if any(char in " -" for char in number):
        yield "grouped"


def _words(words: list[str], side: str) -> Iterator[str]:
    """Yield the inputs of the words on one side of a number, the nearest first."""
    shown = ["0" if word.isdigit() else word for word in words]
    for place in range(_NEXT_WORDS):
        yield f"{side}{place}={shown[place] if place < len(shown) else ''}"
    yield f"{side}0,1={' '.join(shown[:2])}"
    for word in shown[:_NEAR_WORDS]:
        yield f"near={word}"
        if len(word) > _PART_CHARS:
            yield f"part={word[:_PART_CHARS]}"
            yield f"part={word[-_PART_CHARS:]}"


@cache
def _weights() -> dict[str, float]:
    return json.loads(files(__package__).joinpath("code_number_weights.json").read_text(encoding="utf-8"))["weights"]
