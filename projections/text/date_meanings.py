"""Date meanings: computes the time ranges that the patterns of `date_ranges` mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from recollect.projections.text.calendar_ranges import (
    HOLIDAYS,
    Range,
    Tense,
    date_of,
    day_of,
    days,
    month_of,
    nearest,
    of_nearest_year,
    quarter_of,
    season_of,
    week_of,
    weekend_of,
    year_of,
)
from recollect.projections.text.date_words import (
    ORDINALS,
    VAGUE_COUNTS,
    count_of,
    month_number,
    shift_of,
    unit_of,
    weekday_number,
    weekday_number_of_prefix,
)


class Reading(NamedTuple):
    """How a date is read: the time that it counts from, and the tense of its sentence, read when needed."""

    sent_at: datetime
    tense: Callable[[], Tense]

    @property
    def today(self) -> datetime:
        """Return midnight UTC of the day of the message."""
        return day_of(self.sent_at)


#: Computes the range of a match; None when the match is not a date.
Meaning = Callable[[re.Match[str], Reading], Range | None]


#: Days of the units in `the last three weeks`; 1 for shorter units.
_LENGTHS = {"week": 7, "weekend": 7, "fortnight": 14, "month": 30, "quarter": 91, "year": 365, "decade": 3652}
#: Deletes apostrophes from the names of holidays.
_NO_APOSTROPHES = str.maketrans("", "", "'’")


def simple(offset: int) -> Meaning:
    """Return the meaning of a single day, `offset` days after today."""
    return lambda _, reading: days(reading.today + timedelta(days=offset))


def side_weekday(match: re.Match[str], reading: Reading) -> Range:
    """Return the day of `last Friday` (before today), `next Friday` (after today) or `this Friday` (today or later)."""
    today, wanted = reading.today, weekday_number(match["weekday"])
    shift = shift_of(match["side"])
    if shift < 0:
        return days(today - timedelta(days=(today.weekday() - wanted - 1) % 7 + 1))
    if match["side"].lower() == "next":
        return days(today + timedelta(days=(wanted - today.weekday() - 1) % 7 + 1))
    return days(today + timedelta(days=(wanted - today.weekday()) % 7))


def weekdays_ago(match: re.Match[str], reading: Reading) -> Range:
    """Return the day of `two Fridays ago`."""
    today, wanted = reading.today, weekday_number(match["weekday"])
    last = today - timedelta(days=(today.weekday() - wanted - 1) % 7 + 1)
    return days(last - timedelta(weeks=count_of(match["count"]) - 1))


def weekday(match: re.Match[str], reading: Reading) -> Range:
    """Return the day of `on Friday`: before or after today by the tense, else the nearest, which may be today."""
    today, tense = reading.today, reading.tense()
    ahead = (weekday_number(match["weekday"]) - today.weekday()) % 7
    if tense == "past":
        return days(today + timedelta(days=ahead - 7))
    if tense in ("future", "present"):
        return days(today + timedelta(days=ahead or 7))
    return days(today + timedelta(days=ahead if ahead <= 3 else ahead - 7))


def weekday_of_week(match: re.Match[str], reading: Reading) -> Range:
    """Return the day of `Tuesday next week`."""
    monday, _ = week_of(reading.today, shift_of(match["side"]))
    return days(monday + timedelta(days=weekday_number(match["weekday"])))


def side_unit(match: re.Match[str], reading: Reading) -> Range:
    """Return the range of `last week`, `next month`, `the week before last` …; the last 7 days for `the past week`."""
    what, shift = unit_of(match["what"]), shift_of(match["side"])
    if match["side"].lower() == "past" and what != "weekend":
        return rolling(match, reading)
    # The group `twice` marks `the week before last` and `the week after next`.
    return unit_range(what, reading.today, 2 * shift if "twice" in match.re.groupindex else shift)


def rolling(match: re.Match[str], reading: Reading) -> Range:
    """Return the days of `in the last month` up to today."""
    return reading.today - timedelta(days=_LENGTHS[match["what"].lower()]), reading.today + timedelta(days=1)


def unit_range(unit: str, day: datetime, count: int) -> Range:
    """Return the day, week, month … that is `count` units after the one of `day`, as long as the unit."""
    match unit:
        case "week" | "fortnight":
            return week_of(day, count * (2 if unit == "fortnight" else 1))
        case "weekend":
            return weekend_of(day, count)
        case "month":
            return month_of(day, count)
        case "quarter":
            return quarter_of(day.year, (day.month - 1) // 3 + 1 + count)
        case "year":
            return year_of(day.year + count)
        case "decade":
            return year_of((day.year // 10 + count) * 10, 10)
        case _:
            return days(day + timedelta(days=count))


def part_of_unit(match: re.Match[str], reading: Reading) -> Range:
    """Return a third of `the end of this month`, or what is over or left of `earlier this week`, `later this week`."""
    start, end = unit_range(match["what"].lower(), reading.today, shift_of(match["side"] or "this"))
    part = match["part"].lower()
    if part == "earlier":
        return start, min(end, reading.today + timedelta(days=1))
    if part == "later":
        return max(start, reading.today), end
    return _third(start, end, part)


def _third(start: datetime, end: datetime, part: str) -> Range:
    """Return the beginning, the middle or the end of a range: a third of it, in whole days."""
    length = (end - start).days
    edges = [0, -(-length // 3), -(-2 * length // 3), length]
    if 28 <= length <= 31:
        # The beginning and the middle of a month have ten days.
        edges[1:3] = [10, 20]
    third = {"middle": 1, "mid": 1, "end": 2, "late": 2}.get(part, 0)
    return start + timedelta(days=edges[third]), start + timedelta(days=edges[third + 1])


def side_month(match: re.Match[str], reading: Reading) -> Range:
    """Return the month of `last May`, `this May` or `next May`."""
    today, wanted, shift = reading.today, month_number(match["month"]), shift_of(match["side"])
    past, ahead = shift < 0 and wanted >= today.month, shift > 0 and wanted <= today.month
    return month_of(today.replace(year=today.year - past + ahead, month=wanted, day=1))


def side_season(match: re.Match[str], reading: Reading) -> Range:
    """Return the three months of `last summer`, `this summer` or `next summer`."""
    today, shift = reading.today, shift_of(match["side"])
    before, same, after = (season_of(today.year + years, match["season"]) for years in (-1, 0, 1))
    if shift < 0:
        return before if same[1] > today else same
    if shift > 0:
        return after if same[0] <= today else same
    # The winter of the year before may not be over.
    return before if before[1] > today else same


def ago(match: re.Match[str], reading: Reading) -> Range:
    """Return the range of `two weeks ago`; `a few days ago` is a day more or less."""
    return _away(match, reading, -1)


def ahead(match: re.Match[str], reading: Reading) -> Range | None:
    """Return the range of `in two weeks`; None in a sentence about the past, where it is a duration."""
    return None if reading.tense() == "past" else _away(match, reading, 1)


def _away(match: re.Match[str], reading: Reading, sign: int) -> Range:
    """Return the day, week, month … at a distance from today, as long as the unit: `two weeks ago` is a week."""
    unit, count = match["unit"].lower(), count_of(match["count"])
    if unit in ("hour", "minute"):
        return days(day_of(reading.sent_at + sign * timedelta(**{f"{unit}s": count})))
    margin = 1 if " ".join(match["count"].lower().split()) in VAGUE_COUNTS else 0
    nearer, further = (unit_range(unit, reading.today, sign * (count + step)) for step in (-margin, margin))
    return min(nearer, further)[0], max(nearer, further)[1]


def half_years_ago(match: re.Match[str], reading: Reading) -> Range:
    """Return the month of `half a year ago` or `a year and a half ago`."""
    return month_of(reading.today, -18 if match["more"] else -6)


def day_and_month(match: re.Match[str], reading: Reading) -> Range | None:
    """Return the day of `5 May 2023`; without a year the one that the tense says."""
    month, day = month_number(match["month"]), int(match["day"])
    if match["year"]:
        return days(datetime(int(match["year"]), month, day, tzinfo=UTC))
    this_year = reading.today.year
    around = (date_of(year, month, day) for year in (this_year - 1, this_year, this_year + 1))
    return _on_weekday(match, around, reading) or of_nearest_year(
        lambda year: None if (date := date_of(year, month, day)) is None else days(date),
        reading.today,
        reading.tense(),
    )


def _on_weekday(match: re.Match[str], dates: Iterable[datetime | None], reading: Reading) -> Range | None:
    """Return the nearest of `dates` that falls on the weekday before the date; None without that weekday."""
    name = match.groupdict().get("before")
    if name is None:
        return None
    wanted = weekday_number_of_prefix(name)
    fitting = [days(date) for date in dates if date is not None and date.weekday() == wanted]
    return nearest(fitting, reading.today, None) if fitting else None


def days_and_month(match: re.Match[str], reading: Reading) -> Range | None:
    """Return the days of `3 to 10 May`."""
    last = day_and_month(match, reading)
    count = int(match["day"]) - int(match["first"]) + 1
    return None if last is None or count < 2 else (last[1] - timedelta(days=count), last[1])


def day_of_month(match: re.Match[str], reading: Reading) -> Range | None:
    """Return the day of `the 14th`: of this month, the one before or the one after, by the tense."""
    day = int(match["day"])
    months = (month_of(reading.today, months)[0] for months in (-2, -1, 0, 1, 2))
    dates = [date for first in months if (date := date_of(first.year, first.month, day)) is not None]
    date = _on_weekday(match, dates, reading) or (
        nearest(map(days, dates), reading.today, reading.tense()) if dates else None
    )
    what = match.groupdict().get("what")
    if date is None or what is None:
        return date
    return weekend_of(date[0]) if what.lower() == "weekend" else week_of(date[0])


def week_with_date(match: re.Match[str], reading: Reading) -> Range | None:
    """Return the week or weekend of `the weekend of 5 May`."""
    date = day_and_month(match, reading)
    if date is None:
        return None
    return weekend_of(date[0]) if match["what"].lower() == "weekend" else week_of(date[0])


def weekend(_: re.Match[str], reading: Reading) -> Range | None:
    """Return Saturday and Sunday of `at the weekend`, by the tense."""
    candidates = [weekend_of(reading.today, weeks) for weeks in (-1, 0, 1)]
    return nearest(candidates, reading.today, reading.tense())


def month_and_year(match: re.Match[str], reading: Reading) -> Range | None:
    """Return the month of `May 2023`; without a year the one that the tense says."""
    month = month_number(match["month"])
    if match["year"]:
        return month_of(datetime(int(match["year"]), month, 1, tzinfo=UTC))
    return of_nearest_year(lambda year: month_of(datetime(year, month, 1, tzinfo=UTC)), reading.today, reading.tense())


def months(match: re.Match[str], reading: Reading) -> Range | None:
    """Return the months of `between May and July`."""
    end = month_and_year(match, reading)
    if end is None:
        return None
    months = (month_number(match["month"]) - month_number(match["first"])) % 12
    return month_of(end[0], -months)[0], end[1]


def numeric_date(match: re.Match[str], _: Reading) -> Range:
    """Return the day of `2023-05-07` or `7.5.2023`."""
    return days(datetime(int(match["year"]), int(match["number"]), int(match["day"]), tzinfo=UTC))


def slashed_date(match: re.Match[str], _: Reading) -> Range | None:
    """Return the day of `25/12/2023` or `12/25/2023`; None when the first number may be the month or the day."""
    first, second = int(match["first"]), int(match["second"])
    if first <= 12 and second <= 12 and first != second:
        return None
    return days(datetime(int(match["year"]), min(first, second), max(first, second), tzinfo=UTC))


def _years_away(match: re.Match[str], reading: Reading) -> int:
    """Return the year of `two years ago` or `last year`."""
    return reading.today.year + (shift_of(match["shift"]) if match["shift"] else -count_of(match["count"]))


def day_years_ago(match: re.Match[str], reading: Reading) -> Range:
    """Return the day of `5 May last year`."""
    return days(datetime(_years_away(match, reading), month_number(match["month"]), int(match["day"]), tzinfo=UTC))


def month_years_ago(match: re.Match[str], reading: Reading) -> Range:
    """Return the month of `two years ago in May`."""
    return month_of(datetime(_years_away(match, reading), month_number(match["month"]), 1, tzinfo=UTC))


def season_years_ago(match: re.Match[str], reading: Reading) -> Range:
    """Return the season of `last year in the summer`."""
    return season_of(_years_away(match, reading), match["season"])


def season_of_year(match: re.Match[str], reading: Reading) -> Range | None:
    """Return the season of `summer of 2023`; without a year the next one for a plan, else the last that has begun."""
    if match["year"]:
        return season_of(int(match["year"]), match["season"])
    return of_nearest_year(lambda year: season_of(year, match["season"]), reading.today, reading.tense() or "past")


def holiday(match: re.Match[str], reading: Reading) -> Range | None:
    """Return the days of `at Christmas`, `last Easter`, `Halloween 2023` or `Christmas two years ago`."""
    in_year, groups = HOLIDAYS[match["holiday"].lower().translate(_NO_APOSTROPHES)], match.groupdict()
    if groups.get("year"):
        return in_year(int(match["year"]))
    if groups.get("shift") or groups.get("count"):
        return in_year(_years_away(match, reading))
    if not groups.get("side"):
        return of_nearest_year(in_year, reading.today, reading.tense())
    shift, today = shift_of(match["side"]), reading.today
    if shift < 0:
        return max(item for year in (today.year - 1, today.year) if (item := in_year(year))[1] <= today)
    if shift > 0:
        return min(item for year in (today.year, today.year + 1) if (item := in_year(year))[0] > today)
    return in_year(today.year)


def week_of_month(match: re.Match[str], reading: Reading) -> Range | None:
    """Return seven days: `the first week of June` starts on 1 June, `the last week of June` ends on 30 June."""
    month = month_and_year(match, reading)
    if month is None:
        return None
    part = match["part"].lower()
    if part == "last":
        return month[1] - timedelta(days=7), month[1]
    return days(month[0] + timedelta(weeks=ORDINALS.index(part)), 7)


def part_of_month(match: re.Match[str], reading: Reading) -> Range | None:
    """Return a third of a month: `the end of May`, `early May`."""
    month = month_and_year(match, reading)
    return None if month is None else _third(*month, match["part"].lower())


def part_of_year(match: re.Match[str], _: Reading) -> Range:
    """Return four months of a year: its beginning, middle or end."""
    first = 1 + 4 * {"middle": 1, "mid": 1, "end": 2, "late": 2}.get(match["part"].lower(), 0)
    start = datetime(int(match["year"]), first, 1, tzinfo=UTC)
    return start, month_of(start, 3)[1]


def quarter(match: re.Match[str], reading: Reading) -> Range | None:
    """Return the quarter of `Q3 2025`; without a year the one that the tense says."""
    part = match["part"].lower()
    if part == "last":
        return unit_range("quarter", reading.today, -1)
    number = int(part) if part.isdecimal() else ORDINALS.index(part) + 1
    if match["year"]:
        return quarter_of(int(match["year"]), number)
    return of_nearest_year(lambda year: quarter_of(year, number), reading.today, reading.tense())


def decade(match: re.Match[str], reading: Reading) -> Range:
    """Return the ten years of `the 1990s` or `the 90s`; of two digits the latest decade that has begun."""
    decade = int(match["decade"])
    if decade < 100:
        decade += reading.today.year // 100 * 100
        decade -= 100 * (decade > reading.today.year)
    return year_of(decade, 10)


def last_few(match: re.Match[str], reading: Reading) -> Range:
    """Return the range of `the last three weeks`, which ends with today, or of `the next three weeks`."""
    length = timedelta(days=count_of(match["count"]) * _LENGTHS.get(match["unit"].lower(), 1))
    if shift_of(match["side"]) > 0:
        return reading.today, reading.today + length
    return reading.today - length, reading.today + timedelta(days=1)


def plain_year(match: re.Match[str], _: Reading) -> Range:
    """Return the year of `in 2023`."""
    return year_of(int(match["year"]))


def years(match: re.Match[str], _: Reading) -> Range:
    """Return the years of `from 2019 to 2021`."""
    return year_of(int(match["first"]))[0], year_of(int(match["year"]))[1]
