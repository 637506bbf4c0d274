"""Rendered dates: writes dates in the context: the day and how long ago, the days of dates after their words, today.

Everything counts in whole days, so the same memory renders to the same bytes for a whole day.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from hashlib import blake2b

from msgspec import Struct, field

from recollect.events.local_time import fixed_zone, local_time, zone_label
from recollect.events.storage.bounded_cache import BoundedCache
from recollect.projections.queries.queried_episodes import NamedDate
from recollect.projections.text.date_reading import SURE, DateCandidate, read_dates
from recollect.projections.text.prompt_fence import single_line

#: Characters of a text that are read for dates, and dates that are shown in one line.
_TEXT_CHARS_MAX = 2_000
_SHOWN_MAX = 3
#: Texts whose dates are cached, about 200 bytes each: reading dates takes half a millisecond in a long message.
_CACHED_MAX = 20_000
_DIGEST_BYTES = 16
#: The probability from which words mean a range rather than another one.
_PROBABLE = 0.5
#: The first sign of the scripts without spaces: the radicals of Chinese.
_FIRST_UNSPACED = "\u2e80"
#: What is inserted where in the texts shown last, by the digest of the text and its local time.
_cached_insertions: BoundedCache[tuple[bytes, datetime], tuple[tuple[int, str], ...]] = BoundedCache(_CACHED_MAX)
#: Days up to which an age is given in days, in weeks, and in months.
_IN_DAYS_MAX = 13
_IN_WEEKS_MAX = 59
_IN_MONTHS_MAX = 730
_MONTH_DAYS = 30.44
_YEAR_DAYS = 365.25
#: The dates that messages name, by namespace and id of the message.
NamedDates = Mapping[tuple[str, str], Sequence[NamedDate]]


class RenderContext(Struct, frozen=True, kw_only=True):
    """The time, channel, fence tag and named dates with which a context is rendered."""

    #: The time of the query, in the zone of the asker.
    now: datetime
    #: The channel of the running conversation, such as telegram; None: not known.
    channel: str | None = None
    #: The random part of the tags of the fence.
    random_part: str = ""
    #: A message whose dates were not read yet is not there.
    dates: NamedDates = field(default_factory=dict[tuple[str, str], Sequence[NamedDate]])

    def dates_of(self, namespace: str, messages: Sequence[str]) -> list[NamedDate] | None:
        """Return the dates that some messages name; None: they were not read yet."""
        read = [self.dates[namespace, id] for id in messages if (namespace, id) in self.dates]
        return [date for dates in read for date in dates] if read else None

    def today_line(self) -> str:
        """Return the current day, its weekday and the channel; the same for a whole day."""
        return " | ".join([f"Today: {_day(self.now.date())}", zone_label(self.now), *self._channel()])

    def time_line(self) -> str:
        """Return the current time, weekday, time zone and channel, in the form of `002`."""
        now = self.now
        time = f"{now.hour % 12 or 12}:{now:%M} {'AM' if now.hour < 12 else 'PM'}"
        day = f"{now:%A}, {now:%B} {now.day}, {now.year}"
        return f"[Current time: {' | '.join([time, day, zone_label(now), *self._channel()])}]"

    def day_and_age(self, at_us: int, utc_offset: int) -> str:
        """Return the weekday and the day of a time, and how long ago it was: `Sat 2026-03-14, 3 weeks ago`.

        Parameters:
            utc_offset: minutes east of UTC, in which the time is shown.
        """
        moment = local_time(at_us, fixed_zone(utc_offset))
        shown, age = _day(moment.date()), self._age(moment.date())
        return f"{shown}, {age}" if age else shown

    def _age(self, day: date) -> str:
        """Return how many days before the asker's today a day was; empty for a day after it."""
        days = (self.now.date() - day).days
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

    def _channel(self) -> list[str]:
        """Return the channel, as a list of at most one."""
        return [] if self.channel is None else [single_line(self.channel)]


def _ago(count: int, unit: str) -> str:
    """Return an age such as `1 month ago` or `3 weeks ago`."""
    return f"{count} {unit}{'s' if count > 1 else ''} ago"


def month(at_us: int, utc_offset: int) -> str:
    """Return the month of a time, such as 2026-03."""
    return day(at_us, utc_offset)[:7]


def day(at_us: int, utc_offset: int) -> str:
    """Return the day of a time, such as 2026-03-14."""
    return local_time(at_us, fixed_zone(utc_offset)).date().isoformat()


