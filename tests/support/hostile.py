"""Hostile texts, and the growth of a function's processor time with the length of such a text.

A pattern or a loop whose time grows with the square of its input lets one message stop a whole process: Python holds
its lock while a pattern is matched.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, NamedTuple

#: Runs that have made patterns of this repository slow, and their likes: what is repeated.
# fmt: off
_UNITS = (
    " ", "\n", "\t", "\r\n", " \n", "\u3000", "!", "?", "！", ".", ".\n", "...x ", ",", ", ", "-", "- ", "_", "*", ">",
    "a", "A", "1", '"', "'", "\"'", "(", ")", "[", "<", "“", "„", "「", "’s ", "``", "/", "@", "a@", ".a", "a.", "&",
    "é", "\u0301", "ab\u0301", "A-", "A'", "a-", "a ", "A ", "Aa ", "Xa of ", "ERR-", "Ab-1 ", "I ", "my ", "and ",
    "\n- a", "1. a\n", "; ", '"a" ', "<recalled-memory", "A? ", "user: how ", "我住在北京", "ключ ",
)
#: Runs of words, for the functions that read text. What repeats words in a pattern is found in the pattern.
_PHRASES = (
    "i ", "no ", "no, ", "to ", "not ", "I and ", "if ", "why ", "how ", "today ", "today? ",
    "last Friday, two weeks ago ", "on 3 May 2021, ", "in ", "the last ", "I like tea and ", "I like tea, ",
    "I live in Rome. ", "we need to go ", "my sister ", "my sister Anna, ", "call me Bob and ", "no, I meant ",
    "it is not a ", "x is not y, but ", "Robert, we call him ", "n't ", "i've ", "whenever I ", "Always do x. ",
    "how to abc\n", "how to abcd\n-\n", "\nto abc, first ", "first ", " then ", "\"I like \"tea ",
    "<recalled-memory ", "<recalled-memory>", "</recalled-memory>", "what is it ", "я живу в Риме ",
    "der Hausschlüssel ", "donaudampfschiff", "東京はどこですか", "무엇을 ",
)
# fmt: on
_BEFORE = ("hello", "how to abc", "My sister Anna", "I like", "no, ", '"')
_RUNS = (" ", "\n", "!", ".", "-", ",")
#: What random hostile texts are made of, besides the pieces of a pattern.
PIECES = [*_UNITS[:20], "a", "A", "1", "a ", "A ", "\0"]

#: What Python's `re` reads patterns with; it has no public name.
_PARSER: Any = import_module("re._parser")

#: Characters of the shortest text that is measured, and the processor time of it and of one four times as long from
#: which on growth is measured. A step of a pattern takes 0.3 ns at least, so that what is quadratic takes 0.16 ms and
#: 2.5 ms.
_CHARS = 1_024
_SECONDS_MIN = 0.0001
_LONGER_SECONDS_MIN = 0.00125
#: Four times the text takes four times the time, or sixteen times where it grows with the square: from this on, growth
#: is measured with care.
_LINEAR_MAX = 6.0
#: Twice the text takes twice the time; half as much again is left to caches and the noise of a shared machine.
GROWTH_MAX = 3.0
#: Measurements of a growth that is over it, each the least of one more repetition.
_ATTEMPTS = 4


class Hostile(NamedTuple):
    """A text of any length: a beginning, a repeated part and an end."""

    before: str
    unit: str
    after: str

    def text(self, chars: int) -> str:
        return self.before + self.unit * (chars // len(self.unit)) + self.after


def hostile_words() -> Iterator[Hostile]:
    """Yield the runs of words, besides those of `hostile_texts`."""
    yield from hostile_texts()
    for phrase in _PHRASES:
        yield Hostile("", phrase, "x")


def hostile_texts() -> Iterator[Hostile]:
    """Yield the runs alone and between other words."""
    for unit in _UNITS:
        yield Hostile("", unit, "x")
        if len(unit) == 1:
            yield Hostile("", unit, "")
    for before in _BEFORE:
        for unit in _RUNS:
            yield Hostile(before, unit, "x")


def hostile_to(pattern: re.Pattern[str]) -> Iterator[Hostile]:
    """Yield texts made of what `pattern` itself repeats: the beginning of a match, a run, and an end that fails."""
    found: set[tuple[str, str]] = set()
    sample = _walk(_PARSER.parse(pattern.pattern, pattern.flags), "", found)
    found.add(("", sample))
    for before, unit in found:
        if unit:
            yield Hostile(before[-80:], unit, "\0")
            yield Hostile("", (before + unit)[-40:], "\0")


def _walk(nodes: Any, before: str, found: set[tuple[str, str]]) -> str:
    """Return one text that `nodes` match, and add what they repeat, with a text that leads to it, to `found`."""
    text = ""
    for name, value in nodes:
        match str(name):
            case "LITERAL":
                text += chr(value)
            case "NOT_LITERAL":
                text += "~" if value != ord("~") else "a"
            case "ANY":
                text += "a"
            case "IN":
                text += _member(value)
            case "BRANCH":
                options = [_walk(option, before + text, found) for option in value[1]]
                text += max(options[:3], key=len)
            case "SUBPATTERN":
                text += _walk(value[3], before + text, found)
            case "ATOMIC_GROUP":
                text += _walk(value, before + text, found)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                low, high, inner = value
                one = _walk(inner, before + text, found)
                if high > 4:
                    found.add((before + text, one))
                text += one * max(1, low)
            case _:
                # Anchors and assertions match no characters; a group named again is seldom and short.
                pass
    return text


def _member(options: Any) -> str:
    for name, value in options:
        match str(name):
            case "LITERAL":
                return chr(value)
            case "RANGE":
                return chr(value[0])
            case "CATEGORY":
                return {"CATEGORY_SPACE": " ", "CATEGORY_DIGIT": "1"}.get(str(value), "a")
            case _:
                continue
    return "a"


def growth(function: Callable[[str], object], hostile: Hostile, *, attempts: int = _ATTEMPTS) -> float:
    """Return how many times as long twice the text takes; 1 when the text takes too little to be measured.

    The processor time of this thread counts; a figure over the limit is measured again, so that a busy machine fails
    nothing.
    """
    chars = _CHARS
    once = _seconds(function, hostile.text(chars))
    if once < _SECONDS_MIN:
        return 1.0
    if once < _LONGER_SECONDS_MIN:
        chars *= 4
        longer = _seconds(function, hostile.text(chars))
        if longer < _LONGER_SECONDS_MIN or longer <= _LINEAR_MAX * once:
            return 1.0
        once = longer
    least = _seconds(function, hostile.text(2 * chars)) / max(once, 1e-9)
    for attempt in range(2, attempts + 1):
        if least <= GROWTH_MAX:
            break
        once = min(_seconds(function, hostile.text(chars)) for _ in range(attempt))
        twice = min(_seconds(function, hostile.text(2 * chars)) for _ in range(attempt))
        least = min(least, twice / max(once, 1e-9))
    return least


def _seconds(function: Callable[[str], object], text: str) -> float:
    start = time.thread_time()
    function(text)
    return time.thread_time() - start
