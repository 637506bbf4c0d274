"""Answer scores: token F1 of an answer, and whether its dates and numbers are those of the expected one."""

from __future__ import annotations

import re
from calendar import month_name
from collections import Counter
from datetime import UTC, date, datetime, timedelta

from recollect.projections.text.date_reading import read_dates
from recollect.projections.text.words import folded_words

_YEAR = re.compile(r"\d{4}")
_MONTH = re.compile(r"(?<![\d-])(\d{4})-(0[1-9]|1[0-2])(?![\d-])")
_NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
#: The words before the date in `two weekends before 9 June 2023`, in lower case.
_BEFORE = re.compile(rf"(two )?\b(week|weekend|{'|'.join(_WEEKDAYS)})s? (before|of) $")
#: Only dates with their year are read, which mean the same whenever they were written.
_WRITTEN = datetime(2000, 1, 1, tzinfo=UTC)


def token_f1(answer: str, expected: str) -> float:
    """Return the harmonic mean of the shares of words that the two texts have in common, 0 to 1.

    Articles and punctuation do not count; dates are the same in any form, and so are numbers in words and digits.
    """
    answer_words, expected_words = Counter(_words(_plain(answer))), Counter(_words(_plain(expected)))
    common = (answer_words & expected_words).total()
    return 2 * common / (answer_words.total() + expected_words.total()) if common else 0.0


def is_exact(answer: str, expected: str) -> bool | None:
    """Return whether `answer` has the dates of `expected`, or its numbers; None when `expected` has neither.

    A day within an expected week, month or year is right.
    """
    answer, expected = _plain(answer), _plain(expected)
    wanted, given = _spans(expected), _spans(answer)
    if wanted:
        return all(any(first <= start and end <= last for start, end in given) for first, last in wanted)
    numbers = set(filter(str.isdecimal, _words(expected)))
    return numbers <= set(_words(answer)) if numbers else None


def _plain(text: str) -> str:
    """Return a text with months such as `2023-09`, as contexts show them, in words."""
    return _MONTH.sub(lambda match: f"{month_name[int(match[2])]} {match[1]}", text)


def _words(text: str) -> list[str]:
    """Return the words of a text without articles; a date as the numbers of its year, month and day."""
    for position, words, first, last in reversed(_dates(text)):
        day = f"{first:%Y %m %d}" if first == last else f"{first:%Y %m}"
        text = f"{text[:position]} {day} {text[position + len(words) :]}"
    numbered = [str(_NUMBERS.index(word)) if word in _NUMBERS else word for word in folded_words(text)]
    return [word.lstrip("0") or "0" for word in numbered if word not in ("a", "an", "the")]


def _dates(text: str) -> list[tuple[int, str, date, date]]:
    """Return the position, the words, the first and the last day of each day, week and month with its year."""
    read = [(date.position, date.words, date.candidates[0]) for date in read_dates(text, _WRITTEN)]
    return [
        (position, words, span.start.date(), (span.end - timedelta(1)).date())
        for position, words, span in read
        if _YEAR.search(words) and span.end - span.start <= timedelta(31)
    ]


def _spans(text: str) -> list[tuple[date, date]]:
    """Return the first and the last day of each date with a year, or of the week or weekday before it."""
    return [_with_relation(text[:position], first, last) for position, _, first, last in _dates(text)]


def _with_relation(before: str, first: date, last: date) -> tuple[date, date]:
    """Return the days that `the week before` and a date mean; those of the date without such words."""
    match = _BEFORE.search(before.lower())
    if match is None:
        return first, last
    twice, unit, relation = match.groups()
    if relation == "of":
        monday = first - timedelta(first.weekday())
        return monday, monday + timedelta(6)
    if unit in _WEEKDAYS:
        day = first - timedelta((first.weekday() - _WEEKDAYS.index(unit) - 1) % 7 + 1)
        return day, day
    return first - timedelta(14 if twice else 7), first - timedelta(1)
