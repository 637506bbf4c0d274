"""Code words: finds passwords of unusual forms, by the words around them.

`moose-moose-9`, `Lotte&Paul`, `AllegroMaNonTroppo`: most people type a password without saying that it is one. A logit
over the form of a word and the words near it says how probable it is that it gives access; `ops/train/codes` learns its
weights.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import NamedTuple

from recollect.events.intake.code_numbers import probability, words_around
from recollect.events.intake.secret_formats import Secret
from recollect.events.late_pattern import late_pattern

#: The probability from which a word is a code: see the model card.
CODE_WORD_MIN = 0.4
#: Words of a text that are read, and characters of a code.
_WORDS_MAX = 2_000
_CHARS_MIN, _CHARS_MAX = 4, 64
_WORD = late_pattern(r"\S+")
_EDGES = "\"'“”„«»‘’`.,;:!?()[]{}<>…*"
#: Signs within a word that few other words have: `Lotte&Paul`.
_SIGN = late_pattern(r"\w[!&_+#$%*=^~]+\w")
#: Parts of a word: `lazy-yak-zoo`, `AllegroMaNonTroppo`.
_COMPOUND = late_pattern(r"\w[-./]\w|[a-z][A-Z]")
_LINK = late_pattern(r"://|@\w|www\.|\.(?:com|org|net|de|pdf|jpe?g|png|docx?|xlsx?|py|js|md|txt)\b", re.IGNORECASE)
#: `28th`, `10am`, `3kg`, `2x`.
_MEASURE = late_pattern(r"\d{1,6}[^\W\d_]{1,3}(?:-\d{1,6}[^\W\d_]{0,3})?")
_SHAPE_CHARS_MAX = 6


class CodeCandidate(NamedTuple):
    """A word that may be a code."""

    start: int
    end: int
    #: `mixed`: letters and digits; `sign`, `compound`: see `_SIGN` and `_COMPOUND`.
    form: str


def code_words(text: str) -> Iterator[Secret]:
    """Yield the words of a text that are probably codes."""
    for candidate in possible_words(text):
        if probability(inputs_of(text, candidate), _weights()) >= CODE_WORD_MIN:
            yield Secret(candidate.start, candidate.end, "code")


def possible_words(text: str) -> Iterator[CodeCandidate]:
    """Yield the words of unusual forms, up to a number of words; plain words are too many, and few are codes."""
    for match in islice(_WORD.finditer(text), _WORDS_MAX):
        core = match.group().strip(_EDGES)
        if not _CHARS_MIN <= len(core) <= _CHARS_MAX or _LINK.search(core) or _MEASURE.fullmatch(core):
            continue
        start = match.start() + match.group().index(core)
        if form := _form_of(core):
            yield CodeCandidate(start, start + len(core), form)


def _form_of(word: str) -> str | None:
    """Return why a word may be a code; None for most words."""
    if not any(map(str.isalpha, word)):
        return None
    if any(map(str.isdigit, word)):
        return "mixed"
    if _SIGN.search(word):
        return "sign"
    return "compound" if _COMPOUND.search(word) else None


def inputs_of(text: str, candidate: CodeCandidate) -> set[str]:
    """Return the names of the inputs of a word: its form, and the words around it."""
    word = text[candidate.start : candidate.end]
    return {*_form(word, candidate.form), *words_around(text, candidate.start, candidate.end)}


def _form(word: str, form: str) -> Iterator[str]:
    shape = _shape(word)
    yield "any"
    yield f"form={form}"
    yield f"shape={shape}"
    yield f"begin={shape[:2]},{form}"
    yield f"signs={min(sum(not char.isalnum() for char in shape), 3)},{form}"
    yield f"digits={min(sum(map(str.isdigit, word)), 5)},{form}"
    yield f"chars={min(len(word) // 3, 5)},{form}"


def _shape(word: str) -> str:
    """Return the kinds of signs of a word, each once: `a0` of `gast2024`, `A-A-0` of `Sunny-Side-42`."""
    shape = ""
    for char in word:
        kind = "0" if char.isdigit() else "A" if char.isupper() else "a" if char.isalpha() else char
        if kind != shape[-1:] and not (kind == "a" and shape.endswith("A")):
            shape += kind
    return shape[:_SHAPE_CHARS_MAX]


@cache
def _weights() -> dict[str, float]:
    return json.loads(files(__package__).joinpath("code_word_weights.json").read_text(encoding="utf-8"))["weights"]
