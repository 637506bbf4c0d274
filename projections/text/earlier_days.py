"""Earlier days: the days with a month, in a text and the messages before it, from which `the 11th` is resolved.

`Flying on 9 October`, and in the next message `the hike is on the 11th`: such days add candidates to an expression
without a month, and inputs to its reading. A month without a year names a day of each of the years around.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta

from recollect.projections.text.calendar_ranges import Range, day_in, days
from recollect.projections.text.date_patterns import DateReading, possible_dates

#: Returns the days that messages name, the latest last.
EarlierDays = Callable[[], Sequence[date]]
#: Messages before one whose days are kept, and days of them.
EARLIER_MESSAGES_MAX = 8
_DAYS_MAX = 12
#: Kinds of expressions that name a month or a holiday; so do all that are a month long.
_NAMING = ("monthday", "range", "numeric", "dotted", "slashed", "holiday", "month", "last.day", "week.month")
_MONTH_DAYS = range(28, 32)
#: Kinds of expressions whose month, or week, earlier days may decide.
_FOLLOWING = ("day.of.month", "weekday")
#: Days from the message to an earlier day, at most: a day of May 2019 decides nothing.
_DISTANCE_DAYS_MAX = 400
#: Days between a weekday and the earlier day that it follows, at most.
_WEEK_DAYS = 7


def days_named(text: str, sent_at: datetime) -> tuple[date, ...]:
    """Return the days that a message names for the messages after it."""
    return tuple(_named(possible_dates(text, sent_at)))


def _named(readings: Iterable[DateReading]) -> Iterator[date]:
    for reading in readings:
        is_month = all((end - start).days in _MONTH_DAYS for start, end in reading.candidates)
        if is_month or reading.kind.startswith(_NAMING):
            today = reading.expression.today
            yield from (start for start, _ in reading.candidates if abs((start - today).days) <= _DISTANCE_DAYS_MAX)


def follow(readings: Sequence[DateReading], earlier: Sequence[date]) -> list[tuple[DateReading, Sequence[date]]]:
    """Return each expression with the candidates that follow earlier days, and with these days.

    Parameters:
        earlier: the days that the messages before named, the latest last.
    """
    named = [*earlier]
    followed: list[tuple[DateReading, Sequence[date]]] = []
    for reading in readings:
        before = tuple(named[-_DAYS_MAX:])
        followed.append((_with_candidates(reading, before), before))
        named += _named((reading,))
    return followed


def _with_candidates(reading: DateReading, earlier: Sequence[date]) -> DateReading:
    """Return an expression with the candidates that follow the earlier days."""
    if not earlier or not reading.kind.startswith(_FOLLOWING) or reading.expression.side is not None:
        return reading
    more = {item for day in earlier for item in _following(reading, day)}
    return reading._replace(candidates=tuple(sorted({*reading.candidates, *more})))


def _following(reading: DateReading, earlier: date) -> Iterator[Range]:
    """Yield the days of an expression in the month of an earlier day, or in the weeks before and after it."""
    expression = reading.expression
    if reading.kind.startswith("weekday"):
        ahead = (expression.weekday - earlier.weekday()) % 7
        yield from (days(earlier + timedelta(days=ahead + days_more)) for days_more in (-7, 0))
        return
    item = day_in(earlier.year, earlier.month, expression.number("day"))
    name = expression.text("before")
    if item is not None and (not name or expression.words.weekday(name) == item[0].weekday()):
        yield item


def follows(start: date, earlier: Sequence[date]) -> bool:
    """Return whether a day is in the month of an earlier day, or within a week of it."""
    return any(
        (start.year, start.month) == (day.year, day.month) or abs((start - day).days) < _WEEK_DAYS for day in earlier
    )


def earlier_cues(reading: DateReading, earlier: Sequence[date]) -> Iterator[str]:
    """Yield the cues of earlier days: that there are some, and whether the candidate nearest to today follows them."""
    if not earlier:
        return
    group = reading.kind.partition(".")[0]
    today = reading.expression.today
    nearest = min((start for start, _ in reading.candidates), key=lambda start: abs((start - today).days))
    for name in ("earlier_days", "earlier_near" if follows(nearest, earlier) else "earlier_far"):
        yield name
        yield f"{group},{name}"
