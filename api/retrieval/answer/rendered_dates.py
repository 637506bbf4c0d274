"""Rendered dates: writes dates in the context: the day and how long ago, the absolute days of relative dates, today.

Everything counts in whole days, so the same memory renders to the same bytes for a whole day.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b

from recollect.events.envelope import DAY_US, datetime_of, microseconds
from recollect.events.storage.bounded_cache import BoundedCache
from recollect.projections.text.date_ranges import DateRange, find_dates
from recollect.projections.text.prompt_fence import single_line

#: Characters of a text that are read for relative dates, and dates that are explained in one line.
_TEXT_CHARS_MAX = 2_000
_EXPLAINED_MAX = 3
#: Texts whose explanations are cached, about 200 bytes each: finding dates takes half a millisecond in a long message.
_EXPLANATIONS_MAX = 20_000
_DIGEST_BYTES = 16
#: The explanations of the texts shown last, by the digest of the text and its time.
_cached_explanations: BoundedCache[tuple[bytes, int], str] = BoundedCache(_EXPLANATIONS_MAX)
#: Days up to which an age is given in days, in weeks, and in months.
_IN_DAYS_MAX = 13
_IN_WEEKS_MAX = 59
_IN_MONTHS_MAX = 730
#: The first and the last moment of the calendar.
_TIME_US_MIN = microseconds(datetime.min.replace(tzinfo=UTC))
_TIME_US_MAX = microseconds(datetime.max.replace(tzinfo=UTC))
_MONTH_DAYS = 30.44
_YEAR_DAYS = 365.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """When a context is rendered, and where."""

    #: The time of the query, in microseconds since 1970 UTC.
    now_us: int
    #: The channel of the running conversation, such as telegram; None: not known.
    channel: str | None = None
    #: The random part of the tags of the fence.
    random_part: str = ""

    def today_line(self) -> str:
        """Return the current day, its weekday and the channel; the same for a whole day."""
        return " | ".join([f"Today: {_day(self._now)}", "UTC", *self._channel()])

    def time_line(self) -> str:
        """Return the current time, weekday, time zone and channel, in the form of `002`."""
        now = self._now
        time = f"{now.hour % 12 or 12}:{now:%M} {'AM' if now.hour < 12 else 'PM'}"
        day = f"{now:%A}, {now:%B} {now.day}, {now.year}"
        return f"[Current time: {' | '.join([time, day, 'UTC', *self._channel()])}]"

    def day_and_age(self, at_us: int) -> str:
        """Return the weekday and the day of a time, and how long ago it was: `Sat 2026-03-14, 3 weeks ago`."""
        age = self._age(at_us)
        return f"{_day(datetime_of(at_us))}, {age}" if age else _day(datetime_of(at_us))

    def _age(self, at_us: int) -> str:
        """Return how long ago a time was; empty for a time after today."""
        days = self.now_us // DAY_US - at_us // DAY_US
        if days < 0:
            return ""
        if days <= 1:
            return "yesterday" if days else "today"
        for longest, length, unit in (
            (_IN_DAYS_MAX, 1, "day"),
            (_IN_WEEKS_MAX, 7, "week"),
            (_IN_MONTHS_MAX, _MONTH_DAYS, "month"),
        ):
            if days <= longest:
                return _ago(int(days / length), unit)
        return _ago(int(days / _YEAR_DAYS), "year")

    @property
    def _now(self) -> datetime:
        """Return the time of the query in UTC; a time zone can move the ends of time out of the calendar."""
        return datetime_of(min(max(self.now_us, _TIME_US_MIN), _TIME_US_MAX))

    def _channel(self) -> list[str]:
        """Return the channel, as a list of at most one."""
        return [] if self.channel is None else [single_line(self.channel)]


def _ago(count: int, unit: str) -> str:
    """Return an age such as `1 month ago` or `3 weeks ago`."""
    return f"{count} {unit}{'s' if count > 1 else ''} ago"


def month(at_us: int) -> str:
    """Return the month of a time, such as 2026-03."""
    return f"{datetime_of(at_us):%Y-%m}"


def explained_dates(text: str, sent_at_us: int) -> str:
    """Return the absolute days of the relative dates in `text`: ` [last Friday: Fri 2023-07-14]`, or an empty text.

    Parameters:
        sent_at_us: the time of the message, which its dates count from.
    """
    beginning = text[:_TEXT_CHARS_MAX]
    key = (blake2b(beginning.encode(errors="surrogatepass"), digest_size=_DIGEST_BYTES).digest(), sent_at_us)
    explanation = _cached_explanations.get(key)
    if explanation is None:
        explanation = _explained(beginning, sent_at_us)
        _cached_explanations.put(key, explanation)
    return explanation


def _explained(text: str, sent_at_us: int) -> str:
    """Return the result of `explained_dates`, which depends on nothing else."""
    sent_at = datetime_of(sent_at_us)
    dates = [date for date in find_dates(text, sent_at) if _is_relative(date, sent_at) and not _is_today(date, sent_at)]
    # The point after a name of a month may end the sentence.
    parts = dict.fromkeys(f"{' '.join(date.text.split()).rstrip('.')}: {_range(date)}" for date in dates)
    return f" [{'; '.join(list(parts)[:_EXPLAINED_MAX])}]" if parts else ""


def _is_relative(date: DateRange, sent_at: datetime) -> bool:
    """Return whether the words of a date do not say which it is: without its year, or its month in the same year."""
    names_month = f"{date.start:%b}".lower() in date.text.lower()
    return str(date.start.year) not in date.text and not (names_month and date.start.year == sent_at.year)


def _is_today(date: DateRange, sent_at: datetime) -> bool:
    """Return whether a date is the day of its message, which stands before the message anyway."""
    return date.end - date.start == timedelta(days=1) and date.start <= sent_at < date.end


def _range(date: DateRange) -> str:
    """Return a day, a month, a year, or the first and the last day of another range."""
    start, last = date.start, date.end - timedelta(days=1)
    if start == last:
        return _day(start)
    if start.day == 1 and date.end.day == 1:
        if (start.year, start.month) == (last.year, last.month):
            return f"{start:%Y-%m}"
        if start.month == 1 and last.month == 12 and start.year == last.year:
            return f"{start.year:04}"
        return f"{start:%Y-%m} to {last:%Y-%m}"
    return f"{start:%Y-%m-%d} to {last:%Y-%m-%d}"


def _day(moment: datetime) -> str:
    """Return weekday and day, such as `Sat 2026-03-14`."""
    return f"{moment:%a %Y-%m-%d}"
