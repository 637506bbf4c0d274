"""Date meanings: computes the day ranges that an expression such as `on Friday` or `15 July` may mean.

Every meaning returns all ranges that come into question; which of them is meant is weighed by `date_reading`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import date, datetime, timedelta

from msgspec import Struct

from recollect.projections.text.calendar_ranges import (
    HOLIDAYS,
    Range,
    day_in,
    days,
    month_of,
    quarter_of,
    season_of,
    shifted,
    third_of,
    unit_range,
    week_of,
    weekend_of,
    year_of,
)
from recollect.projections.text.date_words import DateWords

#: Years around the one of the message that 29 February may be in (1896 to 1904 are 8 years apart).
_LEAP_YEARS = 8


class Expression(Struct, frozen=True):
    """An expression that may be a date, before it is read."""

    #: The match of its pattern in folded text.
    match: re.Match[str]
    words: DateWords
    #: The local time of the message.
    sent_at: datetime

    @property
    def today(self) -> date:
        """Return the day of the message."""
        return self.sent_at.date()

    def text(self, group: str) -> str:
        """Return the text of a group; empty when the pattern has no such group or it did not take part."""
        return (self.match[group] or "") if group in self.match.re.groupindex else ""

    def number(self, group: str) -> int:
        """Return the number of a group."""
        return self.words.number(self.text(group))

    @property
    def month(self) -> int:
        """Return the number of the month."""
        return self.words.month(self.text("month"))

    @property
    def weekday(self) -> int:
        """Return the number of the weekday."""
        return self.words.weekday(self.text("weekday"))

    @property
    def unit(self) -> str:
        """Return the English unit."""
        return self.words.unit(self.text("unit"))

    @property
    def side(self) -> int | None:
        """Return -1 for `last`, 0 for `this`, 1 for `next`; None without such a word."""
        text = self.text("side")
        return self.words.side(text) if text else None

    @property
    def year(self) -> int | None:
        """Return the year that the words say, as a number or as `two years ago` or `last year`; None without one."""
        if year := self.text("year"):
            return int(year)
        if count := self.text("years"):
            return self.today.year - self.words.number(count)
        side = self.text("yearside")
        return self.today.year + self.words.side(side) if side else None


#: Computes the ranges that an expression may mean, nearest years and weeks included; empty when it is not a date.
Meaning = Callable[[Expression], Iterable[Range]]


def offset(expression: Expression) -> Iterable[Range]:
    """Return the day of `yesterday`."""
    return [days(expression.today + timedelta(days=expression.words.offset(expression.text("offset"))))]


def of_years(expression: Expression, in_year: Callable[[int], Range | None]) -> list[Range]:
    """Return the ranges of the year that the words say, or of the years around today."""
    if (year := expression.year) is not None:
        years = [year]
    else:
        around = 1 if in_year(2023) is not None else _LEAP_YEARS
        years = [expression.today.year + distance for distance in range(-around, around + 1)]
    ranges = [item for year in years if 0 < year < 9999 and (item := in_year(year)) is not None]
    return _on_weekday(expression, ranges)


def _on_weekday(expression: Expression, ranges: list[Range]) -> list[Range]:
    """Return the ranges that begin on the weekday before the date: `Friday, 3 May`; all when none does."""
    name = expression.text("before")
    if not name:
        return ranges
    wanted = expression.words.weekday(name)
    return [item for item in ranges if item[0].weekday() == wanted] or ranges


def weekday(expression: Expression) -> Iterable[Range]:
    """Return the days of `on Friday`: two before today, today, two after it."""
    return _weekdays(expression.today, expression.weekday, -2, 2)


def _weekdays(today: date, wanted: int, first: int, last: int) -> list[Range]:
    """Return the days of a weekday from the `first` to the `last` one counted from today."""
    ahead = (wanted - today.weekday()) % 7
    weeks = range(first, last + (ahead == 0))
    return [days(today + timedelta(days=ahead + 7 * week)) for week in weeks]


def side_weekday(expression: Expression) -> Iterable[Range]:
    """Return the days of `next Friday`: the one after today and that of next week; of `last Friday` likewise."""
    today, wanted, side = expression.today, expression.weekday, expression.side or 0
    of_week = days(week_of(today, side)[0] + timedelta(days=wanted))
    candidates = [of_week]
    if abs(side) > 1:
        return candidates
    if side:
        candidates += [item for item in _weekdays(today, wanted, -2, 2) if (item[0] - today).days * side > 0]
    else:
        candidates += _weekdays(today, wanted, -1, 1)
    return sorted(set(candidates))


def weekday_of_week(expression: Expression) -> Iterable[Range]:
    """Return the day of `Tuesday next week`."""
    return [days(week_of(expression.today, expression.side or 0)[0] + timedelta(days=expression.weekday))]


def weekday_and_weeks(sign: int) -> Meaning:
    """Return the meaning of `a week on Friday` (sign 1) or `Friday two weeks ago` (sign -1)."""

    def meaning(expression: Expression) -> Iterable[Range]:
        count = expression.number("count") if expression.text("count") else 1
        if expression.words.unit(expression.text("unit") or "week") not in ("week", "fortnight"):
            return []
        weeks = timedelta(weeks=sign * count * (2 if expression.text("unit").startswith("fortnight") else 1))
        if sign < 0:
            day = week_of(expression.today + weeks)[0] + timedelta(days=expression.weekday)
            return [days(day)]
        return [days(item[0] + weeks) for item in _weekdays(expression.today, expression.weekday, 0, 1)[:1]]

    return meaning


def weekdays_ago(expression: Expression) -> Iterable[Range]:
    """Return the day of `two Fridays ago`."""
    last = _weekdays(expression.today, expression.weekday, -1, 0)[0][0]
    return [days(last - timedelta(weeks=expression.number("count") - 1))]


def side_unit(expression: Expression) -> Iterable[Range]:
    """Return the range of `last week`, `next month`, `the week before last` …"""
    unit, side = expression.unit, expression.side or 0
    # The group `twice` marks `the week before last` and `the week after next`.
    count = 2 * side if "twice" in expression.match.re.groupindex else side
    candidates = [unit_range(unit, expression.today, count)]
    if unit == "weekend" and count == side:
        # "Last weekend" and "next weekend" are said of the nearest one and of that of the week.
        candidates += [unit_range(unit, expression.today, other) for other in {0, side, 2 * side} - {count}]
    return candidates


def weekend(expression: Expression) -> Iterable[Range]:
    """Return Saturday and Sunday of `at the weekend`."""
    return [weekend_of(expression.today, weeks) for weeks in (-1, 0, 1)]


def rolling(expression: Expression) -> Iterable[Range]:
    """Return the days of `the past three weeks`, which end with today, or of `the next three weeks`."""
    count = expression.number("count") if expression.text("count") else 1
    today, side = expression.today, expression.side or -1
    counts = [count, count + 1] if is_vague(expression) else [count]
    others = [shifted(today, expression.unit, side * count) for count in counts]
    return [(other, today + timedelta(days=1)) if side < 0 else (today, other + timedelta(days=1)) for other in others]


def away(sign: int) -> Meaning:
    """Return the meaning of `two weeks ago` (sign -1) or `in two weeks` (sign 1): as long as the unit, or a day."""

    def meaning(expression: Expression) -> Iterable[Range]:
        unit, count, today = expression.unit, expression.number("count"), expression.today
        if unit in ("hour", "minute"):
            # The day of the message, which is shown before it anyway.
            return []
        span = unit_range(unit, today, sign * count)
        if is_vague(expression):
            return [(unit_range(unit, today, sign * count - 1)[0], unit_range(unit, today, sign * count + 1)[1]), span]
        return [span] if unit == "day" else [span, days(shifted(today, unit, sign * count))]

    return meaning


def is_vague(expression: Expression) -> bool:
    """Return whether a count such as `a few` is no exact one."""
    word = " ".join(expression.text("count").split())
    return not word[:1].isdigit() and any(part in word for part in ("few", "several", "couple", "paar", "几", "数"))


def day_away(sign: int) -> Meaning:
    """Return the meaning of `two years ago today` (sign -1) or `a week from tomorrow` (sign 1)."""

    def meaning(expression: Expression) -> Iterable[Range]:
        base = expression.today + timedelta(days=expression.words.offset(expression.text("offset")))
        count = expression.number("count") if expression.text("count") else 1
        return [days(shifted(base, expression.unit, sign * count))]

    return meaning


def unit_away(expression: Expression) -> Iterable[Range]:
    """Return the week, month … of `a year ago this week`."""
    day = shifted(expression.today, expression.unit, -expression.number("count"))
    return [unit_range(expression.words.unit(expression.text("what")), day, 0)]


def weeks_and_days(expression: Expression) -> Iterable[Range]:
    """Return the day of `in 2 weeks and 3 days`."""
    later = shifted(expression.today, expression.unit, expression.number("count"))
    return [days(later + timedelta(days=expression.number("more")))]


def half_years_ago(expression: Expression) -> Iterable[Range]:
    """Return the month of `half a year ago` or `a year and a half ago`."""
    return [month_of(expression.today, -18 if expression.text("longer") else -6)]


def day_and_month(expression: Expression) -> list[Range]:
    """Return the day of `5 May 2023`, or of the years around."""
    month, day = expression.month, expression.number("day")
    return of_years(expression, lambda year: day_in(year, month, day))


def days_and_month(expression: Expression) -> Iterable[Range]:
    """Return the days of `3 to 10 May`."""
    count = expression.number("day") - expression.number("first")
    return [(start - timedelta(days=count), end) for start, end in day_and_month(expression) if count > 0]


def day_of_month(expression: Expression) -> Iterable[Range]:
    """Return the day of `the 14th`: of this month, two before and two after it."""
    day, side = expression.number("day"), expression.side
    months = [side] if side is not None else [-2, -1, 0, 1, 2]
    firsts = [month_of(expression.today, shift)[0] for shift in months]
    return _on_weekday(expression, [item for first in firsts if (item := day_in(first.year, first.month, day))])


def last_day(expression: Expression) -> Iterable[Range]:
    """Return the day of `the last day of October`."""
    return [days(end - timedelta(days=1)) for _, end in month(expression)]


def week_with(meaning: Meaning) -> Meaning:
    """Return the meaning of `the week of 5 May` or `the weekend of the 14th`, of the meaning of the day."""

    def of_day(expression: Expression) -> Iterable[Range]:
        return [unit_range(expression.unit, start, 0) for start, _ in meaning(expression)]

    return of_day


def month(expression: Expression) -> list[Range]:
    """Return the month of `May 2023`, or of the years around."""
    number = expression.month
    return of_years(expression, lambda year: month_of(date(year, number, 1)))


def side_month(expression: Expression) -> Iterable[Range]:
    """Return the months of `last May`, `this May` or `next May`."""
    today, side = expression.today, expression.side or 0
    return [item for item in month(expression) if not side or (item[1] <= today if side < 0 else item[0] > today)]


def months(expression: Expression) -> Iterable[Range]:
    """Return the months of `between May and July`."""
    count = (expression.month - expression.words.month(expression.text("first"))) % 12
    return [(month_of(start, -count)[0], end) for start, end in month(expression)]


def part_of(meaning: Meaning) -> Meaning:
    """Return the meaning of `the end of May` or `early 2023`, of the meaning of the whole."""

    def of_whole(expression: Expression) -> Iterable[Range]:
        part = expression.words.part(expression.text("part"))
        return [span for item in meaning(expression) for span in _parts_of(item, part)]

    return of_whole


def _parts_of(span: Range, part: int) -> list[Range]:
    """Return a third of a range, and the first or the last month of a longer one."""
    parts = [third_of(span, part)]
    if (span[1] - span[0]).days > 31 and part != 1:
        parts.append(month_of(span[0] if part == 0 else span[1] - timedelta(days=1)))
    return parts


def week_of_month(expression: Expression) -> Iterable[Range]:
    """Return seven days: `the first week of June` starts on 1 June, `the last week of June` ends on 30 June."""
    part = expression.text("order")
    weeks = 0 if part == "last" else expression.words.number(part)
    return [
        days(start + timedelta(weeks=weeks - 1), 7) if weeks else days(end - timedelta(days=7), 7)
        for start, end in month(expression)
    ]


def part_of_unit(expression: Expression) -> Iterable[Range]:
    """Return a third of `the end of this month`, or what is over or left of `earlier this week`, `later this week`."""
    today, part = expression.today, expression.text("part")
    start, end = unit_range(expression.unit, today, expression.side or 0)
    if part in ("earlier", "later"):
        return [
            (start, end),
            (start, min(end, today + timedelta(days=1))) if part == "earlier" else (max(start, today), end),
        ]
    return _parts_of((start, end), expression.words.part(part))


def season(expression: Expression) -> Iterable[Range]:
    """Return the season of `summer of 2023`, or of the years around."""
    name, today, side = expression.words.season(expression.text("season")), expression.today, expression.side
    ranges = of_years(expression, lambda year: season_of(year, name))
    if side is None:
        return ranges
    return [item for item in ranges if (item[1] <= today if side < 0 else item[1] > today)]


def holiday(expression: Expression) -> Iterable[Range]:
    """Return the days of `at Christmas`, `last Easter`, `Halloween 2023` or `Christmas two years ago`."""
    in_year = HOLIDAYS[expression.words.holiday(expression.text("holiday"))]
    ranges, today, side = of_years(expression, in_year), expression.today, expression.side
    if not side:
        return ranges
    return [item for item in ranges if (item[1] <= today if side < 0 else item[0] > today)]


def quarter(expression: Expression) -> Iterable[Range]:
    """Return the quarter of `Q3 2025`, or of the years around."""
    part = expression.text("order")
    if part == "last":
        return [unit_range("quarter", expression.today, -1)]
    number = expression.words.number(part)
    return of_years(expression, lambda year: quarter_of(year, number)) if number <= 4 else []


def numeric(expression: Expression) -> Iterable[Range]:
    """Return the day of `2023-05-07`, `7.5.2023` or `12.1.`; both days of `3/4/2025`, whose month may come first."""
    first, second = expression.number("day"), expression.number("number")
    pairs = {(first, second), (second, first)} if "swapped" in expression.match.re.groupindex else {(first, second)}
    ranges: list[Range] = []
    for day, number in sorted(pairs):
        if number <= 12:
            ranges += of_years(expression, lambda year, day=day, number=number: day_in(year, number, day))
    return ranges


def month_of_numbers(expression: Expression) -> Iterable[Range]:
    """Return the month of `06/2027`."""
    return [month_of(date(int(expression.text("year")), expression.number("number"), 1))]


def decade(expression: Expression) -> Iterable[Range]:
    """Return the ten years of `the 1990s` or `the 90s`; of two digits the latest decade that has begun."""
    first = expression.number("decade")
    if first < 100:
        first += expression.today.year // 100 * 100
        first -= 100 * (first > expression.today.year)
    return [year_of(first, 10)]


def year(expression: Expression) -> Iterable[Range]:
    """Return the year of `in 2023`."""
    return [year_of(int(expression.text("year")))]


def years(expression: Expression) -> Iterable[Range]:
    """Return the years of `from 2019 to 2021`."""
    return [(year_of(int(expression.text("first")))[0], year_of(int(expression.text("year")))[1])]


def new_year(expression: Expression) -> Iterable[Range]:
    """Return the January of `in the new year`."""
    today = expression.today
    return [month_of(date(today.year + ahead, 1, 1)) for ahead in (0, 1)]
