"""Local time: the offset from UTC that an event states, in its stored payload, and the times of named zones.

The log has the times of events in UTC. The offset of `occurred_at` is a field of the stored payload, so that it is
hashed, encrypted, archived and erased with it; `RecordedEvent.data` leaves it out, and `as_json` writes it as a part of
`occurred_at`. UTC itself is not stored: a producer that always sends `Z` says nothing about its user's days.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

import orjson

from recollect.events.late_pattern import late_pattern

#: The field of stored payloads with the minutes east of UTC.
OFFSET_FIELD = "utc_offset"
_OFFSET_BYTES = f'"{OFFSET_FIELD}":'.encode()
#: A name of the tz database, such as `America/Argentina/Buenos_Aires`.
_is_zone_name = late_pattern(r"[A-Za-z0-9_+-]{1,32}(?:/[A-Za-z0-9_+-]{1,32}){0,2}").fullmatch
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: The first and the last moment of the calendar.
_FIRST_US = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
_LAST_US = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)


def offset_minutes(moment: datetime) -> int:
    """Return the minutes of an aware time east of UTC; parts of a minute, of times before 1972, are left out."""
    offset = moment.utcoffset()
    return 0 if offset is None else int(offset.total_seconds() / 60)


def with_offset(payload: bytes, occurred_at: datetime | None) -> bytes:
    """Return an encoded payload with the offset of `occurred_at`; as it is for UTC."""
    # Of UTC, the offset is false. A zone that pydantic has read is not the object `UTC`.
    minutes = offset_minutes(occurred_at) if occurred_at is not None and occurred_at.utcoffset() else 0
    if not minutes:
        return payload
    separator = b"" if payload == b"{}" else b","
    return b"%b%b%b%d}" % (payload[:-1], separator, _OFFSET_BYTES, minutes)


def offset_of(payload: bytes) -> int | None:
    """Return the offset in a stored payload; None: it has none."""
    # Quotation marks in a text are escaped, so most payloads are not decoded.
    if _OFFSET_BYTES not in payload:
        return None
    minutes: object = orjson.loads(payload).get(OFFSET_FIELD)
    return minutes if isinstance(minutes, int) else None


def differ_in_offset(payload: bytes, other: bytes) -> bool:
    """Return whether two stored payloads that are not the same bytes differ in nothing but the offset."""
    if _OFFSET_BYTES not in payload and _OFFSET_BYTES not in other:
        return False
    fields, other_fields = orjson.loads(payload), orjson.loads(other)
    return fields | {OFFSET_FIELD: 0} == other_fields | {OFFSET_FIELD: 0}


@lru_cache(maxsize=256)
def zone_named(name: str) -> tzinfo | None:
    """Return the time zone with a name of the tz database, such as `Europe/Berlin`; None for an unknown one."""
    if _is_zone_name(name) is None:
        return None
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        return None


@lru_cache(maxsize=2_048)
def fixed_zone(minutes: int) -> tzinfo:
    """Return the zone that is always `minutes` east of UTC."""
    return UTC if not minutes else timezone(timedelta(minutes=minutes))


def zone_offset(name: object, at_us: int) -> int | None:
    """Return the minutes east of UTC of the zone `name` at a time; None when it names no zone."""
    zone = zone_named(name) if isinstance(name, str) else None
    return None if zone is None else offset_minutes(local_time(at_us, zone))


def local_time(at_us: int, zone: tzinfo) -> datetime:
    """Return the time `at_us` microseconds after 1970 in a zone; at the ends of the calendar, its last day in UTC."""
    try:
        return (_EPOCH + timedelta(microseconds=at_us)).astimezone(zone)
    except OverflowError:
        return _EPOCH + timedelta(microseconds=min(max(at_us, _FIRST_US), _LAST_US))


def zone_label(moment: datetime) -> str:
    """Return the name of a time's zone: `UTC`, `Europe/Berlin`, or an offset such as `UTC-08:00`."""
    key: str | None = getattr(moment.tzinfo, "key", None)
    return key or str(moment.tzinfo)
