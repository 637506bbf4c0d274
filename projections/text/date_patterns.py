"""Date patterns: finds the expressions in a text that may be dates, with the ranges that each may mean.

The patterns are compared with folded text: without case and accents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import cache, cached_property
from typing import NamedTuple

from msgspec import Struct

from recollect.events.late_pattern import late_pattern
from recollect.projections.text import date_meanings as meanings
from recollect.projections.text.calendar_ranges import HOLIDAYS, SEASONS, Range
from recollect.projections.text.date_meanings import Expression, Meaning
from recollect.projections.text.date_words import DATE_WORDS, UNSPACED, DateWords, any_of
from recollect.projections.text.folding import fold, folded_pattern
from recollect.projections.text.function_words import GERMAN_STOP_WORDS
from recollect.projections.text.sentence_language import Language, language_of
from recollect.projections.text.unspaced_date_patterns import STROKED, YEAR, Row, unspaced_rows

#: Characters before and after a word of a date that belong to its expression, at most.
_AROUND_CHARS = 48
#: A longer range, such as `the last 999 years`, is not a date.
_LONGEST = timedelta(days=36_525)
_ROMANCE = ("es", "fr", "it", "pt")
#: Words before a day in these languages: `le 12`, `desde el 8`, `no dia 5`.
_ROMANCE_DAY = "(?:el|le|il|dia|al|au|du|del|dal)"
#: Figures of dates: days behind such a word, years, days with their ending, quarters, decades, and numbers with a sign between.
_FIGURES = late_pattern(
    rf"\b(?:{_ROMANCE_DAY} \d\d?\b|(?:19|20)\d\d|\d\d?[./]\d|\d\d?(?:st|nd|rd|th|\.(?!\S))(?!\w)|\d\d['’]?s\b|q[1-4]\b)"
)
_TOKEN = late_pattern(r"[^\W\d_]+")
#: The groups that need a word of their class near: a pattern is not tried where the text has none.
_CLASSES = ("weekday", "month", "unit", "season", "holiday", "offset")
#: A named group of a pattern.
_GROUP = late_pattern(r"\(\?P<(\w+)>")
_HANGUL = late_pattern("[\uac00-\ud7a3]")
_CYRILLIC = late_pattern("[а-яА-Я]")


#: The end of the kinds of short forms, such as `19th` and `mon`.
_ALONE = ".alone"


class Pattern(Struct, frozen=True, dict=True):
    """A pattern of dates."""

    #: What its dates are, such as `weekday`; an input of the reading.
    kind: str
    source: str
    meaning: Meaning
    #: The classes of words that it needs.
    classes: frozenset[str]

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """Return the compiled pattern. All those of English take 30 ms, and a text needs few of them."""
        return re.compile(folded_pattern(self.source))


class DateReading(NamedTuple):
    """An expression in a text with the ranges that it may mean."""

    kind: str
    start: int
    end: int
    expression: Expression
    candidates: tuple[Range, ...]

    @property
    def is_alone(self) -> bool:
        """Return whether no word marks it as a date, as in `dentist 19th`: only an encoder can decide."""
        return self.kind.endswith(_ALONE)


def prepare_patterns() -> None:
    """Compile the patterns of English: else the questions about a time that come first each take up to 14 ms more."""
    _anchor_words()
    for pattern in _patterns("en"):
        _ = pattern.compiled


def possible_dates(text: str, sent_at: datetime, language: Language | None = None) -> list[DateReading]:
    """Return the expressions in `text` that may be dates, in order and without overlaps.

    Parameters:
        sent_at: the time of the message; days are those of its time zone.
        language: the language of the text, when it is known; None: it is found by its words.
    """
    folded = fold(text)
    # One byte for each character, 1 inside an expression: an overlap is detected without a loop over the others.
    taken = bytearray(len(text))
    readings: list[DateReading] = []
    anchors = list(_anchors(folded))
    if not anchors and text.isascii() and language not in UNSPACED:
        # Only scripts without spaces have dates without such a word.
        return []
    languages = _languages(text, folded, anchors, language)
    stretches = [(name, stretch) for name in languages for stretch in _stretches(folded, anchors, name)]
    # A whole date in one language may be part of a date in another: `dia 12` of `dia 12 de novembro`.
    for is_alone in (False, True):
        for name, (start, end, classes) in stretches:
            for row in _patterns(name):
                if row.kind.endswith(_ALONE) == is_alone and row.classes <= classes:
                    _match(row, Expression, (folded, start, end), DATE_WORDS[name], sent_at, taken, readings)
    readings.sort(key=lambda reading: reading.start)
    return readings


def _match(
    row: Pattern,
    make: type[Expression],
    within: tuple[str, int, int],
    words: DateWords,
    sent_at: datetime,
    taken: bytearray,
    readings: list[DateReading],
) -> None:
    """Add the expressions that a pattern matches within a stretch of a text, unless another one took their place."""
    for match in row.compiled.finditer(*within):
        start, end = match.start(), match.start() + len(match.group().rstrip(". "))
        if taken.find(1, start, end) >= 0:
            continue
        expression = make(match, words, sent_at)
        try:
            candidates = tuple(dict.fromkeys(row.meaning(expression)))
        except (ValueError, OverflowError):
            # Such as 31 April or the year 10,000.
            continue
        if candidates and all(timedelta() < last - first <= _LONGEST for first, last in candidates):
            taken[start:end] = b"\1" * (end - start)
            kind = f"{row.kind}{expression.side:+}" if expression.side is not None else row.kind
            if "count" in row.compiled.groupindex and meanings.is_vague(expression):
                kind = f"{row.kind}.vague"
            if expression.year is not None and row.kind != "year":
                kind = f"{row.kind}.full"
            readings.append(DateReading(kind, start, end, expression, candidates))


class _Anchor(NamedTuple):
    """A word or figure of dates in a text."""

    start: int
    end: int
    #: The classes of a word by language; empty for figures, which all languages have.
    classes: dict[str, frozenset[str]]


def _anchors(folded: str) -> Iterator[_Anchor]:
    """Yield the words and figures of dates in a text."""
    words = _anchor_words()
    for token in _TOKEN.finditer(folded):
        classes = words.get(token.group())
        if classes is not None:
            yield _Anchor(token.start(), token.end(), classes)
    for figures in _FIGURES.finditer(folded):
        yield _Anchor(figures.start(), figures.end(), {})


def _languages(text: str, folded: str, anchors: Sequence[_Anchor], language: Language | None) -> list[str]:
    """Return the languages whose patterns are tried: that of the text, and those that alone have a word of a date."""
    named: str | None = language or language_of(text)
    if named is None and not text.isascii():
        named = "ko" if _HANGUL.search(text) else "ru" if _CYRILLIC.search(text) else None
    languages = [named or "en"]
    if languages[0] not in UNSPACED:
        # `amanhã` in a text whose language is not known; a word that English has, too, says nothing, nor does the German
        # `hier`, which is French for yesterday.
        own = GERMAN_STOP_WORDS if languages[0] == "de" else frozenset[str]()
        foreign = (
            next(iter(anchor.classes))
            for anchor in anchors
            if anchor.classes and "en" not in anchor.classes and folded[anchor.start : anchor.end] not in own
        )
        languages += [other for other in dict.fromkeys(foreign) if other not in languages]
    if "en" not in languages and any(not anchor.classes or "en" in anchor.classes for anchor in anchors):
        languages.append("en")
    return languages


def _stretches(folded: str, anchors: Sequence[_Anchor], language: str) -> Iterator[tuple[int, int, frozenset[str]]]:
    """Yield the stretches around anchors of a language, without overlaps, with the classes of their words."""
    if language in UNSPACED:
        yield 0, len(folded), frozenset(_CLASSES)
        return
    start = end = 0
    classes = set[str]()
    for anchor in sorted(anchors):
        if anchor.classes and language not in anchor.classes:
            continue
        if end and anchor.start - _AROUND_CHARS > end:
            yield start, end, frozenset(classes)
            end, classes = 0, set[str]()
        if not end:
            space = folded.rfind(" ", 0, max(0, anchor.start - _AROUND_CHARS))
            start = space if anchor.start - space < 2 * _AROUND_CHARS else max(0, anchor.start - _AROUND_CHARS)
            start = max(start, 0)
        if anchor.end + _AROUND_CHARS > end:
            space = folded.find(" ", anchor.end + _AROUND_CHARS, anchor.end + 2 * _AROUND_CHARS)
            end = space if space >= 0 else min(len(folded), anchor.end + 2 * _AROUND_CHARS)
        classes.update(anchor.classes.get(language, ()))
    if end:
        yield start, end, frozenset(classes)


@cache
def _anchor_words() -> dict[str, dict[str, frozenset[str]]]:
    """Return the words of dates, each with its classes in the languages that have it."""
    anchors: dict[str, dict[str, frozenset[str]]] = {}
    for language, words in DATE_WORDS.items():
        if language in UNSPACED:
            continue
        classes: dict[str, Iterable[str]] = {
            "weekday": words.weekdays,
            "month": words.months,
            "unit": words.units,
            "offset": words.days,
        }
        classes |= {"season": words.seasons, "holiday": words.holidays}
        if language == "en":
            classes |= {"season": SEASONS, "holiday": HOLIDAYS}
        for name, group in classes.items():
            for word in group:
                # The longest word of an expression such as `hier soir`.
                token = max(_TOKEN.findall(fold(word)), key=len)
                spellings = [token, token.removesuffix("s"), f"{token}s"]
                for spelling in dict.fromkeys([*spellings, *_umlauts(word, token)]):
                    of_word = anchors.setdefault(spelling, {})
                    of_word[language] = of_word.get(language, frozenset()) | {name}
    return anchors


def _umlauts(word: str, token: str) -> list[str]:
    """Return the spelling of a word with two letters for an umlaut: `marz` and `maerz`."""
    spelled = word.lower().translate(str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"}))
    return [spelled] if spelled != word and " " not in word and len(spelled) >= len(token) else []


_COUNT = rf"(?P<count>\d{{1,3}}|{any_of(DATE_WORDS['en'].numbers)})"
_YEARS = rf"(?:(?P<years>\d{{1,2}}|{any_of(DATE_WORDS['en'].numbers)}) years? ago|(?P<yearside>last|this|next) year)"
#: The year of a date, which it may lack.
_OF_YEAR = rf"(?:(?:,? ?(?:of |in )?{YEAR})(?!\d)|,? (?:of )?{_YEARS})?"
_WEEKDAYS = tuple(word for word in DATE_WORDS["en"].weekdays if word.endswith("day"))
_WEEKDAY = f"(?P<weekday>{any_of(_WEEKDAYS)})"
_ANY_WEEKDAY = any_of(DATE_WORDS["en"].weekdays)
#: A full stop behind a whole name ends its sentence: `prices go up in april. 16 an hour`.
_STOP = r"(?:(?<=\b(?!may)\w\w\w)\.|(?<=\bsept)\.)?"
_MONTH = rf"(?P<month>{any_of(DATE_WORDS['en'].months)}){_STOP}"
_FIRST_MONTH = rf"(?P<first>{any_of(DATE_WORDS['en'].months)}){_STOP}"
_BEFORE = rf"(?:(?P<before>{_ANY_WEEKDAY})\.?,? )?"
_ORDINALS = any_of(DATE_WORDS["en"].ordinals)
_DAY = rf"(?P<day>[0-3]?\d(?:st|nd|rd|th)?|(?:{_ORDINALS}))"
_DIGITS = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?(?![:.%]\d|,\d\d\d)"
_FIRST_DAY = r"(?P<first>[0-3]?\d)(?:st|nd|rd|th)?"
_ORDINAL = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)"
_TO = r" ?(?:-|–|to|until|till|through|thru) ?(?:the )?"
_AND = r" ?(?:-|–|to|until|till|through|thru|and) ?(?:the )?"
_DAY_MONTH = rf"{_BEFORE}(?:the )?{_DAY}(?:(?<=[a-z]) of)? {_MONTH}"
_SIDE = r"(?P<side>last|past|previous|this|next|coming)"
_UNIT = f"(?P<unit>{any_of(DATE_WORDS['en'].units)})"
_WHAT = r"(?P<unit>week|weekend|month|quarter|year|decade)"
_SEASON = f"(?P<season>{'|'.join(SEASONS)})"
_HOLIDAY = (
    "(?P<holiday>"
    + "|".join(
        name.replace("years", "year'?s").replace("tines", "tine'?s").replace("tricks", "trick'?s") for name in HOLIDAYS
    )
    + ")"
)
_TIME_OF_DAY = "(?: (?:morning|afternoon|evening|night))?"
_IN = "in|since|until|till|by|during|before|after|from|around|for|through|over|at|on"
_PART = r"(?P<part>early|late|mid|beginning|start|middle|end)"
_ORDER = rf"(?P<order>{_ORDINALS}|last)"
_BARE_MONTH = rf"(?P<month>{any_of(word for word in DATE_WORDS['en'].months if len(word) > 5)})"
_OFFSET = r"(?P<offset>today|tomorrow|yesterday)"

#: The patterns of English dates. The first pattern that matches a part of a text wins, so longer ones come first.
_ENGLISH: tuple[Row, ...] = (
    ("day.exact", rf"(?:exactly )?{_COUNT} {_UNIT} ago {_OFFSET}", meanings.day_away(-1)),
    ("day.exact", rf"{_COUNT} {_UNIT} (?:from|on) {_OFFSET}", meanings.day_away(1)),
    ("ago.unit", rf"(?:exactly )?{_COUNT} {_UNIT} ago this (?P<what>week|weekend|month)", meanings.unit_away),
    ("weeks.on", rf"{_COUNT} {_UNIT} (?:from|on) (?:next )?{_WEEKDAY}", meanings.weekday_and_weeks(1)),
    ("weeks.on", rf"(?:on )?{_WEEKDAY} in {_COUNT} {_UNIT}", meanings.weekday_and_weeks(1)),
    ("weeks.on", rf"(?:on )?{_WEEKDAY} (?P<unit>week)(?!\w)", meanings.weekday_and_weeks(1)),
    ("weeks.ago", rf"(?:on )?{_WEEKDAY},? {_COUNT} {_UNIT} ago", meanings.weekday_and_weeks(-1)),
    ("weeks.ago", rf"{_COUNT} {_UNIT} ago,? (?:on )?{_WEEKDAY}", meanings.weekday_and_weeks(-1)),
    ("day.exact", r"(?P<offset>today|tomorrow) (?P<unit>week)", meanings.day_away(1)),
    ("day", r"(?:the )?(?P<offset>day before yesterday|day after tomorrow)", meanings.offset),
    ("day", rf"(?P<offset>yesterday|tomorrow|tmrw|tmr){_TIME_OF_DAY}", meanings.offset),
    ("night", r"(?P<offset>last night)", meanings.offset),
    ("day", r"(?:earlier |later )?(?P<offset>today|tonight)", meanings.offset),
    ("day", r"this (?P<offset>morning|afternoon|evening)", meanings.offset),
    ("numeric.full", rf"{YEAR}[-/](?P<number>[01]?\d)[-/](?P<day>[0-3]?\d)", meanings.numeric),
    ("dotted", rf"(?P<day>[0-3]?\d)\.(?P<number>[01]?\d)\.{YEAR}", meanings.numeric),
    ("slashed", rf"(?P<day>[0-3]?\d)(?P<swapped>/)(?P<number>[0-3]?\d)/{YEAR}", meanings.numeric),
    *(("numeric", rf"(?:(?P<before>{_ANY_WEEKDAY})\.?,? )?{stroked}", meanings.numeric) for stroked in STROKED),
    ("month.number", rf"(?P<number>0?[1-9]|1[0-2])/{YEAR}", meanings.month_of_numbers),
    ("range", rf"(?:from |between )?(?:the )?{_FIRST_DAY}{_TO}{_DAY}(?: of)? {_MONTH}{_OF_YEAR}", meanings.days_and_month),
    ("range", rf"(?:from |between )?{_MONTH} (?:the )?{_FIRST_DAY}{_TO}{_DIGITS}(?! ?(?:[ap]m|o'clock)){_OF_YEAR}", meanings.days_and_month),
    ("range", rf"between (?:the )?{_FIRST_DAY}{_AND}{_DAY}(?: of)? {_MONTH}{_OF_YEAR}", meanings.days_and_month),
    ("range", rf"between {_MONTH} (?:the )?{_FIRST_DAY}{_AND}{_DIGITS}{_OF_YEAR}", meanings.days_and_month),
    ("week.of", rf"(?:the )?{_WHAT} of {_DAY_MONTH}{_OF_YEAR}", meanings.week_with(meanings.day_and_month)),
    ("week.of", rf"(?:the )?{_WHAT} of {_MONTH} (?:the )?{_DIGITS}{_OF_YEAR}", meanings.week_with(meanings.day_and_month)),
    ("monthday", rf"{_DAY_MONTH}{_OF_YEAR}", meanings.day_and_month),
    ("monthday", rf"{_BEFORE}{_MONTH} (?:the )?{_DIGITS}{_OF_YEAR}", meanings.day_and_month),
    ("monthday", rf"{_BEFORE}{_MONTH} (?:the )?(?P<day>{_ORDINALS}){_OF_YEAR}", meanings.day_and_month),
    ("last.day", rf"(?:on )?the last day of {_MONTH}{_OF_YEAR}", meanings.last_day),
    ("month", rf"{_YEARS},? (?:back )?in {_MONTH}", meanings.month),
    ("season", rf"{_YEARS},? (?:back )?in (?:the )?{_SEASON}", meanings.season),
    ("new.year", r"in the new year", meanings.new_year),
    ("holiday", rf"{_SIDE} {_HOLIDAY}", meanings.holiday),
    ("holiday", rf"(?:(?:{_IN}) )?(?:the )?{_HOLIDAY}{_OF_YEAR}", meanings.holiday),
    ("week.month", rf"(?:in |during )?(?:the )?{_ORDER} week (?:of|in) {_MONTH}{_OF_YEAR}", meanings.week_of_month),
    ("month.part", rf"(?:at |in |by |until |till )?(?:the )?{_PART}(?: of |[ -]){_MONTH}{_OF_YEAR}", meanings.part_of(meanings.month)),
    ("year.part", rf"(?:at |in |by |until |till )?(?:the )?{_PART}(?: of |[ -]){YEAR}", meanings.part_of(meanings.year)),
    ("unit.part", rf"(?:at |in |by |until |till )?(?:the )?{_PART} of (?:the|(?P<side>last|this|next)) (?P<unit>week|month|year)", meanings.part_of_unit),
    ("unit.part", r"(?P<part>earlier|later) (?P<side>this) (?P<unit>week|month|year)", meanings.part_of_unit),
    ("months", rf"(?:between|from|in|during) {_FIRST_MONTH}{_AND}{_MONTH}{_OF_YEAR}", meanings.months),
    ("month", rf"(?:(?:in|during) )?{_MONTH},? (?:of )?{_YEARS}", meanings.month),
    ("season", rf"(?:(?:in|during) )?(?:the )?{_SEASON},? (?:of )?{_YEARS}", meanings.season),
    ("rolling", rf"(?:(?:in|over|during|within|for) )?(?:the|my|our|these) (?P<side>last|past|next|coming) {_COUNT} {_UNIT}", meanings.rolling),
    ("rolling", r"(?:in|over|during|within|for) the (?P<side>last) (?P<unit>week|month|quarter|year|decade)", meanings.rolling),
    ("rolling", r"(?:(?:in|over|during|within|for) )?(?:the|this) (?P<side>past) (?P<unit>week|month|quarter|year|decade)", meanings.rolling),
    ("ago", r"half a (?P<unit>year) ago|a year (?P<longer>and a half) ago", meanings.half_years_ago),
    ("weeks.ago", rf"{_COUNT} {_WEEKDAY}s? ago", meanings.weekdays_ago),
    ("ago", rf"(?:exactly )?{_COUNT} {_UNIT} ago", meanings.away(-1)),
    ("ahead", rf"in {_COUNT} {_UNIT} and (?P<more>\d|{any_of(DATE_WORDS['en'].numbers)}) days?", meanings.weeks_and_days),
    ("ahead", rf"(?:in|within) {_COUNT} {_UNIT}(?! of)(?:'s? time)?", meanings.away(1)),
    ("ahead", rf"{_COUNT} {_UNIT} from now", meanings.away(1)),
    ("week.day", rf"(?:on )?{_WEEKDAY}{_TIME_OF_DAY},? (?:of )?{_SIDE} week", meanings.weekday_of_week),
    ("week.day", rf"{_SIDE} week,? (?:on )?{_WEEKDAY}", meanings.weekday_of_week),
    ("weekday", rf"{_SIDE} (?P<weekday>{_ANY_WEEKDAY}){_TIME_OF_DAY}", meanings.side_weekday),
    ("unit.twice", rf"(?:the )?{_WHAT} before (?P<side>last)(?P<twice>)", meanings.side_unit),
    ("unit.twice", rf"(?:the )?{_WHAT} after (?P<side>next)(?P<twice>)", meanings.side_unit),
    ("day.of.month", rf"(?:on )?(?:the )?{_ORDINAL} of (?P<side>this|last|next) (?P<unit>month)", meanings.day_of_month),
    ("unit", rf"(?:this )?{_SIDE} {_WHAT}", meanings.side_unit),
    ("month", rf"{_SIDE} {_MONTH}", meanings.side_month),
    ("season", rf"{_SIDE} {_SEASON}", meanings.season),
    # A bare `fall` is a verb: `when did I fall?`.
    ("season", rf"(?!fall\b(?!,? (?:of |in )?(?:19|20)\d\d))(?:(?:{_IN}) )?(?:the )?{_SEASON}{_OF_YEAR}", meanings.season),
    ("quarter", rf"(?:in )?(?:the )?{_ORDER} (?P<unit>quarter){_OF_YEAR}", meanings.quarter),
    ("quarter", rf"q(?P<order>[1-4]){_OF_YEAR}", meanings.quarter),
    ("month", rf"(?:(?:{_IN})[ -])(?:the month of )?{_MONTH}{_OF_YEAR}", meanings.month),
    ("month", rf"{_MONTH},? (?:of )?(?:{YEAR}|{_YEARS})", meanings.month),
    ("month.bare", _BARE_MONTH, meanings.month),
    ("week.of", rf"(?:the )?{_WHAT} of the {_ORDINAL}", meanings.week_with(meanings.day_of_month)),
    ("day.of.month", rf"{_BEFORE}the {_ORDINAL}", meanings.day_of_month),
    ("day.of.month", rf"(?:on )?(?P<before>{_ANY_WEEKDAY}) {_ORDINAL}", meanings.day_of_month),
    ("weekend", r"(?:at|on|over|for) the (?P<unit>weekend)", meanings.weekend),
    ("weekday.on", rf"(?:on|by|until|till|since|from|before|after|for|due) (?P<weekday>{_ANY_WEEKDAY}){_TIME_OF_DAY}", meanings.weekday),
    ("weekday", rf"{_WEEKDAY}{_TIME_OF_DAY}", meanings.weekday),
    ("weekday.short", r"(?P<weekday>tues|tue|weds|thurs|thur|thu|fri)", meanings.weekday),
    ("weekday.short", rf"(?P<weekday>mon|wed|sat|sun)(?: (?:morning|afternoon|evening|night)|(?= (?:\d|at |or ))| (?=and {_ANY_WEEKDAY}))", meanings.weekday),
    ("decade", r"(?:in |during |from )?the (?P<decade>(?:19|20)\d0|[5-9]0)'?s", meanings.decade),
    ("years", rf"(?:from|between) (?P<first>(?:19|20)\d\d){_AND}{YEAR}", meanings.years),
    ("year", rf"(?:{_IN}|back in|as of) {YEAR}", meanings.year),
    ("weekday.alone", r"(?P<weekday>mon|wed|sat|sun)", meanings.weekday),
    ("day.of.month.alone", _ORDINAL, meanings.day_of_month),
)  # fmt: skip


def _spaced(words: DateWords) -> list[Row]:
    """Return the patterns of a language with spaces between words, made of its table."""
    weekday, month, unit = (
        f"(?P<{name}>{any_of(table)})"
        for name, table in (("weekday", words.weekdays), ("month", words.months), ("unit", words.units))
    )
    count = rf"(?P<count>\d{{1,3}}|{any_of(words.numbers)})"
    side = f"(?P<side>{any_of(words.sides)})"
    of = rf"(?: {any_of(words.words('of'))})?" if words.words("of") else ""
    on, before_month = any_of(words.words("on")), any_of(words.words("in"))
    year = rf"(?:{of},? {YEAR}(?!\d)"
    if of_year := words.words("of_year"):
        sides = f"(?P<yearside>{any_of(words.sides)})"
        year += f"| {sides} {any_of(of_year)}" if words.language == "de" else f"| {any_of(of_year)} {sides}"
    year += ")?"
    day = r"(?P<day>[0-3]?\d)(?:\.|er|º|°|ª|-?го|e)?"
    named = rf"(?:(?P<before>{any_of(words.weekdays)}),? (?:{on} )?)?"
    not_after = "".join(f"(?<!{word} )" for word in words.words("not_after"))
    ago, ahead = words.words("ago"), words.words("ahead")
    of_month = words.words("of_month") and f"(?P<unit>{any_of(words.words('of_month'))})"
    part = f"(?P<part>{any_of(words.parts)})"
    #: "due anni fa", "два дня назад".
    after = "fa|geleden|temu|назад|atrás|atras"
    return [
        ("weeks.on", rf"(?:{on} )?{weekday} {any_of(ahead)} {count} {unit}", meanings.weekday_and_weeks(1)),
        ("day.exact", rf"(?P<offset>{any_of(words.days)}) {any_of(ahead)} {count} {unit}", meanings.day_away(1)),
        *([("day.exact", rf"(?P<offset>{any_of(words.days)}) {any_of(ago)} {count} {unit}", meanings.day_away(-1))] if ago else []),
        ("day", rf"{not_after}(?P<offset>{any_of(words.days)})", meanings.offset),
        ("numeric.full", rf"{YEAR}-(?P<number>[01]\d)-(?P<day>[0-3]\d)", meanings.numeric),
        ("numeric.full", rf"(?P<day>[0-3]?\d)[./](?P<number>[01]?\d)[./]{YEAR}", meanings.numeric),
        ("numeric", rf"(?:{on} )?{named}(?:{on} )?{STROKED[0]}", meanings.numeric),
        ("range", rf"(?P<first>[0-3]?\d)\.? ?(?:-|–|bis|bis zum|al|hasta el|y el|au|et le|a|до|do|tot|t/m) ?{day}{of} {month}{year}", meanings.days_and_month),
        ("months", rf"(?:de|desde|entre|von|zwischen|da|tra) (?P<first>{any_of(words.months)}) (?:a|al|y|hasta|bis|und|et|e) {month}{year}", meanings.months),
        *(("day.of.month", rf"(?:{on} )?(?:el )?(?:dia )?{day}{of} {sided}", meanings.day_of_month) for sided in (f"{side} {of_month}", f"{of_month} {side}") if of_month),
        ("monthday", rf"(?:{on} )?{named}(?:{on} )?{day}{of} {month}{year}", meanings.day_and_month),
        *([("dotted", r"(?:am|bis(?: zum)?|vom|zum|den|ab(?: dem)?) (?P<day>[0-3]?\d)\.(?P<number>[01]?\d)\.(?!\d)", meanings.numeric)] if words.language == "de" else []),
        *([("holiday", rf"(?:{on} |{before_month} |a |en |à |über |ueber |an |zu )?(?P<holiday>{any_of(words.holidays)})(?: {side}|{year})", meanings.holiday)] if words.holidays else []),
        *([("season", rf"(?:{side} (?P<season>{any_of(words.seasons)}))", meanings.season), ("season", rf"(?:el |l'|la )?(?P<season>{any_of(words.seasons)}) {side}", meanings.season), ("season", rf"(?:{before_month} |{on} |l')?(?P<season>{any_of(words.seasons)}){year}", meanings.season)] if words.seasons else []),
        *([("month.part", rf"(?P<part>{any_of(words.parts)})[ -]{month}{year}", meanings.part_of(meanings.month))] if words.parts else []),
        ("month", rf"{before_month}[ -]?(?:{side} )?{month}{year}", meanings.month),
        ("month", rf"{month}{of} {YEAR}", meanings.month),
        *(("unit.part", rf"{part}(?: des| du)? {of_unit}", meanings.part_of_unit) for of_unit in (f"{side} {of_month}", f"{of_month} {side}", of_month) if of_month),
        ("unit", rf"(?:(?:el|la|le|na|on|in|w|в) )?{unit} {side}", meanings.side_unit),
        ("unit", rf"{side} {unit}", meanings.side_unit),
        ("weekday", rf"(?:{on} )?{side} {weekday}", meanings.side_weekday),
        ("weekday", rf"(?:{on} )?{weekday} {side}", meanings.side_weekday),
        *([("ago", rf"{any_of(ago)} {count} {unit}", meanings.away(-1))] if ago else []),
        ("ago", rf"{count} {unit} (?:{after})", meanings.away(-1)),
        ("ahead", rf"{any_of(ahead)} {count} {unit}", meanings.away(1)),
        *([("day.of.month", rf"(?:(?P<before>{any_of(words.weekdays)}),? de[nm]|am|vom|zum|den|bis|bis zum|ab dem|seit dem) (?P<day>[0-3]?\d)\.(?! ?\d)", meanings.day_of_month)] if words.language == "de" else []),
        ("year", rf"(?:{before_month}|im jahr|anno|ano|ano de|annee) {YEAR}", meanings.year),
        ("weekend", rf"(?:am|a la|le|en|nel|in het|w|в|на) (?P<unit>{any_of(word for word, unit in words.units.items() if unit == 'weekend')})", meanings.weekend),
        ("weekday.on", rf"{on} {weekday}", meanings.weekday),
        ("weekday", weekday, meanings.weekday),
        *([("day.of.month.alone", rf"{_ROMANCE_DAY} (?P<day>[0-3]?\d)(?! ?[\d%€:]|[.,]\d)", meanings.day_of_month)] if words.language in _ROMANCE else []),
    ]  # fmt: skip


@cache
def _patterns(language: str) -> tuple[Pattern, ...]:
    """Return the patterns of a language."""
    words = DATE_WORDS[language]
    if language in UNSPACED:
        rows: Sequence[Row] = unspaced_rows(words)
    else:
        rows = _ENGLISH if language == "en" else _spaced(words)
    before, after = ("(?:", ")") if language in UNSPACED else (r"\b(?:", r")(?!\w)")
    return tuple(
        Pattern(kind, f"{before}{pattern}{after}", meaning, frozenset(_CLASSES).intersection(_GROUP.findall(pattern)))
        for kind, pattern, meaning in rows
    )
