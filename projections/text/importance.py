"""Importance: scores how much a message is worth keeping, from 1 to 10, by signs of content in its text.

The scale is that of `003`: 5 is neutral, and what reaches 8 stays in its own words for longer. Decisions and wishes to
be remembered count most; corrections, numbers, names and feelings add; greetings, fillers and questions count less.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

#: A score without any sign.
NEUTRAL_IMPORTANCE = 5
_LOWEST, _HIGHEST = 1, 10
#: Characters that are read: the signs of a message stand in its beginning, and long ones are pasted texts.
_CHARS_MAX = 1_000
#: Words up to which a message without a number or a name is a filler.
_FILLER_WORDS_MAX = 3

_NUMBER = re.compile(r"\d")
#: A capitalised word inside a sentence, which is mostly a name.
# A pattern that begins with a literal is searched twice as fast.
_NAME = re.compile(r" (?<=[a-zà-ÿ,;:] )[A-ZÀ-Þ][a-zà-ÿ]")
_DECISION = re.compile(
    r"\b(?:decid\w+|agreed|we(?:'ll| will) go with|settled on|signed|booked|bought|sold|hired|fired|quit|"
    r"resigned|engaged|married|divorced|born|pregnant|died|passed away|diagnos\w+|allerg\w+|promoted|accepted|"
    r"cancell?ed|moved (?:to|in|out)|from now on|deadline)\b",
)
_WISH = re.compile(
    r"\b(?:remember (?:that|this|to)|remember(?=[,.:!]|$)|don't forget|do not forget|note (?:that|this|down)|"
    r"keep in mind|remind me|important|for the record|always|never)\b",
)
_CORRECTION = re.compile(
    r"\b(?:actually|correction|i meant|i was wrong|that's wrong|not true|no longer|not any ?more|anymore|instead of)\b",
)
_FEELING = re.compile(
    r"\b(?:love|hate|afraid|scared|proud|happy|sad|angry|worried|excited|ashamed|lonely|grateful|heartbroken|"
    r"terrified|devastated|thrilled|favou?rite|dream)\b",
)
_WORD = re.compile(r"\w+")
_DIGITS = b"0123456789"
#: ASCII bytes to lower case, and all but letters, digits and underscores to spaces: then `split` returns the same words
#: as `_WORD`, in a third of the time.
_LOWER_WORDS = bytes(
    ord(chr(byte).lower()) if chr(byte).isalnum() or byte == ord("_") else ord(" ") for byte in range(128)
).ljust(256)


class _Sign(NamedTuple):
    """A sign of content, with what tells quickly that a message does not have it."""

    points: int
    pattern: re.Pattern[str]
    #: Words and beginnings of words; every match of the pattern has one of them. Most messages have none, and comparing
    #: their words takes a tenth of the time of the patterns.
    words: frozenset[str]
    stems: tuple[str, ...] = ()


_SIGNS = (
    _Sign(
        2,
        _DECISION,
        frozenset(
            "agreed go settled signed booked bought sold hired fired quit resigned engaged married divorced born "
            "pregnant died passed promoted accepted canceled cancelled moved now deadline".split()
        ),
        ("decid", "diagnos", "allerg"),
    ),
    _Sign(2, _WISH, frozenset("remember forget note mind remind important record always never".split())),
    _Sign(1, _CORRECTION, frozenset("actually correction meant wrong true longer more anymore instead".split())),
    _Sign(
        1,
        _FEELING,
        frozenset(
            "love hate afraid scared proud happy sad angry worried excited ashamed lonely grateful heartbroken "
            "terrified devastated thrilled favourite favorite dream".split()
        ),
    ),
)
#: All words of `_SIGNS`, as text and as ASCII bytes.
_SIGN_WORDS = frozenset(word for sign in _SIGNS for word in sign.words)
_SIGN_WORDS_ASCII = frozenset(word.encode() for word in _SIGN_WORDS)


def importance_of(text: str, role: str) -> int:
    """Return the importance of a message, 1 to 10.

    Parameters:
        role: who speaks, such as ``user`` or ``assistant``; what an assistant says can mostly be said again.
    """
    read = text[:_CHARS_MAX]
    has_number, has_name = _has_number(read), _NAME.search(read) is not None
    if not has_number and not has_name and len(read.split(None, _FILLER_WORDS_MAX)) <= _FILLER_WORDS_MAX:
        return _LOWEST + 1
    score = NEUTRAL_IMPORTANCE + has_number + has_name
    # Patterns that ignore case take four times as long.
    read = read.lower()
    words = _sign_words(read)
    for sign in _SIGNS:
        may_match = not sign.words.isdisjoint(words) or (sign.stems and any(map(read.__contains__, sign.stems)))
        if may_match and sign.pattern.search(read) is not None:
            score += sign.points
    if read.rstrip().endswith("?"):
        score -= 2
    if role != "user":
        score -= 2
    return min(max(score, _LOWEST), _HIGHEST)


def _has_number(text: str) -> bool:
    """Return whether `text` has a digit."""
    if text.isascii():
        encoded = text.encode()
        return len(encoded.translate(None, _DIGITS)) < len(encoded)
    return _NUMBER.search(text) is not None


def _sign_words(text: str) -> Collection[str]:
    """Return the words of signs that a text in lower case has."""
    if text.isascii():
        words = _SIGN_WORDS_ASCII.intersection(text.encode().translate(_LOWER_WORDS).split())
        return [word.decode() for word in words]
    return _SIGN_WORDS.intersection(_WORD.findall(text))
