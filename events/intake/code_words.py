"""Code words: finds passwords that stand without the word, by the words around them.

`WLAN bei meinen Eltern: gast2024`, `netflix is still biscuit77`. A logit over the form of a word and the words near it
says how probable it is that it gives access; `ops/train/codes` learns its weights.
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

#: The probability from which a word is a code: see the model card.
CODE_WORD_MIN = 0.4
#: Words of a text that are read; characters of a code, and words of one in quotes.
_WORDS_MAX = 2_000
_CHARS_MIN, _CHARS_MAX = 4, 64
_WORD = re.compile(r"\S+")
_QUOTES = tuple("\"'“„«`‘")
#: Words in quotes, up to some.
_QUOTED = re.compile(r"(?<!\w)[\"“„«`‘'](?P<code>[^\s\"”“»`\n][^\"”“»`\n]{2,40}?)[\"”“»`’'](?!\w)")
_QUOTED_WORDS_MAX = 5
_EDGES = "\"'“”„«»‘’`.,;:!?()[]{}<>…*"
#: Signs within a word that few other words have: `Lotte&Paul`, `lazy-yak-zoo`, `AllegroMaNonTroppo`.
_SIGN = re.compile(r"\w[!&_+#$%*=^~]+\w")
_COMPOUND = re.compile(r"\w[-./]\w|[a-z][A-Z]")
#: What joins a plain word to the thing that it opens.
_JOINER = re.compile(
    r"(?:[:=>–→-]|\b(?:is|was|ist|war|lautet|es|est|era|è|é|word|wort|now|jetzt|still|says?|sagen|type|spell|tippen|tippe|tape[rz]?"
    r"|wants|with|con|mit|avec|com|then|to|puis|dann|called))\s*[\"'“„«]?\Z",
    re.IGNORECASE,
)
_LINK = re.compile(r"://|@\w|www\.|\.(?:com|org|net|de|pdf|jpe?g|png|docx?|xlsx?|py|js|md|txt)\b", re.IGNORECASE)
#: `28th`, `10am`, `3kg`, `2x`.
_MEASURE = re.compile(r"\d{1,6}[^\W\d_]{1,3}(?:-\d{1,6}[^\W\d_]{0,3})?")
_SHAPE_CHARS_MAX = 6
#: Characters before a word in which its joiner is looked for.
_JOINER_CHARS = 14


class Candidate(NamedTuple):
    """A word that may be a code, and why."""

    start: int
    end: int
    form: str


def code_words(text: str) -> Iterator[Secret]:
    """Yield the words of a text that are probably codes."""
    for candidate in possible_words(text):
        if probability(inputs_of(text, candidate), _weights()) >= CODE_WORD_MIN:
            yield Secret(candidate.start, candidate.end, "code")


def possible_words(text: str) -> Iterator[Candidate]:
    """Yield what may be a code, up to a number of words."""
    end = 0
    for match in islice(_WORD.finditer(text), _WORDS_MAX):
        if match.start() < end:
            continue
        quoted = _QUOTED.match(text, match.start())
        if quoted and " " in quoted["code"] and len(quoted["code"].split()) <= _QUOTED_WORDS_MAX:
            end = quoted.end()
            yield Candidate(*quoted.span("code"), "quoted")
            continue
        core = match.group().strip(_EDGES)
        if not _CHARS_MIN <= len(core) <= _CHARS_MAX or not any(map(str.isalpha, core)):
            continue
        if _LINK.search(core) or _MEASURE.fullmatch(core):
            continue
        start = match.start() + match.group().index(core)
        if form := _form_of(core, text[max(0, start - _JOINER_CHARS) : start]):
            yield Candidate(start, start + len(core), form)


def _form_of(word: str, before: str) -> str | None:
    """Return why a word may be a code; None for most words."""
    if any(map(str.isdigit, word)):
        return "mixed"
    if _SIGN.search(word):
        return "sign"
    if before.endswith(_QUOTES):
        return "quoted"
    if _COMPOUND.search(word):
        return "compound"
    if word.isupper():
        return "upper"
    return "joined" if _JOINER.search(before) else None


def inputs_of(text: str, candidate: Candidate) -> set[str]:
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
