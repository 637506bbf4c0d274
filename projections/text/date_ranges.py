"""Dates that a text names, as the ranges they mean at the time it was said: `last Friday` is one day, `in May` a month."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

_WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_SHORT_MONTHS = {name[:3]: number for number, name in enumerate(_MONTHS, start=1)} | {"sept": 9}
_SEASONS = {"spring": 3, "summer": 6, "fall": 9, "autumn": 9, "winter": 12}
_NUMBERS = {
    word: number
    for number, word in enumerate(
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"], start=1
    )
} | {"a": 1, "an": 1, "a couple of": 2, "couple of": 2, "a few": 3, "few": 3}

_COUNT = r"(?P<count>\d{1,3}|" + "|".join(sorted(_NUMBERS, key=len, reverse=True)) + ")"
_WEEKDAY = "(?P<weekday>" + "|".join(_WEEKDAYS) + ")"
_MONTH = (
    "(?P<month>"
    + "|".join([*_MONTHS, "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sept?", "oct", "nov", "dec"])
    + r")\.?"
)
_SEASON = "(?P<season>" + "|".join(_SEASONS) + ")"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_UNIT = r"(?P<unit>day|week|month|year)s?"
_AGO = rf"(?:{_COUNT} years? ago|(?P<shift>last|this|next) year)"
_PART = r"(?P<part>first|second|third|fourth|last)"
_SIDE = r"(?P<side>last|past|previous|this|next|coming)"


class DateRange(NamedTuple):
    """A date in a text: the words, and the range it means, its end exclusive."""

    text: str
    start: datetime
    end: datetime


_Meaning = Callable[[re.Match[str], datetime], tuple[datetime, datetime] | None]


def find_dates(text: str, said_at: datetime) -> Iterator[DateRange]:
    """Yield the dates that `text` names, in order, none within another.

    Parameters:
        said_at: when it was said, aware; what is relative counts from there.
    """
    # A mark for each character that is part of a date: what is within another is found without a look at all others.
    taken = bytearray(len(text))
    found: list[tuple[int, DateRange]] = []
    for pattern, meaning in _PATTERNS:
        for match in pattern.finditer(text):
            start, end = match.span()
            if taken.find(1, start, end) >= 0:
                continue
            try:
                span = meaning(match, _day(said_at))
            except (ValueError, OverflowError):
                # 31 April, or the year 10,000: no date.
                continue
            if span is not None:
                taken[start:end] = b"\1" * (end - start)
                found.append((start, DateRange(match.group(), *span)))
    return (one for _, one in sorted(found, key=lambda pair: pair[0]))


def _day(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _days(start: datetime, count: int = 1) -> tuple[datetime, datetime]:
    return start, start + timedelta(days=count)


def _month_of(start: datetime, months: int = 0) -> tuple[datetime, datetime]:
    number = start.year * 12 + start.month - 1 + months
    first = start.replace(year=number // 12, month=number % 12 + 1, day=1)
    return first, first + timedelta(days=monthrange(first.year, first.month)[1])


def _year_of(year: int) -> tuple[datetime, datetime]:
    return datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)


def _week_of(day: datetime, weeks: int = 0) -> tuple[datetime, datetime]:
    return _days(day - timedelta(days=day.weekday()) + timedelta(weeks=weeks), 7)


def _shift(side: str) -> int:
    return {"this": 0, "next": 1, "coming": 1}.get(side, -1)


def _simple(offset: int) -> _Meaning:
    return lambda _, today: _days(today + timedelta(days=offset))


def _side_weekday(match: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    """`last Friday`: the latest one before today; `next`, `this`: the first one from tomorrow, or from today, on."""
    wanted = _WEEKDAYS.index(match["weekday"].lower())
    side = (match["side"] or "").lower()
    if _shift(side) < 0 and side:
        return _days(today - timedelta(days=(today.weekday() - wanted - 1) % 7 + 1))
    if side == "next":
        return _days(today + timedelta(days=(wanted - today.weekday() - 1) % 7 + 1))
    return _days(today + timedelta(days=(wanted - today.weekday()) % 7))


def _bare_weekday(match: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    """`on Friday` after a past tense is the last one; nobody can tell, so the nearest one counts, and today does."""
    wanted = _WEEKDAYS.index(match["weekday"].lower())
    ahead = (wanted - today.weekday()) % 7
    return _days(today + timedelta(days=ahead if ahead <= 3 else ahead - 7))


def _side_unit(match: re.Match[str], today: datetime) -> tuple[datetime, datetime] | None:
    shift = _shift(match["side"].lower())
    match match["what"].lower():
        case "week":
            return _week_of(today, shift)
        case "weekend":
            monday = _week_of(today, shift)[0]
            return _days(monday + timedelta(days=5), 2)
        case "month":
            return _month_of(today, shift)
        case "year":
            return _year_of(today.year + shift)
        case "night":
            return _days(today + timedelta(days=shift))
        case _:
            return None


def _side_month(match: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    wanted = _month_number(match["month"])
    shift = _shift(match["side"].lower())
    year = today.year
    if shift < 0 and wanted >= today.month:
        year -= 1
    if shift > 0 and wanted <= today.month:
        year += 1
    return _month_of(today.replace(year=year, month=wanted, day=1))


def _side_season(match: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    first = _SEASONS[match["season"].lower()]
    shift = _shift((match["side"] or "this").lower())
    start = today.replace(month=first, day=1)
    if shift < 0 and start + timedelta(days=92) > today:
        start = start.replace(year=start.year - 1)
    if shift > 0 and start <= today:
        start = start.replace(year=start.year + 1)
    return start, _month_of(start, 2)[1]


def _ago(match: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    return _away(match, today, -1)


def _ahead(match: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    return _away(match, today, 1)


def _away(match: re.Match[str], today: datetime, sign: int) -> tuple[datetime, datetime]:
    """The further away, the wider: `two weeks ago` is that week, `three years ago` that year."""
    count = sign * _count(match["count"])
    match match["unit"].lower():
        case "day":
            return _days(today + timedelta(days=count))
        case "week":
            return _week_of(today, count)
        case "month":
            return _month_of(today, count)
        case _:
            return _year_of(today.year + count)


def _count(text: str) -> int:
    said = " ".join(text.lower().split())
    return int(said) if said.isdecimal() else _NUMBERS[said]


def _month_number(name: str) -> int:
    return _SHORT_MONTHS[name.lower().rstrip(".")[:3]]


def _day_and_month(match: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    """Without a year the nearest such day is meant."""
    month, day = _month_number(match["month"]), int(match["day"])
    if match["year"]:
        return _days(datetime(int(match["year"]), month, day, tzinfo=UTC))
    candidates = [_in_year(year, month, day) for year in (today.year - 1, today.year, today.year + 1)]
    return _days(min((one for one in candidates if one), key=lambda one: abs(one - today)))


def _in_year(year: int, month: int, day: int) -> datetime | None:
    try:
        return datetime(year, month, day, tzinfo=UTC)
    except ValueError:
        return None


def _month_and_year(match: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    month = _month_number(match["month"])
    if match["year"]:
        return _month_of(datetime(int(match["year"]), month, 1, tzinfo=UTC))
    candidates = [today.replace(year=today.year + years, month=month, day=1) for years in (-1, 0, 1)]
    return _month_of(min(candidates, key=lambda one: abs(one + timedelta(days=15) - today)))


def _iso(match: re.Match[str], _: datetime) -> tuple[datetime, datetime]:
    return _days(datetime(int(match["year"]), int(match["number"]), int(match["day"]), tzinfo=UTC))


def _years_away(match: re.Match[str], today: datetime) -> int:
    """Return the year that `two years ago` or `last year` is."""
    return today.year + (_shift(match["shift"].lower()) if match["shift"] else -_count(match["count"]))


def _day_years_ago(match: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    return _days(datetime(_years_away(match, today), _month_number(match["month"]), int(match["day"]), tzinfo=UTC))


def _month_years_ago(match: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    return _month_of(datetime(_years_away(match, today), _month_number(match["month"]), 1, tzinfo=UTC))


def _season_years_ago(match: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    return _season(_years_away(match, today), match["season"])


def _season_of_year(match: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    """Without a year the latest one that began."""
    if match["year"]:
        return _season(int(match["year"]), match["season"])
    begun = _SEASONS[match["season"].lower()] <= today.month
    return _season(today.year if begun else today.year - 1, match["season"])


def _season(year: int, name: str) -> tuple[datetime, datetime]:
    start = datetime(year, _SEASONS[name.lower()], 1, tzinfo=UTC)
    return start, _month_of(start, 2)[1]


def _week_of_month(match: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    """`the first week of June`: its first seven days, and so on; the last week: its last seven."""
    start, end = _month_and_year(match, today)
    part = match["part"].lower()
    if part == "last":
        return end - timedelta(days=7), end
    return _days(start + timedelta(weeks=["first", "second", "third", "fourth"].index(part)), 7)


def _part_of_month(match: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    """`the beginning of June`, its middle, its end: ten days each, as far as there are."""
    start, end = _month_and_year(match, today)
    edges = [start, start + timedelta(days=10), start + timedelta(days=20), end]
    place = {"middle": 1, "end": 2}.get(match["part"].lower(), 0)
    return edges[place], edges[place + 1]


def _part_of_year(match: re.Match[str], _: datetime) -> tuple[datetime, datetime]:
    """`the beginning of 2023`, its middle, its end: four months each."""
    first = 1 + 4 * {"middle": 1, "end": 2}.get(match["part"].lower(), 0)
    start = datetime(int(match["year"]), first, 1, tzinfo=UTC)
    return start, _month_of(start, 3)[1]


def _last_few(match: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    """`the last three weeks`: what lies between then and the end of today."""
    count = _count(match["count"])
    days = {"day": 1, "week": 7, "month": 30, "year": 365}[match["unit"].lower()]
    return today - timedelta(days=count * days), today + timedelta(days=1)


def _plain_year(match: re.Match[str], _: datetime) -> tuple[datetime, datetime]:
    return _year_of(int(match["year"]))


#: The first pattern that matches a place counts, so the longer ones come first. A month's name needs its capital: `may`.
_PATTERNS: tuple[tuple[re.Pattern[str], _Meaning], ...] = tuple(
    (re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), meaning)
    for pattern, meaning in (
        (r"the day before yesterday", _simple(-2)),
        (r"the day after tomorrow", _simple(2)),
        (r"yesterday(?: (?:morning|afternoon|evening|night))?", _simple(-1)),
        (r"tomorrow(?: (?:morning|afternoon|evening|night))?", _simple(1)),
        (r"today|tonight|this (?:morning|afternoon|evening)", _simple(0)),
        (rf"{_YEAR}-(?P<number>[01]\d)-(?P<day>[0-3]\d)", _iso),
        (rf"(?:the )?{_DAY}(?: of)? {_MONTH},? {_AGO}", _day_years_ago),
        (rf"{_MONTH} (?:the )?{_DAY},? {_AGO}", _day_years_ago),
        (rf"(?:the )?{_DAY}(?: of)? {_MONTH}(?:,? {_YEAR})?", _day_and_month),
        (rf"{_MONTH} (?:the )?{_DAY}(?:,? {_YEAR})?", _day_and_month),
        (rf"{_AGO},? (?:back )?in {_MONTH}", _month_years_ago),
        (rf"(?:(?:in|during) )?{_MONTH},? (?:of )?{_AGO}", _month_years_ago),
        (rf"{_AGO},? (?:back )?in (?:the )?{_SEASON}", _season_years_ago),
        (rf"(?:(?:in|during) )?(?:the )?{_SEASON},? (?:of )?{_AGO}", _season_years_ago),
        (rf"(?:in |during )?(?:the )?{_PART} week (?:of|in) {_MONTH}(?:,? (?:of )?{_YEAR})?", _week_of_month),
        (
            rf"(?:at |in |by )?(?:the )?(?P<part>beginning|start|middle|end) of {_MONTH}(?:,? (?:of )?{_YEAR})?",
            _part_of_month,
        ),
        (rf"(?:at |in |by )?(?:the )?(?P<part>beginning|start|middle|end) of {_YEAR}", _part_of_year),
        (rf"(?:(?:in|over|during|within|for) )?the (?:last|past) {_COUNT} {_UNIT}", _last_few),
        (rf"{_COUNT} {_UNIT} ago", _ago),
        (rf"(?:in|within) {_COUNT} {_UNIT}(?! of)", _ahead),
        (rf"{_COUNT} {_UNIT} from now", _ahead),
        (rf"{_SIDE} {_WEEKDAY}", _side_weekday),
        (rf"{_SIDE} (?P<what>week|weekend|month|year|night)", _side_unit),
        (rf"{_SIDE} {_MONTH}", _side_month),
        (rf"{_SIDE} {_SEASON}", _side_season),
        (rf"(?:(?:in|during|since) )?(?:the )?{_SEASON} (?:of |in )?{_YEAR}", _season_of_year),
        (rf"(?:in|during|since) the {_SEASON}(?P<year>)", _season_of_year),
        (rf"(?:in|since|until|by|early|late|mid|during)[ -]{_MONTH}(?:,? (?:of )?{_YEAR})?", _month_and_year),
        (rf"{_MONTH},? (?:of )?(?P<year>(?:19|20)\d\d)", _month_and_year),
        (rf"on {_WEEKDAY}", _bare_weekday),
        (rf"(?:in|since|until|by|during|back in) {_YEAR}", _plain_year),
    )
)
