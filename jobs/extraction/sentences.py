"""Sentences: the sentences of a message with their end signs and expanded contractions, so that rules can match them."""

from __future__ import annotations

import re
from typing import NamedTuple

from recollect.jobs.extraction.hurried_typing import completed
from recollect.projections.text.sentence_language import language_of
from recollect.projections.text.sentences import END_SIGNS, split_sentences

_CLOSING = "\"')]"
#: Characters of a sentence. Spoken sentences have a few dozen words; longer ones are lists or code. The limit bounds
#: the time of patterns that are quadratic in the length of a sentence.
_CHARS_MAX = 1_000
_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "`": "'"})
_LOWER_I = re.compile(r"\b(i)(?=\b(?!\.))")
#: `my son in law` is no son.
_IN_LAW = re.compile(
    r"(?<=\bmother)\sin\slaw\b|(?<=\bfather)\sin\slaw\b|(?<=\bsister)\sin\slaw\b|(?<=\bbrother)\sin\slaw\b|(?<=\bson)\sin\slaw\b|(?<=\bdaughter)\sin\slaw\b",
    re.I,
)
_GOING_TO = re.compile(r"\bgonna\b", re.I)
#: Contractions with an apostrophe.
_CONTRACTIONS = (
    (re.compile(r"\bcan't\b", re.I), "cannot"),
    (re.compile(r"\bwon't\b", re.I), "will not"),
    (re.compile(r"\bI'm\b"), "I am"),
    (re.compile(r"\b(\w+)n't\b"), r"\1 not"),
    (re.compile(r"\b(I|we|you|they)'ve\b", re.I), r"\1 have"),
    (re.compile(r"\b(we|you|they)'re\b", re.I), r"\1 are"),
    (re.compile(r"\b(I|we|you|they|he|she|it)'d\b", re.I), r"\1 would"),
    (re.compile(r"\b(I|we|you|they|he|she|it|that)'ll\b", re.I), r"\1 will"),
    (re.compile(r"\b(he|she|it|that|there|here|what|who|where)'s\b", re.I), r"\1 is"),
    (re.compile(r"\bname's\b", re.I), "name is"),
    (re.compile(r"\blet's\b", re.I), "let us"),
)


class Sentence(NamedTuple):
    """A sentence, split from its end sign."""

    text: str
    #: The end sign: ``.``, ``!``, ``?`` …, or empty.
    end: str

    @property
    def is_question(self) -> bool:
        """Return whether the sentence is a question."""
        return "?" in self.end


def sentences(text: str) -> list[Sentence]:
    """Return the sentences of `text`, with straight quotes and expanded contractions."""
    split: list[Sentence] = []
    # Short forms of English are words of other languages: `im` is German for `in the`.
    is_english = language_of(text) is None
    for part in split_sentences(text.translate(_QUOTES)):
        closed = part.rstrip(_CLOSING)
        bare = closed.rstrip(END_SIGNS)
        end = part[len(bare) :] if bare != closed else ""
        sentence = _cut(part[: len(part) - len(end)].strip(" -*•>"))
        if sentence:
            split.append(Sentence(_expanded(completed(sentence) if is_english else sentence), end))
    return split


def _cut(sentence: str) -> str:
    """Return at most `_CHARS_MAX` characters of `sentence`, cut at the end of a word."""
    if len(sentence) <= _CHARS_MAX:
        return sentence
    beginning = sentence[:_CHARS_MAX]
    return beginning.rpartition(" ")[0] or beginning


def _expanded(sentence: str) -> str:
    sentence = _IN_LAW.sub("-in-law", _GOING_TO.sub("going to", _LOWER_I.sub("I", sentence)))
    if "'" not in sentence:
        return sentence
    for pattern, full in _CONTRACTIONS:
        sentence = pattern.sub(full, sentence)
    return sentence
