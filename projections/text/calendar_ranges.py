"""Calendar ranges: computes days, weeks, months, seasons and holidays as time ranges in UTC."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Literal

#: A time range: its start and its end, exclusive.
Range = tuple[datetime, datetime]
#: Whether a text is about what was or about what will be. Weaker signs: its verbs are in the present, or it announces
#: something without a verb. None when its words do not say so.
Tense = Literal["past", "future", "present", "announced"] | None

#: The first months of the seasons, of the northern hemisphere.
SEASONS = {"spring": 3, "summer": 6, "fall": 9, "autumn": 9, "winter": 12}
#: Years around the present that a date without a year may be in; 29 February can be 8 years away (1896 to 1904).
_YEARS_AROUND = 8


def day_of(moment: datetime) -> datetime:
    """Return midnight UTC of a moment's day."""
    return moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def days(start: datetime, count: int = 1) -> Range:
    """Return the range of `count` days from `start`."""
    return start, start + timedelta(days=count)


def month_of(start: datetime, months: int = 0) -> Range:
    """Return the range of the month that is `months` months after `start`."""
    number = start.year * 12 + start.month - 1 + months
    first = start.replace(year=number // 12, month=number % 12 + 1, day=1)
    return first, first + timedelta(days=monthrange(first.year, first.month)[1])


def year_of(year: int, count: int = 1) -> Range:
    """Return the range of `count` years."""
    return datetime(year, 1, 1, tzinfo=UTC), datetime(year + count, 1, 1, tzinfo=UTC)


def week_of(day: datetime, weeks: int = 0) -> Range:
    """Return the range of the week, from Monday, that is `weeks` weeks after `day`."""
    return days(day - timedelta(days=day.weekday()) + timedelta(weeks=weeks), 7)


def weekend_of(day: datetime, weeks: int = 0) -> Range:
    """Return Saturday and Sunday of the week that is `weeks` weeks after `day`."""
    return days(week_of(day, weeks)[0] + timedelta(days=5), 2)


def quarter_of(year: int, quarter: int) -> Range:
    """Return a quarter of a year; 0 is the last quarter of the year before, 5 the first one of the year after."""
    start, _ = month_of(datetime(year, 1, 1, tzinfo=UTC), 3 * (quarter - 1))
    return start, month_of(start, 2)[1]


def season_of(year: int, name: str) -> Range:
    """Return the three months of a season; the winter of a year begins in its December."""
    start = datetime(year, SEASONS[name.lower()], 1, tzinfo=UTC)
    return start, month_of(start, 2)[1]


def date_of(year: int, month: int, day: int) -> datetime | None:
    """Return a day of a year; None for 29 February of most years."""
    try:
        return datetime(year, month, day, tzinfo=UTC)
    except ValueError:
        return None


def nearest(ranges: Iterable[Range], today: datetime, tense: Tense) -> Range | None:
    """Return the range that a text means when it names no year.

    Past: the latest range that has begun. Future: the earliest range that has not ended. Otherwise the range whose
    middle is nearest to today. None when no range qualifies.
    """
    if tense == "past":
        return max((item for item in ranges if item[0] <= today), default=None)
    if tense in ("future", "present"):
        return min((item for item in ranges if item[1] > today), default=None)
    return min(ranges, key=lambda item: abs(item[0] + (item[1] - item[0] - timedelta(days=1)) / 2 - today))


def of_nearest_year(in_year: Callable[[int], Range | None], today: datetime, tense: Tense) -> Range | None:
    """Return the range `in_year(year)` of the year that a text means when it names none.

    Weak signs of a plan do not mean the next year when the range is hardly over: "concert 14 August", on 16 August.
    """
    years = range(max(1, today.year - _YEARS_AROUND), min(9998, today.year + _YEARS_AROUND) + 1)
    ranges = [item for year in years if (item := in_year(year)) is not None]
    if tense in ("present", "announced"):
        since = today - _HARDLY_OVER
        return min((item for item in ranges if item[1] > since), default=None)
    return nearest(ranges, today, tense)


#: How long ago something may be that only weak signs make a plan.
_HARDLY_OVER = timedelta(days=14)


def _easter(year: int) -> datetime:
    """Return Easter Sunday (anonymous Gregorian computus, Meeus, Astronomical Algorithms, chapter 8)."""
    golden, century, of_century = year % 19, year // 100, year % 100
    skipped_leap_days, remainder = divmod(century, 4)
    correction = (century - (century + 8) // 25 + 1) // 3
    epact = (19 * golden + century - skipped_leap_days - correction + 15) % 30
    weekday = (32 + 2 * remainder + 2 * (of_century // 4) - epact - of_century % 4) % 7
    shift = (golden + 11 * epact + 22 * weekday) // 451
    month, day = divmod(epact + weekday - 7 * shift + 114, 31)
    return datetime(year, month, day + 1, tzinfo=UTC)


def _thanksgiving(year: int) -> datetime:
    """Return the fourth Thursday of November."""
    first = datetime(year, 11, 1, tzinfo=UTC)
    return first + timedelta(days=(3 - first.weekday()) % 7 + 21)


#: The ranges of holidays in a year, by name without apostrophes; longer names come first, for patterns.
HOLIDAYS: dict[str, Callable[[int], Range]] = {
    "christmas eve": lambda year: days(datetime(year, 12, 24, tzinfo=UTC)),
    "christmas day": lambda year: days(datetime(year, 12, 25, tzinfo=UTC)),
    "boxing day": lambda year: days(datetime(year, 12, 26, tzinfo=UTC)),
    "christmas": lambda year: days(datetime(year, 12, 24, tzinfo=UTC), 3),
    "xmas": lambda year: days(datetime(year, 12, 24, tzinfo=UTC), 3),
    "new years eve": lambda year: days(datetime(year, 12, 31, tzinfo=UTC)),
    "new years day": lambda year: days(datetime(year, 1, 1, tzinfo=UTC)),
    "new years": lambda year: days(datetime(year, 1, 1, tzinfo=UTC)),
    "new year": lambda year: days(datetime(year, 1, 1, tzinfo=UTC)),
    "valentines day": lambda year: days(datetime(year, 2, 14, tzinfo=UTC)),
    "halloween": lambda year: days(datetime(year, 10, 31, tzinfo=UTC)),
    "thanksgiving": lambda year: days(_thanksgiving(year)),
    # From Good Friday to Easter Monday.
    "easter": lambda year: days(_easter(year) - timedelta(days=2), 4),
}
