"""Grounding: checks what a language model writes against the lines that it was given.

A model invents: a name, a number, a date that no line has. Words may be other forms of those of a line, and a spelling
mistake may be set right; names and numbers must be the same, and a date must be one that a line speaks of.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import cached_property, lru_cache
from typing import NamedTuple

from recollect.events.late_pattern import late_pattern
from recollect.projections.text.date_reading import DateCandidate, ReadDate, read_dates
from recollect.projections.text.names import NOT_NAMES
from recollect.projections.text.segments import is_unsegmented_script, ngrams
from recollect.projections.text.sentences import opens_sentence
from recollect.projections.text.stems import stem
from recollect.projections.text.words import STOP_WORDS, WORD, distinct_words

#: Share of the words of a phrase that its source must have.
SHARE_MIN = 0.6
#: Share of the words of a sentence of a summary, which joins words of several lines by its own.
SENTENCE_SHARE_MIN = 0.3
#: Letters of the beginning that two forms of a word share: `practised`, `practices`.
_PREFIX_CHARS = 5
#: Letters of a word in which one wrong letter is a spelling mistake; shorter words are other words.
_SPELLED_CHARS_MIN = 5
#: A resolved date may differ by a day at both ends, because the model does not know the time zone.
_TOLERANCE = timedelta(days=1)
_WEEK, _YEAR = timedelta(days=7), timedelta(days=365)
_DIGITS = late_pattern(r"\d+")
#: Endings of first words of sentences that are not names: `Decided to …`, `Moving to …`.
_VERBAL = late_pattern(r"(?:ed|ing|ly)$")
_NUMBER_WORDS = {
    word: str(value)
    for value, word in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())
}
#: Words of a time expression that the date reader does not resolve, such as `three Fridays from now`.
_TIME = late_pattern(
    r"\b(?:\w{2,8}day|week\w{0,4}|weekend|month|year|ago|from now|tomorrow|yesterday|morgen|gestern|heute|woche|monat|"
    r"jahr|mañana|ayer|hoy|semana|mes|año|demain|hier|semaine|mois|ann?ée|amanhã|ontem|domani|ieri)s?\b|[年月日週周天]",
    re.IGNORECASE,
)


class SourceLine(NamedTuple):
    """A line that a model was given."""

    speaker: str
    text: str
    sent_at: datetime


class SourceEvidence:
    """The words, numbers and dates of source lines.

    Parameters:
        lines: the lines, oldest first.
    """

    def __init__(self, lines: Sequence[SourceLine]) -> None:
        self.lines = lines

    @cached_property
    def _words(self) -> frozenset[str]:
        """The words, function words and speakers included, case folded."""
        return frozenset(word for line in self.lines for word in WORD.findall(f"{line.speaker} {line.text}".casefold()))

    @cached_property
    def _terms(self) -> frozenset[str]:
        return frozenset(_terms(" ".join(f"{line.speaker} {line.text}" for line in self.lines)))

    @cached_property
    def _prefixes(self) -> frozenset[str]:
        return frozenset(term[:_PREFIX_CHARS] for term in self._terms if len(term) >= _PREFIX_CHARS)

    @cached_property
    def _terms_by_shape(self) -> dict[tuple[str, int], list[str]]:
        """The terms by first letter and length, so that a long conversation is not searched for each word."""
        terms: dict[tuple[str, int], list[str]] = {}
        for term in self._terms:
            terms.setdefault((term[:1], len(term)), []).append(term)
        return terms

    @cached_property
    def _numbers(self) -> frozenset[str]:
        numbers = {_number(digits) for line in self.lines for digits in _DIGITS.findall(f"{line.speaker} {line.text}")}
        return frozenset(numbers | {value for word, value in _NUMBER_WORDS.items() if word in self._words})

    @cached_property
    def _dates(self) -> tuple[DateCandidate, ...]:
        """The ranges that the dates of the lines may mean: a model may resolve `on Friday` either way."""
        return tuple(candidate for date in self._read_dates for candidate in date.candidates)

    @cached_property
    def _read_dates(self) -> tuple[ReadDate, ...]:
        return tuple(date for line in self.lines for date in read_dates(line.text, line.sent_at))

    def has_words(self, phrase: str, share: float = SHARE_MIN) -> bool:
        """Return whether at least `share` of the words of `phrase` that name something are in the lines.

        Numbers and dates are not counted: `has_numbers` checks each of them.
        """
        terms = {term for term in _terms(without_dates(phrase, self.dates_of(phrase))) if not term.isdigit()}
        if not terms:
            return _DIGITS.search(phrase) is not None or bool(self.dates_of(phrase))
        present = sum(term in self._terms or self._has_form_of(term) for term in terms)
        return present >= share * len(terms)

    def has_numbers(self, phrase: str) -> bool:
        """Return whether the lines have every number of `phrase`, and speak of each of its dates."""
        dates = self.dates_of(phrase)
        if not all(self._has_date(date) for date in dates):
            return False
        rest = without_dates(phrase, dates)
        numbers = [_number(digits) for digits in _DIGITS.findall(rest)]
        # "One" is mostly a pronoun.
        numbers += [
            _NUMBER_WORDS[word] for word in WORD.findall(rest.casefold()) if word in _NUMBER_WORDS.keys() - {"one"}
        ]
        return self._numbers.issuperset(numbers)

    @cached_property
    def text(self) -> str:
        """The lines and their speakers as one text."""
        return "\n".join(f"{line.speaker} {line.text}" for line in self.lines)

    def years(self) -> set[str]:
        """Return the years of the dates of the lines, which a sentence may name alone: `two years ago (2024)`."""
        return {str(candidate.start.year) for candidate in self._dates}

    def dates_of(self, phrase: str) -> Sequence[ReadDate]:
        """Return the dates of a phrase, counted from the last line."""
        return _dates(phrase, self.lines[-1].sent_at) if self.lines else ()

    def has_day(self, date: ReadDate) -> bool:
        """Return whether the lines have a date, or one of the same days a year or a reading of `next Friday` away."""
        words, (start, end, _) = date.words.casefold(), date.candidates[0]
        if any(words in line.text.casefold() for line in self.lines):
            return True
        if not self._dates:
            return any(_TIME.search(line.text) or start <= line.sent_at < end for line in self.lines)
        return any(_covers(start, end, other) for other in self._dates)

    def has_name_or_part(self, name: str) -> bool:
        """Return whether the lines have a name, another form of it, or a part of a German compound."""
        name = name.casefold()
        if self._has_name_word(name) or stem(name) in self._terms or name.removesuffix("s") in self._words:
            return True
        return any(len(word) > _PREFIX_CHARS and word in name for word in self._words)

    def has_names(self, phrase: str) -> bool:
        """Return whether the lines have every capitalised word of `phrase` that may be a name."""
        names = [word.casefold() for _, word in name_words(without_dates(phrase, self.dates_of(phrase)))]
        return all(self._has_name_word(name) or stem(name) in self._terms for name in names)

    def _has_date(self, date: ReadDate) -> bool:
        """Return whether the lines have a date in its words, or one that its range covers."""
        words, (start, end, _) = date.words.casefold(), date.candidates[0]
        if any(words in line.text.casefold() or start <= line.sent_at < end for line in self.lines):
            return True
        if self._dates:
            return any(start - _TOLERANCE <= other.start and other.end <= end + _TOLERANCE for other in self._dates)
        return any(_TIME.search(line.text) for line in self.lines)

    def grounds(self, phrase: str, share: float = SHARE_MIN) -> bool:
        """Return whether the lines have the words, the names, the numbers and the dates of a phrase."""
        return self.has_words(phrase, share) and self.has_numbers(phrase) and self.has_names(phrase)

    def grounded_sentences(self, sentences: Iterable[str]) -> list[str]:
        """Return the sentences that the lines ground: their names, numbers, dates and some of their words."""
        return [sentence for sentence in sentences if self.grounds(sentence, SENTENCE_SHARE_MIN)]

    def _has_form_of(self, term: str) -> bool:
        """Return whether the lines have another form of a word, or the word with one wrong letter."""
        if len(term) < _SPELLED_CHARS_MIN:
            return False
        if term[:_PREFIX_CHARS] in self._prefixes:
            return True
        lengths = range(len(term) - 1, len(term) + 2)
        others = (other for length in lengths for other in self._terms_by_shape.get((term[0], length), ()))
        return any(_within_one_edit(term, other) for other in others)

    def _has_name_word(self, word: str) -> bool:
        """Return whether the lines have a word of a name, or it with two letters swapped by hurried fingers."""
        if word in self._words:
            return True
        return len(word) >= _SPELLED_CHARS_MIN and any(
            len(other) == len(word) and sorted(other) == sorted(word) and _within_one_edit(word, other)
            for other in self._words
        )


def _covers(start: datetime, end: datetime, other: DateCandidate) -> bool:
    """Return whether a date of a sentence is one of a line: the same, with its month or year, or a day of its week.

    A day and a month without a year may be those of the year before or after.
    """
    if other.end - other.start <= _WEEK and other.start <= start and end <= other.end:
        return True
    return any(start <= other.start + shift and other.end + shift <= end for shift in (timedelta(), -_YEAR, _YEAR))


# The words, the numbers and the names of one phrase are checked one after the other.
@lru_cache(maxsize=64)
def _dates(phrase: str, sent_at: datetime) -> tuple[ReadDate, ...]:
    return tuple(read_dates(phrase, sent_at))


def _within_one_edit(first: str, second: str) -> bool:
    """Return whether one letter added, removed, replaced or swapped with the next makes the words equal."""
    if abs(len(first) - len(second)) > 1:
        return False
    index = next((place for place, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]), None)
    if index is None:
        return True
    rest, other = first[index:], second[index:]
    swapped = rest[1::-1] == other[:2] and rest[2:] == other[2:]
    return rest[1:] == other[1:] or rest == other[1:] or rest[1:] == other or swapped


def _terms(text: str) -> set[str]:
    """Return the stems of the words of `text` that name something; pairs of characters in scripts without spaces."""
    return set(_each_term(distinct_words(text)))


def _each_term(words: Iterable[str]) -> Iterator[str]:
    for word in words:
        if is_unsegmented_script(word):
            yield from ngrams(word)
        else:
            stemmed = stem(word)
            # "flies" and "flying".
            yield stemmed[:-1] + "y" if stemmed.endswith("i") else stemmed


def without_dates(phrase: str, dates: Iterable[ReadDate]) -> str:
    """Return a phrase without its dates."""
    for date in dates:
        phrase = phrase.replace(date.words, " ")
    return phrase


def name_words(text: str) -> Iterator[tuple[int, str]]:
    """Yield the places and the capitalised words of `text` that may be names."""
    for match in WORD.finditer(text):
        word = match.group()
        if len(word) < 2 or not word[0].isupper() or word.casefold() in NOT_NAMES or word.casefold() in STOP_WORDS:
            continue
        if not (opens_sentence(text, match.start()) and _VERBAL.search(word)):
            yield match.start(), word


def _number(digits: str) -> str:
    """Return digits without leading zeros: `05` of a date is `5`."""
    return digits.lstrip("0") or "0"
