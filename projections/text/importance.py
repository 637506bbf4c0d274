"""Importance: scores how much a message is worth keeping, from 1 to 10, by signs of content in its text.

The scale is that of `003`: 5 is neutral, and what reaches 8 stays in its own words for longer. Decisions and wishes to
be remembered count most; corrections, numbers, names and feelings add; greetings, fillers and questions count less.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ahocorasick_rs import BytesAhoCorasick, Implementation

from recollect.events.late_pattern import late_pattern

#: A score without any sign.
NEUTRAL_IMPORTANCE = 5
_LOWEST, _HIGHEST = 1, 10
#: Characters that are read: the signs of a message are at its beginning, and long messages are pasted texts.
_CHARS_MAX = 1_000
#: Words up to which a message without a number or a name is a filler.
_FILLER_WORDS_MAX = 3

_NUMBER = late_pattern(r"\d")
#: A capitalised word inside a sentence, which is mostly a name.
# A pattern that begins with a literal is searched twice as fast, and the capital, the rarest part, is tested next.
_NAME = late_pattern(r" [A-ZÀ-Þ](?<=[a-zà-ÿ,;:] [A-ZÀ-Þ])[a-zà-ÿ]")
_WORD = late_pattern(r"\w+")


class _Sign(NamedTuple):
    """A sign of content: words, or a pattern for texts in lower case."""

    points: int
    words: frozenset[str]
    pattern: re.Pattern[str] | None = None
    #: Every match of the pattern has one of these words or beginnings of words; most messages have none.
    openers: frozenset[str] = frozenset()
    stems: tuple[str, ...] = ()


#: Decisions, wishes to be remembered, corrections and feelings.
_SIGNS = (
    _Sign(
        2,
        frozenset(
            "agreed signed booked bought sold hired fired quit resigned engaged married divorced born pregnant died "
            "promoted accepted canceled cancelled deadline".split()
        ),
        late_pattern(
            r"\b(?:decid\w+|we(?:'ll| will) go with|settled on|passed away|diagnos\w+|allerg\w+|moved (?:to|in|out)|"
            r"from now on)\b"
        ),
        frozenset("go settled passed moved now".split()),
        ("decid", "diagnos", "allerg"),
    ),
    _Sign(
        2,
        frozenset("important always never".split()),
        late_pattern(
            r"\b(?:remember (?:that|this|to)|remember(?=[,.:!]|$)|don't forget|do not forget|note (?:that|this|down)|"
            r"keep in mind|remind me|for the record)\b"
        ),
        frozenset("remember forget note mind remind record".split()),
    ),
    _Sign(
        1,
        frozenset("actually correction anymore".split()),
        late_pattern(r"\b(?:i meant|i was wrong|that's wrong|not true|no longer|not any ?more|instead of)\b"),
        frozenset("meant wrong true longer more instead".split()),
    ),
    _Sign(
        1,
        frozenset(
            "love hate afraid scared proud happy sad angry worried excited ashamed lonely grateful heartbroken "
            "terrified devastated thrilled favourite favorite dream".split()
        ),
    ),
)
#: The lower-case words and stems of the signs, each with the index of its sign.
_WORDS = {word: place for place, sign in enumerate(_SIGNS) for word in sign.words}
_OPENERS = {word: place for place, sign in enumerate(_SIGNS) for word in sign.openers}
_STEMS = {stem: place for place, sign in enumerate(_SIGNS) for stem in sign.stems}
#: Finds all of them, and digits, in one pass over a message of ASCII letters: 0.8 µs. Splitting it into words takes
#: twice as long.
_FINDER = BytesAhoCorasick(
    [b"0", *(f" {word} ".encode() for word in (*_WORDS, *_OPENERS)), *(f" {stem}".encode() for stem in _STEMS)],
    implementation=Implementation.DFA,
)
#: The places of the signs of the finder's patterns, of which the first is the digit.
_PLACES = (-1, *_WORDS.values(), *_OPENERS.values(), *_STEMS.values())
#: ASCII bytes to lower case, digits to 0, and all but letters, digits and underscores to spaces: then words are between
#: spaces.
_LOWER_WORDS = bytes(
    ord("0" if chr(byte).isdigit() else chr(byte).lower() if chr(byte).isalpha() or chr(byte) == "_" else " ")
    for byte in range(128)
).ljust(256)


def importance_of(text: str, role: str) -> int:
    """Return the importance of a message, 1 to 10.

    Parameters:
        role: who speaks, such as ``user`` or ``assistant``; what an assistant says can mostly be said again.
    """
    read = text[:_CHARS_MAX]
    has_number, points = _ascii_signs(read) if read.isascii() else _signs(read)
    has_name = _NAME.search(read) is not None
    if not has_number and not has_name and len(read.split(None, _FILLER_WORDS_MAX)) <= _FILLER_WORDS_MAX:
        return _LOWEST + 1
    score = NEUTRAL_IMPORTANCE + has_number + has_name + points
    if read.rstrip().endswith("?"):
        score -= 2
    if role != "user":
        score -= 2
    return score if score < _HIGHEST else _HIGHEST


def _ascii_signs(text: str) -> tuple[bool, int]:
    """Return whether an ASCII text has a digit, and the points of its signs."""
    # The spaces are the ends of the first and the last word. A search in bytes releases Python's lock, and then waits
    # for other threads with each message; a search in a bytearray does not.
    matches = _FINDER.find_matches_as_indexes(bytearray(f" {text} ", "ascii").translate(_LOWER_WORDS), overlapping=True)
    if not matches:
        return False, 0
    if len(matches) == 1 and matches[0][0] <= len(_WORDS):
        # Three of four messages with a match have a single one.
        pattern = matches[0][0]
        return pattern == 0, _SIGNS[_PLACES[pattern]].points if pattern else 0
    has_number = False
    certain: set[int] = set()
    possible: set[int] = set()
    for pattern, _, _ in matches:
        if pattern == 0:
            has_number = True
        elif pattern <= len(_WORDS):
            certain.add(_PLACES[pattern])
        else:
            possible.add(_PLACES[pattern])
    return has_number, _points(text, certain, possible)


def _signs(text: str) -> tuple[bool, int]:
    """Return whether a text has a digit, and the points of its signs."""
    lowered = text.lower()
    words = set(_WORD.findall(lowered))
    certain = {_WORDS[word] for word in _WORDS.keys() & words}
    possible = {_OPENERS[word] for word in _OPENERS.keys() & words}
    possible.update(place for stem, place in _STEMS.items() if stem in lowered)
    return _NUMBER.search(text) is not None, _points(text, certain, possible)


def _points(text: str, certain: set[int], possible: set[int]) -> int:
    """Return the points of the signs at the places `certain`, and of those of `possible` whose pattern matches."""
    for place in possible - certain:
        pattern = _SIGNS[place].pattern
        # Patterns that ignore case take four times as long.
        if pattern is not None and pattern.search(text.lower()) is not None:
            certain.add(place)
    return sum([_SIGNS[place].points for place in certain]) if certain else 0
