"""Sentences, spelled out so that rules can compare them."""

from __future__ import annotations

import re
from typing import NamedTuple

#: What may follow the end of a sentence, but not the end of an abbreviation or a number: a whole run of signs, or what is
#: left of it behind the one sign of an abbreviation. No place within a run begins another search, so "!!!!x" is read once.
_ENDS = re.compile(
    r"(?:(?<![A-Z.!?…])(?<!\b(?:Mr|Ms|Dr|St|vs))(?<!\b(?:Mrs|e\.g|i\.e|etc))"
    r"|(?<=[A-Z][.!?…])|(?<=\b(?:Mr|Ms|Dr|St|vs)[.!?…])|(?<=\b(?:Mrs|e\.g|i\.e|etc)[.!?…]))"
    r"[.!?…]++[\"')\]]*+(?=\s|$)|\n++"
)
#: A sentence of speech has a few dozen words; what is longer is a list, code or no language at all. Whatever looks at all
#: places of a sentence from all others takes a bounded time.
_CHARS_MAX = 1_000
_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "`": "'"})
_CONTRACTIONS = (
    (re.compile(r"\b(i)(?=\b(?!\.))"), "I"),
    (re.compile(r"\bcan't\b", re.I), "cannot"),
    (re.compile(r"\bwon't\b", re.I), "will not"),
    (re.compile(r"\bI'm\b"), "I am"),
    (re.compile(r"\b(\w+)n't\b"), r"\1 not"),
    (re.compile(r"\b(I|we|you|they)'ve\b", re.I), r"\1 have"),
    (re.compile(r"\b(we|you|they)'re\b", re.I), r"\1 are"),
    (re.compile(r"\b(I|we|you|they|he|she|it)'d\b", re.I), r"\1 would"),
    (re.compile(r"\b(I|we|you|they|he|she|it|that)'ll\b", re.I), r"\1 will"),
    (re.compile(r"\b(he|she|it|that|there|here|what|who|where)'s\b", re.I), r"\1 is"),
    (re.compile(r"\blet's\b", re.I), "let us"),
    (re.compile(r"\b(?:gonna)\b", re.I), "going to"),
)


class Sentence(NamedTuple):
    """A sentence without its end sign."""

    text: str
    #: Its end: ``.``, ``!``, ``?`` …, or nothing.
    end: str

    @property
    def asks(self) -> bool:
        """Tell whether it is a question."""
        return "?" in self.end


def sentences(text: str) -> list[Sentence]:
    """Return the sentences of `text`, quotes straight and contractions spelled out."""
    found: list[Sentence] = []
    plain = text.translate(_QUOTES)
    start = 0
    for match in [*_ENDS.finditer(plain), None]:
        end = len(plain) if match is None else match.start()
        sentence = _cut(" ".join(plain[start:end].split()).strip(" -*•>"))
        if sentence:
            found.append(Sentence(_spelled_out(sentence), "" if match is None else match.group().strip()))
        start = end if match is None else match.end()
    return found


def _cut(sentence: str) -> str:
    """Return `sentence`, at a word's end when it is too long."""
    if len(sentence) <= _CHARS_MAX:
        return sentence
    kept = sentence[:_CHARS_MAX]
    return kept.rpartition(" ")[0] or kept


def _spelled_out(sentence: str) -> str:
    for pattern, full in _CONTRACTIONS:
        sentence = pattern.sub(full, sentence)
    return sentence
