"""Clauses: splits a sentence where a new clause begins, so that a statement is separate from the request after it."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import NamedTuple

from recollect.events.late_pattern import late_pattern

#: The subject or the verb that begins a clause.
_OPENING = (
    r"(?:i|i'm|i've|i'd|i'll|im|ive|we|we're|we've|he|she|they|it|it's|my|our|his|her|their|there|this|that|you|"
    r"can|could|would|will|please|pls|what|how|where|when|who|why|do|does|is|are|should|any|give|help|tell|suggest|"
    r"ich|wir|mein\w{0,2}|kannst|könntest|bitte|wie|was|yo|mi|me|puedes|podrías|qué|cómo|je|j'ai|mon|ma|peux|pouvez|"
    r"io|mio|mia|puoi|eu|meu|minha|pode|ik|mijn|kun)"
)
_CONNECTIVE = (
    r"(?:and|but|so|because|since|though|although|plus|which|who|while|und|aber|also|weil|denn|y|pero|así que|porque|"
    r"et|mais|donc|car|e|ma|quindi|perché|mas|então|en|maar|dus|want)"
)
_BREAK = late_pattern(
    rf"[;:](?=\s)|(?<=[?!])\s+|[—–]|\s-+\s|[,，；]\s?(?={_CONNECTIVE}\s+{_OPENING}\b|{_OPENING}\b|considering\b|especially\b)|\.{{2,}}|"
    rf"\s(?={_CONNECTIVE},?\s+{_OPENING}\b)|(?<=[，。！？；])",
    re.IGNORECASE,
)
_LEADING = late_pattern(rf"(?:[\s,;:—–.。，；-]|{_CONNECTIVE}\b[\s,]+(?={_OPENING}\b))*", re.IGNORECASE)
_WORD = late_pattern(r"\S+")
#: Words of a clause that is complete by itself.
_WORDS_MIN = 2
_CLAUSES_MAX = 8


class Clause(NamedTuple):
    """A part of a sentence."""

    text: str
    #: Characters of the sentence.
    start: int
    end: int


def clauses(sentence: str) -> list[Clause]:
    """Return the clauses of a sentence without the words that connect them; a sentence without breaks is one."""
    starts = [0]
    words = [match.start() for match in _WORD.finditer(sentence)]
    for match in _BREAK.finditer(sentence):
        sides = ((starts[-1], match.start()), (match.end(), len(sentence)))
        if all(_word_count(sentence, words, start, end) >= _WORDS_MIN for start, end in sides):
            starts.append(match.end())
            if len(starts) == _CLAUSES_MAX:
                break
    ends = [*starts[1:], len(sentence)]
    return [clause for start, end in zip(starts, ends, strict=True) if (clause := _trimmed(sentence, start, end)).text]


def _word_count(sentence: str, words: list[int], start: int, end: int) -> int:
    """Return the number of words of a part of a sentence; `words` are the starts of all of them."""
    first = bisect_left(words, start)
    is_within_word = start < end and not sentence[start].isspace() and words[first : first + 1] != [start]
    return max(0, bisect_left(words, end) - first) + is_within_word


def _trimmed(sentence: str, start: int, end: int) -> Clause:
    """Return a clause without leading connectives and trailing signs."""
    leading = _LEADING.match(sentence, start, end)
    first = leading.end() if leading is not None else start
    text = sentence[first:end].rstrip(" ,;:—–-")
    return Clause(text, first, first + len(text))
