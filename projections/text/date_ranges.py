"""Date ranges: finds the dates in a text as time ranges: `last Friday` is one day, `in May` is a month.

Dates count from the time of the message. A date without a year, such as `in September`, is the next one in a sentence
about the future and the last one in a sentence about the past (`tense`). Without a verb, what is announced is about the future.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from recollect.projections.text import date_meanings as meanings
from recollect.projections.text.calendar_ranges import Range, Tense
from recollect.projections.text.date_meanings import Meaning, Reading
from recollect.projections.text.date_words import (
    AGO,
    COUNT,
    DAY,
    FIRST_MONTH,
    FOREIGN_MONTH,
    FOREIGN_WEEKDAY,
    GERMAN_SIDE_WHAT,
    HOLIDAY,
    MONTH,
    PART,
    RUSSIAN_SIDE_WHAT,
    SEASON,
    SHORT_WEEKDAY,
    SIDE,
    UNIT,
    WEEKDAY,
    WHAT,
    YEAR,
)
from recollect.projections.text.folding import fold
from recollect.projections.text.foreign_dates import FOREIGN_DATES, foreign_tense
from recollect.projections.text.sentence_language import Language, language_of
from recollect.projections.text.tense import is_announced, tense_around

#: Every date has one of these words or figures; the patterns of dates are tried around them only, since there are many.
_HINT = re.compile(
    r"\b(?:(?:19|20)\d\d|\d{1,2}[./]\d|\d\d?(?:st|nd|rd|th)|\d\d['’]?s|q[1-4]|ago|"
    r"yesterday|tomorrow|today|tonight|night|morning|afternoon|evening|"
    r"minute|hour|day|week|fortnight|month|quarter|year|decade|"
    r"(?:vor)?gestern|(?:über)?morgen|heute|woche|monat|jahr|"
    r"(?:поза)?вчера|(?:после)?завтра|сегодня|недел|месяц|год|выходн|"
    # A pattern may have one group of a name.
    + re.sub(r"\?P<\w+>", "?:", "|".join((rf"{MONTH}(?!\w)", FOREIGN_MONTH, WEEKDAY, FOREIGN_WEEKDAY, SEASON, HOLIDAY)))
    + ")"
)
#: Characters before and after a hint that belong to its date, or to what follows and makes it none, at most.
_AROUND_CHARS = 48
#: What follows lasts, so it began in the past.
_SINCE = ("since", "seit", "desde", "depuis")
#: Characters before a date that have such a word.
_WORD_CHARS = 8
#: A longer range, such as `the last 999 years`, is not a date.
_LONGEST = timedelta(days=36_525)


class DateRange(NamedTuple):
    """A date in a text, with the time range that it names."""

    #: The words of the date.
    text: str
    start: datetime
    #: Exclusive.
    end: datetime
    #: The position of its first character in the text.
    position: int = 0


def find_dates(
    text: str, sent_at: datetime, default: Tense = None, *, language: Language | None = None
) -> Iterator[DateRange]:
    """Return an iterator over the dates in `text`, in order and without overlaps.

    Parameters:
        sent_at: the time of the message, aware; relative dates count from it.
        default: the tense of a sentence without a cue. None: a date without a year is the nearest one.
        language: the language of the text, when it is known; None: it is found by its words.
    """
    # Patterns that ignore case take four times as long. A text that gets longer in lower case is left as it is.
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = text
    # One byte for each character, 1 inside a date: an overlap is detected without a loop over the other dates.
    taken = bytearray(len(text))
    dates: list[DateRange] = []

    language = language or language_of(text)

    def read(compared: str, patterns: Iterable[tuple[re.Pattern[str], Meaning]], start: int, end: int) -> None:
        for pattern, meaning in patterns:
            for match in pattern.finditer(compared, start, end):
                if taken.find(1, *match.span()) >= 0:
                    continue
                span = _meant_range(match, meaning, sent_at, default, language)
                if span is not None:
                    taken[match.start() : match.end()] = b"\1" * len(match.group())
                    dates.append(DateRange(text[match.start() : match.end()], *span, match.start()))

    if language is not None:
        read(fold(text), FOREIGN_DATES[language], 0, len(text))
    for start, end in _stretches_with_hints(lowered):
        read(lowered, _PATTERNS, start, end)
    return iter(sorted(dates, key=lambda date: date.position))


def _stretches_with_hints(text: str) -> Iterator[tuple[int, int]]:
    """Yield the stretches of `text` around its hints, from a start to an end between two words, without overlaps."""
    start = end = 0
    for hint in _HINT.finditer(text):
        if hint.start() - _AROUND_CHARS > end:
            if end:
                yield start, end
            start = hint.start() - _AROUND_CHARS
        if hint.end() + _AROUND_CHARS > end:
            space = text.find(" ", hint.end() + _AROUND_CHARS)
            end = space if space >= 0 else len(text)
    if end:
        yield start, end


def _meant_range(
    match: re.Match[str], meaning: Meaning, sent_at: datetime, default: Tense, language: Language | None
) -> Range | None:
    """Return the time range that a match means; None when it is not a date."""

    def tense() -> Tense:
        # What lasts since a date began at the last one: "it is broken since Monday" is no announcement.
        if match.group().startswith(_SINCE) or _word_before(match).endswith(_SINCE):
            return "past"
        if language is None:
            announced: Tense = "announced" if default is None and is_announced(match.string, *match.span()) else default
            return tense_around(match.string, *match.span()) or announced
        return foreign_tense(language, fold(match.string), *match.span()) or default

    reading = Reading(sent_at, tense)
    try:
        span = meaning(match, reading)
    except (ValueError, OverflowError):
        # Such as 31 April or the year 10,000.
        return None
    if span is None or not timedelta() < span[1] - span[0] <= _LONGEST:
        return None
    return span


def _word_before(match: re.Match[str]) -> str:
    """Return the last characters before a match, without spaces at their end."""
    return match.string[max(0, match.start() - _WORD_CHARS) : match.start()].rstrip()


_OF_YEAR = rf"(?:,? (?:of )?{YEAR})?"
_DAY_MONTH = rf"{SHORT_WEEKDAY}(?:the )?{DAY}(?: of)? {MONTH}"
_MONTH_DAY = rf"{SHORT_WEEKDAY}{MONTH} (?:the )?{DAY}"
_FIRST_DAY = r"(?P<first>[0-3]?\d)(?:st|nd|rd|th)?"
_TO = r" ?(?:-|–|to|until|till|through|and) ?"
_TIME_OF_DAY = "(?: (?:morning|afternoon|evening|night))?"
_BEFORE_DATE = "in|since|until|till|by|during|before|after|from|around"
#: Words before a weekday that make it no single day.
_NOT_EACH = "(?<!every )(?<!each )(?<!other )(?<!black )(?<!good )"
#: What may follow `the 14th`; another word, as in `the 14th floor`, makes it no date.
_AFTER_ORDINAL = (
    r"(?=\s*(?:$|[,.;:!?)\n\"]|(?:at|and|or|i|we|my|our|with|for|from|in|was|is|did|do|she|he|they|you|it|to|then)\b))"
)
#: Patterns with their meanings. The first pattern that matches a part of the text wins, so longer patterns come first.
_PATTERNS: tuple[tuple[re.Pattern[str], Meaning], ...] = tuple(
    (re.compile(rf"\b(?:{pattern})(?!\w)"), meaning)
    for pattern, meaning in (
        (r"(?:the )?day before yesterday|vorgestern|позавчера", meanings.simple(-2)),
        (r"(?:the )?day after tomorrow|übermorgen|послезавтра", meanings.simple(2)),
        (rf"yesterday{_TIME_OF_DAY}|last night|gestern|вчера", meanings.simple(-1)),
        (rf"tomorrow{_TIME_OF_DAY}|завтра", meanings.simple(1)),
        (r"(?<!guten )(?<!am )(?<!jeden )(?<!heute )(?<!gestern )morgen", meanings.simple(1)),
        (r"(?:earlier |later )?today|tonight|this (?:morning|afternoon|evening)|heute|сегодня", meanings.simple(0)),
        (rf"{YEAR}-(?P<number>[01]\d)-(?P<day>[0-3]\d)", meanings.numeric_date),
        (rf"(?P<day>[0-3]?\d)\.(?P<number>[01]?\d)\.{YEAR}", meanings.numeric_date),
        (rf"(?P<first>[0-3]?\d)/(?P<second>[0-3]?\d)/{YEAR}", meanings.slashed_date),
        (rf"{_DAY_MONTH},? {AGO}", meanings.day_years_ago),
        (rf"{_MONTH_DAY},? {AGO}", meanings.day_years_ago),
        (rf"(?:the )?{_FIRST_DAY}{_TO}(?:the )?{DAY}(?: of)? {MONTH}(?:,? {YEAR})?", meanings.days_and_month),
        (rf"{MONTH} (?:the )?{_FIRST_DAY}{_TO}(?:the )?{DAY}(?:,? {YEAR})?", meanings.days_and_month),
        (rf"(?:the )?(?P<what>week|weekend) of {_DAY_MONTH}(?:,? {YEAR})?", meanings.week_with_date),
        (rf"(?:the )?(?P<what>week|weekend) of {_MONTH_DAY}(?:,? {YEAR})?", meanings.week_with_date),
        (rf"{_DAY_MONTH}(?:,? {YEAR})?", meanings.day_and_month),
        (rf"{_MONTH_DAY}(?:,? {YEAR})?", meanings.day_and_month),
        (rf"(?P<day>[0-3]?\d)\.? {FOREIGN_MONTH}(?: {YEAR})?", meanings.day_and_month),
        (rf"{AGO},? (?:back )?in {MONTH}", meanings.month_years_ago),
        (rf"(?:(?:in|during) )?{MONTH},? (?:of )?{AGO}", meanings.month_years_ago),
        (rf"{AGO},? (?:back )?in (?:the )?{SEASON}", meanings.season_years_ago),
        (rf"(?:(?:in|during) )?(?:the )?{SEASON},? (?:of )?{AGO}", meanings.season_years_ago),
        (rf"{HOLIDAY},? {AGO}", meanings.holiday),
        (rf"{HOLIDAY},? (?:of |in )?{YEAR}", meanings.holiday),
        (rf"{SIDE} {HOLIDAY}", meanings.holiday),
        (rf"(?:at|over|for|on|{_BEFORE_DATE}) {HOLIDAY}", meanings.holiday),
        (rf"(?:in |during )?(?:the )?{PART} week (?:of|in) {MONTH}{_OF_YEAR}", meanings.week_of_month),
        (
            rf"(?:at |in |by )?(?:the )?(?P<part>beginning|start|middle|end) of {MONTH}{_OF_YEAR}",
            meanings.part_of_month,
        ),
        (rf"(?:in )?(?P<part>early|late|mid)[ -]{MONTH}{_OF_YEAR}", meanings.part_of_month),
        (rf"(?:at |in |by )?(?:the )?(?P<part>beginning|start|middle|end) of {YEAR}", meanings.part_of_year),
        (rf"(?:in )?(?P<part>early|late|mid)[ -]{YEAR}", meanings.part_of_year),
        (
            r"(?:at |in |by )?(?:the )?(?P<part>beginning|start|middle|end) of "
            r"(?:the|(?P<side>last|this|next)) (?P<what>week|month|year)",
            meanings.part_of_unit,
        ),
        (r"(?P<part>earlier|later) (?P<side>this) (?P<what>week|month|year)", meanings.part_of_unit),
        (rf"(?:between|from|in|during) {FIRST_MONTH}{_TO}{MONTH}{_OF_YEAR}", meanings.months),
        (rf"(?:(?:in|over|during|within|for) )?the (?P<side>last|past|next|coming) {COUNT} {UNIT}", meanings.last_few),
        (r"(?:in|over|during|within) the (?P<side>last) (?P<what>week|month|quarter|year|decade)", meanings.rolling),
        (r"half a year ago|a year (?P<more>and a half) ago", meanings.half_years_ago),
        (rf"{COUNT} {WEEKDAY}s? ago", meanings.weekdays_ago),
        (rf"{COUNT} {UNIT} ago", meanings.ago),
        (rf"(?:in|within) {COUNT} (?P<unit>day|week|fortnight|month|year)s?(?! of)", meanings.ahead),
        (rf"{COUNT} {UNIT} from now", meanings.ahead),
        (rf"(?:on )?{WEEKDAY}{_TIME_OF_DAY} (?:of )?{SIDE} week", meanings.weekday_of_week),
        (rf"{SIDE} week,? (?:on )?{WEEKDAY}", meanings.weekday_of_week),
        (rf"{SIDE} {WEEKDAY}{_TIME_OF_DAY}", meanings.side_weekday),
        (rf"(?:the )?{WHAT} before (?P<side>last)(?P<twice>)", meanings.side_unit),
        (rf"(?:the )?{WHAT} after (?P<side>next)(?P<twice>)", meanings.side_unit),
        (rf"{SIDE} {WHAT}", meanings.side_unit),
        (rf"{GERMAN_SIDE_WHAT}", meanings.side_unit),
        (rf"(?:на |в )?{RUSSIAN_SIDE_WHAT}", meanings.side_unit),
        (rf"{SIDE} {MONTH}", meanings.side_month),
        (rf"{SIDE} {SEASON}", meanings.side_season),
        (rf"(?:(?:{_BEFORE_DATE}) )?(?:the )?{SEASON} (?:of |in )?{YEAR}", meanings.season_of_year),
        (rf"(?:over|for|{_BEFORE_DATE}) (?:the )?{SEASON}(?P<year>)", meanings.season_of_year),
        (rf"(?:in )?(?:the )?{PART} quarter(?: of {YEAR})?", meanings.quarter),
        (rf"q(?P<part>[1-4])(?:,? (?:of )?{YEAR})?", meanings.quarter),
        (rf"(?:{_BEFORE_DATE})[ -]{MONTH}{_OF_YEAR}", meanings.month_and_year),
        (rf"{MONTH},? (?:of )?{YEAR}", meanings.month_and_year),
        (rf"(?:im|seit|bis|в|с|до) {FOREIGN_MONTH}(?: {YEAR})?", meanings.month_and_year),
        (
            rf"(?:the )?(?P<what>week|weekend) of the (?P<day>[0-3]?\d)(?:st|nd|rd|th){_AFTER_ORDINAL}",
            meanings.day_of_month,
        ),
        (rf"{SHORT_WEEKDAY}the (?P<day>[0-3]?\d)(?:st|nd|rd|th){_AFTER_ORDINAL}", meanings.day_of_month),
        (r"(?:at|on|over) the weekend|am wochenende|в выходные", meanings.weekend),
        (rf"{_NOT_EACH}(?:on )?{WEEKDAY}{_TIME_OF_DAY}", meanings.weekday),
        (rf"(?:am|bis|seit|во?|с) {FOREIGN_WEEKDAY}", meanings.weekday),
        (r"(?:in |during |from )?the (?P<decade>(?:19|20)\d0|[5-9]0)['’]?s", meanings.decade),
        (rf"(?:from|between) (?P<first>(?:19|20)\d\d){_TO}{YEAR}", meanings.years),
        (rf"(?:{_BEFORE_DATE}|back in) {YEAR}", meanings.plain_year),
    )
)
