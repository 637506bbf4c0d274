"""Moments: the versions of a namespace that a slider offers, and the number of its episodes over time."""

from __future__ import annotations

from typing import Any

from recollect.events.backends.log import EventLog
from recollect.events.envelope import rfc3339
from recollect.events.errors import InvalidInput
from recollect.projections.queries.snapshot import Snapshot

#: Moments in one answer, each a read of the log and, once it is chosen, a read model of the past.
MOMENTS_MAX = 200
#: The newest versions are all moments, so that the state before a correction can be chosen.
_NEWEST = 12
#: Periods in one answer: as many bars as a wide screen shows.
PERIODS_MAX = 400
_HOUR_US = 3_600_000_000


def list_moments(log: EventLog, namespace: str, limit: int) -> dict[str, Any]:
    """Return up to `limit` versions from the first to the last: evenly spread, and all of the newest ones.

    Each has the times of its event and the type. The text of the event is not returned.

    Raises:
        InvalidInput: `limit` is not from 2 to 200.
    """
    if not 2 <= limit <= MOMENTS_MAX:
        raise InvalidInput(f"give a number from 2 to {MOMENTS_MAX}", field="limit")
    head = log.head(namespace).version
    newest = min(_NEWEST, limit // 2)
    steps = limit - newest
    first_newest = max(1, head - newest + 1)
    spread = {1 + (head - 1) * step // steps for step in range(steps)} if head else set[int]()
    versions = sorted(spread | set(range(first_newest, head + 1)))
    events = [event for version in versions for event in log.read(namespace, after=version - 1, limit=1)]
    items = [
        {
            "version": event.version,
            "type": event.type,
            "recorded_at": rfc3339(event.recorded_at_us),
            "occurred_at": rfc3339(event.occurred_at_us, event.utc_offset or 0),
        }
        for event in events
    ]
    return {"version": head, "items": items, "next": None}


def timeline(snapshot: Snapshot, periods: int) -> dict[str, Any]:
    """Return the number of episodes of each tier in up to `periods` periods of equal length, without empty ones.

    Raises:
        InvalidInput: `periods` is not from 1 to 400.
    """
    if not 1 <= periods <= PERIODS_MAX:
        raise InvalidInput(f"give a number from 1 to {PERIODS_MAX}", field="periods")
    span = snapshot.map.time_span()
    if span is None:
        return {"version": snapshot.version, "items": [], "next": None}
    first_us, last_us = span
    # Whole hours, so that a period has an end that a person reads.
    start_us = first_us - first_us % _HOUR_US
    width_us = max(1, -(-(last_us + 1 - start_us) // (periods * _HOUR_US))) * _HOUR_US
    counts: dict[int, dict[str, int]] = {}
    for period, tier, count in snapshot.map.periods(start_us, width_us):
        counts.setdefault(period, {})[tier] = count
    items = [
        {
            "start": rfc3339(start_us + period * width_us),
            "end": rfc3339(start_us + (period + 1) * width_us),
            "tiers": tiers,
        }
        for period, tiers in sorted(counts.items())
    ]
    return {"version": snapshot.version, "items": items, "next": None}
