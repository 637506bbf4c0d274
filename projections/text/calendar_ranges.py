"""Calendar ranges: computes days, weeks, months, seasons and holidays as ranges of calendar days."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable
from datetime import date, timedelta

#: A range of days: its first day, and the day after its last one.
Range = tuple[date, date]

#: The first months of the seasons, of the northern hemisphere.
SEASONS = {"spring": 3, "summer": 6, "fall": 9, "autumn": 9, "winter": 12}


def days(start: date, count: int = 1) -> Range:
    """Return the range of `count` days from `start`."""
    return start, start + timedelta(days=count)


def month_of(start: date, months: int = 0, count: int = 1) -> Range:
    """Return the range of `count` months that begins `months` months after the month of `start`."""
    first, after = (start.year * 12 + start.month - 1 + months + more for more in (0, count))
    return date(first // 12, first % 12 + 1, 1), date(after // 12, after % 12 + 1, 1)


def year_of(year: int, count: int = 1) -> Range:
    """Return the range of `count` years."""
    return date(year, 1, 1), date(year + count, 1, 1)


def week_of(day: date, weeks: int = 0) -> Range:
    """Return the range of the week, from Monday, that is `weeks` weeks after `day`."""
    return days(day + timedelta(days=7 * weeks - day.weekday()), 7)


def weekend_of(day: date, weeks: int = 0) -> Range:
    """Return Saturday and Sunday of the week that is `weeks` weeks after `day`."""
    return days(week_of(day, weeks)[0] + timedelta(days=5), 2)


def quarter_of(year: int, quarter: int) -> Range:
    """Return a quarter of a year; 0 is the last quarter of the year before, 5 the first one of the year after."""
    return month_of(date(year, 1, 1), 3 * (quarter - 1), 3)


def season_of(year: int, name: str) -> Range:
    """Return the three months of a season; the winter of a year begins in its December."""
    return month_of(date(year, SEASONS[name], 1), 0, 3)


def day_in(year: int, month: int, day: int) -> Range | None:
    """Return a day of a year; None for 29 February of most years."""
    return days(date(year, month, day)) if 1 <= day <= monthrange(year, month)[1] else None


def third_of(span: Range, part: int) -> Range:
    """Return the beginning (0), the middle (1) or the end (2) of a range: a third of it, in whole days or months."""
    start, end = span
    length = (end - start).days
    if length > 31:
        months = (end.year - start.year) * 12 + end.month - start.month
        return month_of(start, months * part // 3, months // 3)
    edges = [0, -(-length // 3), -(-2 * length // 3), length]
    if 28 <= length <= 31:
        # The beginning and the middle of a month have ten days.
        edges[1:3] = [10, 20]
    return start + timedelta(days=edges[part]), start + timedelta(days=edges[part + 1])


def unit_range(unit: str, day: date, count: int) -> Range:
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


def shifted(day: date, unit: str, count: int) -> date:
    """Return the day that is `count` days, weeks, months or years after `day`; the last of a month that is shorter."""
    if unit in ("month", "year", "quarter", "decade"):
        months = count * {"month": 1, "quarter": 3, "year": 12, "decade": 120}[unit]
        first, after = month_of(day, months)
        return first + timedelta(days=min(day.day, (after - first).days) - 1)
    return day + timedelta(days=count * {"week": 7, "weekend": 7, "fortnight": 14}.get(unit, 1))


def _easter(year: int) -> date:
    """Return Easter Sunday (anonymous Gregorian computus, Meeus, Astronomical Algorithms, chapter 8)."""
    golden, century, of_century = year % 19, year // 100, year % 100
    skipped_leap_days, remainder = divmod(century, 4)
    correction = (century - (century + 8) // 25 + 1) // 3
    epact = (19 * golden + century - skipped_leap_days - correction + 15) % 30
    weekday = (32 + 2 * remainder + 2 * (of_century // 4) - epact - of_century % 4) % 7
    shift = (golden + 11 * epact + 22 * weekday) // 451
    month, day = divmod(epact + weekday - 7 * shift + 114, 31)
    return date(year, month, day + 1)


def _thanksgiving(year: int) -> date:
    """Return the fourth Thursday of November."""
    first = date(year, 11, 1)
    return first + timedelta(days=(3 - first.weekday()) % 7 + 21)


#: The ranges of holidays in a year, by name without apostrophes; longer names come first, for patterns.
HOLIDAYS: dict[str, Callable[[int], Range]] = {
    "christmas eve": lambda year: days(date(year, 12, 24)),
    "christmas day": lambda year: days(date(year, 12, 25)),
    "boxing day": lambda year: days(date(year, 12, 26)),
    "christmas": lambda year: days(date(year, 12, 24), 3),
    "xmas": lambda year: days(date(year, 12, 24), 3),
    "new years eve": lambda year: days(date(year, 12, 31)),
    "new years day": lambda year: days(date(year, 1, 1)),
    "new years": lambda year: days(date(year, 1, 1)),
    "new year": lambda year: days(date(year, 1, 1)),
    "valentines day": lambda year: days(date(year, 2, 14)),
    "valentines": lambda year: days(date(year, 2, 14)),
    "st patricks day": lambda year: days(date(year, 3, 17)),
    "halloween": lambda year: days(date(year, 10, 31)),
    "black friday": lambda year: days(_thanksgiving(year) + timedelta(days=1)),
    "thanksgiving": lambda year: days(_thanksgiving(year)),
    "good friday": lambda year: days(_easter(year) - timedelta(days=2)),
    "easter sunday": lambda year: days(_easter(year)),
    # From Palm Sunday to Easter Sunday.
    "holy week": lambda year: days(_easter(year) - timedelta(days=7), 8),
    "easter monday": lambda year: days(_easter(year) + timedelta(days=1)),
    # From Good Friday to Easter Monday.
    "easter": lambda year: days(_easter(year) - timedelta(days=2), 4),
}
