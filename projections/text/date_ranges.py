"""Date ranges: finds the dates in a text as time ranges: `last Friday` is one day, `in May` is a month."""

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
    """A date in a text, with the time range that it names."""

    #: The words of the date.
    text: str
    start: datetime
    #: Exclusive.
    end: datetime


#: Computes the range of a match, given the day of the message; None when the match is not a date.
_Meaning = Callable[[re.Match[str], datetime], tuple[datetime, datetime] | None]


def find_dates(text: str, sent_at: datetime) -> Iterator[DateRange]:
    """Return an iterator over the dates in `text`, in order and without overlaps.

    Parameters:
        sent_at: the time of the message, aware; relative dates count from it.
    """
    # One byte for each character, 1 inside a date: an overlap is detected without a loop over the other dates.
    taken = bytearray(len(text))
    dates: list[tuple[int, DateRange]] = []
    for pattern, meaning in _PATTERNS:
        for match in pattern.finditer(text):
            start, end = match.span()
            if taken.find(1, start, end) >= 0:
                continue
            try:
                span = meaning(match, _day(sent_at))
            except (ValueError, OverflowError):
                # Not a date, such as 31 April or the year 10,000.
                continue
            if span is not None:
                taken[start:end] = b"\1" * (end - start)
                dates.append((start, DateRange(match.group(), *span)))
    return (date for _, date in sorted(dates, key=lambda pair: pair[0]))


def _day(moment: datetime) -> datetime:
    """Return midnight UTC of a moment's day."""
    return moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _days(start: datetime, count: int = 1) -> tuple[datetime, datetime]:
    """Return the range of `count` days from `start`."""
    return start, start + timedelta(days=count)


def _month_of(start: datetime, months: int = 0) -> tuple[datetime, datetime]:
    """Return the range of the month that is `months` months after `start`."""
    number = start.year * 12 + start.month - 1 + months
    first = start.replace(year=number // 12, month=number % 12 + 1, day=1)
    return first, first + timedelta(days=monthrange(first.year, first.month)[1])


def _year_of(year: int) -> tuple[datetime, datetime]:
    """Return the range of a year."""
    return datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)


def _week_of(day: datetime, weeks: int = 0) -> tuple[datetime, datetime]:
    """Return the range of the week, from Monday, that is `weeks` weeks after `day`."""
    return _days(day - timedelta(days=day.weekday()) + timedelta(weeks=weeks), 7)


def _shift(side: str) -> int:
    """Return 0 for `this`, 1 for `next` and `coming`, -1 for other words."""
    return {"this": 0, "next": 1, "coming": 1}.get(side, -1)


def _simple(offset: int) -> _Meaning:
    """Return the meaning of a single day, `offset` days after today."""
    return lambda _, today: _days(today + timedelta(days=offset))