def with_dates(text: str, sent_at: datetime, named: Sequence[NamedDate] | None = None) -> str:
    """Return `text` with the days of its dates after their words: `on Friday (2023-03-10)`.

    Only what is sure is added, and only what the words do not say themselves: not a date with its year, and not the day
    of the message.

    Parameters:
        sent_at: the local time of the message, which its dates count from.
        named: the dates that its messages name, as they were read; None: the text is read now, by its words alone.
    """
    insertions = _read_insertions(text, sent_at) if named is None else [*_named_insertions(text, sent_at, named)]
    for position, words in reversed(sorted(insertions)[:_SHOWN_MAX]):
        text = f"{text[:position]} ({words}){text[position:]}"
    return text


def _named_insertions(text: str, sent_at: datetime, named: Sequence[NamedDate]) -> Iterator[tuple[int, str]]:
    """Yield the position after the words of each sure date that a message names, and what is written there."""
    probable: dict[str, list[NamedDate]] = {}
    for it in named:
        if it.probability >= _PROBABLE:
            probable.setdefault(it.words, []).append(it)
    for words, dates in probable.items():
        # The same words twice may mean two days.
        if len({date.start_us for date in dates}) > 1 or min(date.probability for date in dates) < SURE:
            continue
        start, end = (local_time(at_us, sent_at.tzinfo or UTC) for at_us in (dates[0].start_us, dates[0].end_us))
        for end_of_words in _ends_of(words, text[:_TEXT_CHARS_MAX]):
            yield from _insertion(text, end_of_words, words, DateCandidate(start, end, dates[0].probability), sent_at)


def _ends_of(words: str, text: str) -> Iterator[int]:
    """Yield where the words end in a text, each time that they are whole words there: no `June 1` in `June 15`."""
    place = text.find(words)
    while place >= 0:
        end = place + len(words)
        if not _is_one_word(text[max(0, place - 1) : place + 1]) and not _is_one_word(text[end - 1 : end + 1]):
            yield end
        place = text.find(words, end)


def _is_one_word(pair: str) -> bool:
    """Return whether two neighbouring signs are of one word; scripts from Chinese on have no spaces between words."""
    return len(pair) > 1 and pair.isalnum() and max(pair) < _FIRST_UNSPACED


def _read_insertions(text: str, sent_at: datetime) -> tuple[tuple[int, str], ...]:
    """Return the same for the dates that the words of a text name."""
    beginning = text[:_TEXT_CHARS_MAX]
    digest = blake2b(beginning.encode(errors="surrogatepass"), digest_size=_DIGEST_BYTES).digest()
    key = (digest, sent_at.replace(tzinfo=None))
    insertions = _cached_insertions.get(key)
    if insertions is None:
        insertions = tuple(
            insertion
            for date in read_dates(beginning, sent_at)
            if date.sure is not None
            for insertion in _insertion(text, date.position + len(date.words), date.words, date.sure, sent_at)
        )[:_SHOWN_MAX]
        _cached_insertions.put(key, insertions)
    return insertions


def _insertion(text: str, end: int, words: str, date: DateCandidate, sent_at: datetime) -> Iterator[tuple[int, str]]:
    """Yield where and what is written of a date whose words end at `end`, unless they say it themselves."""
    if f"{date.start.year:04}" not in words and not _is_today(date, sent_at):
        # `Tuesday's` is one word.
        yield end + 2 * text.startswith(("'s", "’s"), end), _range(date)


def _is_today(date: DateCandidate, sent_at: datetime) -> bool:
    """Return whether a date is the day of its message, which is shown before the message anyway."""
    return date.end - date.start <= timedelta(days=1) and date.start <= sent_at < date.end


def _range(date: DateCandidate) -> str:
    """Return a day, a month, a year, or the first and the last day of another range."""
    start, last = date.start, date.end - timedelta(days=1)
    if start.date() == last.date():
        return f"{start:%Y-%m-%d}"
    if start.day == 1 and date.end.day == 1:
        if (start.year, start.month) == (last.year, last.month):
            return f"{start:%Y-%m}"
        if start.month == 1 and last.month == 12 and start.year == last.year:
            return f"{start.year:04}"
        return f"{start:%Y-%m} to {last:%Y-%m}"
    return f"{start:%Y-%m-%d} to {last:%Y-%m-%d}"


@lru_cache(maxsize=1_024)
def _day(day: date) -> str:
    """Return weekday and day, such as `Sat 2026-03-14`."""
    return f"{day:%a %Y-%m-%d}"
