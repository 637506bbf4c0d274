"""Tool dates: the time that a model means by a day, a time, or words such as `last week`."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from pydantic import AwareDatetime, TypeAdapter, ValidationError

from recollect.projections.text.date_reading import read_dates

_TIME = TypeAdapter[datetime](AwareDatetime)
#: Characters of a date without a time.
_DATE_CHARS = len("2026-11-20")
_HINT = "give a day or a time with its zone, such as 2026-11-20, 2026-11-20T09:00:00Z, yesterday or last week"


class TimeRange(NamedTuple):
    """The time that words mean: a moment, a day or longer, in UTC unless the words have a zone."""

    start: datetime
    #: Exclusive; the start of a moment.
    end: datetime
    words: str

    @property
    def is_longer_than_a_day(self) -> bool:
        """Whether no day is meant."""
        return self.end - self.start > timedelta(days=1)


def time_range(words: str) -> TimeRange:
    """Return the time that words mean; of the times that they may mean, the most probable one in the past.

    Raises:
        ValueError: they are not a date. Numbers alone could be seconds or years, and are refused.
    """
    text = words.strip()
    if len(text) == _DATE_CHARS and text[:4].isdigit():
        return _day(text)
    if text[:4].isdigit() and "-" in text[1:]:
        try:
            moment = _TIME.validate_python(text)
        except ValidationError:
            raise ValueError(_HINT) from None
        return TimeRange(moment, moment, text)
    now = datetime.now(UTC)
    dates = read_dates(text, now, leaning=-1)
    if len(dates) != 1:
        raise ValueError(_HINT)
    started = [item for item in dates[0].candidates if item.start <= now] or dates[0].candidates
    return TimeRange(started[0].start, started[0].end, text)


def _day(text: str) -> TimeRange:
    try:
        start = datetime.combine(date.fromisoformat(text), datetime.min.time(), UTC)
    except ValueError:
        raise ValueError(_HINT) from None
    return TimeRange(start, start + timedelta(days=1), text)