def _side_weekday(match: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    """Return the day of `last Friday` (before today), `next Friday` (after today) or `this Friday` (today or later)."""
    wanted = _WEEKDAYS.index(match["weekday"].lower())
    side = (match["side"] or "").lower()
    if _shift(side) < 0 and side:
        return _days(today - timedelta(days=(today.weekday() - wanted - 1) % 7 + 1))
    if side == "next":
        return _days(today + timedelta(days=(wanted - today.weekday() - 1) % 7 + 1))
    return _days(today + timedelta(days=(wanted - today.weekday()) % 7))


def _bare_weekday(match: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    """Return the day of `on Friday`: the nearest Friday, which may be today, since the tense of the verb is not known."""
    wanted = _WEEKDAYS.index(match["weekday"].lower())
    ahead = (wanted - today.weekday()) % 7
    return _days(today + timedelta(days=ahead if ahead <= 3 else ahead - 7))


def _side_unit(match: re.Match[str], today: datetime) -> tuple[datetime, datetime] | None:
    """Return the range of `last week`, `next month` …"""
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
    """Return the month of `last May`, `this May` or `next May`."""
    wanted = _month_number(match["month"])
    shift = _shift(match["side"].lower())
    year = today.year
    if shift < 0 and wanted >= today.month:
        year -= 1
    if shift > 0 and wanted <= today.month:
        year += 1
    return _month_of(today.replace(year=year, month=wanted, day=1))


def _side_season(match: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    """Return the three months of `last summer`, `this summer` or `next summer`."""
    first = _SEASONS[match["season"].lower()]
    shift = _shift((match["side"] or "this").lower())
    start = today.replace(month=first, day=1)
    if shift < 0 and start + timedelta(days=92) > today:
        start = start.replace(year=start.year - 1)
    if shift > 0 and start <= today:
        start = start.replace(year=start.year + 1)
    return start, _month_of(start, 2)[1]


def _ago(match: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    """Return the range of `two weeks ago`."""
    return _away(match, today, -1)


def _ahead(match: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    """Return the range of `in two weeks`."""
    return _away(match, today, 1)


def _away(match: re.Match[str], today: datetime, sign: int) -> tuple[datetime, datetime]:
    """Return the day, week, month or year at a distance from today, as long as the unit: `two weeks ago` is a week."""
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
    """Return the number that digits or a number word mean."""
    number = " ".join(text.lower().split())
    return int(number) if number.isdecimal() else _NUMBERS[number]


def _month_number(name: str) -> int:
    """Return the number, 1 to 12, of a month's name or abbreviation."""
    return _SHORT_MONTHS[name.lower().rstrip(".")[:3]]


def _day_and_month(match: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    """Return the day of `5 May 2023`; without a year the nearest such day."""
    month, day = _month_number(match["month"]), int(match["day"])
    if match["year"]:
        return _days(datetime(int(match["year"]), month, day, tzinfo=UTC))
    candidates = [_in_year(year, month, day) for year in (today.year - 1, today.year, today.year + 1)]
    return _days(min((day for day in candidates if day), key=lambda day: abs(day - today)))


def _in_year(year: int, month: int, day: int) -> datetime | None:
    """Return a day of a year; None for 29 February of most years."""
    try:
        return datetime(year, month, day, tzinfo=UTC)
    except ValueError:
        return None


def _month_and_year(match: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    """Return the month of `May 2023`; without a year the nearest such month."""
    month = _month_number(match["month"])
    if match["year"]:
        return _month_of(datetime(int(match["year"]), month, 1, tzinfo=UTC))
    candidates = [today.replace(year=today.year + years, month=month, day=1) for years in (-1, 0, 1)]
    return _month_of(min(candidates, key=lambda first: abs(first + timedelta(days=15) - today)))


def _iso(match: re.Match[str], _: datetime) -> tuple[datetime, datetime]:
    """Return the day of `2023-05-07`."""
    return _days(datetime(int(match["year"]), int(match["number"]), int(match["day"]), tzinfo=UTC))


def _years_away(match: re.Match[str], today: datetime) -> int:
    """Return the year of `two years ago` or `last year`."""
    return today.year + (_shift(match["shift"].lower()) if match["shift"] else -_count(match["count"]))


def _day_years_ago(match: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    """Return the day of `5 May last year`."""
    return _days(datetime(_years_away(match, today), _month_number(match["month"]), int(match["day"]), tzinfo=UTC))


def _month_years_ago(match: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    """Return the month of `two years ago in May`."""
    return _month_of(datetime(_years_away(match, today), _month_number(match["month"]), 1, tzinfo=UTC))


def _season_years_ago(match: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    """Return the season of `last year in the summer`."""
    return _season(_years_away(match, today), match["season"])


def _season_of_year(match: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    """Return the season of `summer of 2023`; without a year the latest one that has begun."""
    if match["year"]:
        return _season(int(match["year"]), match["season"])
    begun = _SEASONS[match["season"].lower()] <= today.month
    return _season(today.year if begun else today.year - 1, match["season"])


def _season(year: int, name: str) -> tuple[datetime, datetime]:
    """Return the three months of a season, of the northern hemisphere."""
    start = datetime(year, _SEASONS[name.lower()], 1, tzinfo=UTC)
    return start, _month_of(start, 2)[1]


def _week_of_month(match: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    """Return seven days: `the first week of June` starts on 1 June, `the last week of June` ends on 30 June."""
    start, end = _month_and_year(match, today)
    part = match["part"].lower()
    if part == "last":
        return end - timedelta(days=7), end
    return _days(start + timedelta(weeks=["first", "second", "third", "fourth"].index(part)), 7)


def _part_of_month(match: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    """Return a third of a month: the beginning and the middle have ten days, the end has the remaining days."""
    start, end = _month_and_year(match, today)
    edges = [start, start + timedelta(days=10), start + timedelta(days=20), end]
    third = {"middle": 1, "end": 2}.get(match["part"].lower(), 0)
    return edges[third], edges[third + 1]


def _part_of_year(match: re.Match[str], _: datetime) -> tuple[datetime, datetime]:
    """Return four months of a year: its beginning, middle or end."""
    first = 1 + 4 * {"middle": 1, "end": 2}.get(match["part"].lower(), 0)
    start = datetime(int(match["year"]), first, 1, tzinfo=UTC)
    return start, _month_of(start, 3)[1]


def _last_few(match: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    """Return the range of `the last three weeks`, which ends with today."""
    count = _count(match["count"])
    days = {"day": 1, "week": 7, "month": 30, "year": 365}[match["unit"].lower()]
    return today - timedelta(days=count * days), today + timedelta(days=1)


def _plain_year(match: re.Match[str], _: datetime) -> tuple[datetime, datetime]:
    """Return the year of `in 2023`."""
    return _year_of(int(match["year"]))


#: Patterns with their meanings. The first pattern that matches a part of the text wins, so longer patterns come first.
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
