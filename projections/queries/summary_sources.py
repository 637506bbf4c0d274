"""Summary sources: read the source events of a summary from the log, including expired episodes."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.events.backends.log import EventLog
from recollect.events.envelope import RecordedEvent

#: Most events between two sources that one read includes: another read costs more than these events.
_GAP_EVENTS = 50


def read_events(log: EventLog, namespace: str, versions: Sequence[int]) -> list[RecordedEvent]:
    """Return the events of `namespace` with these ascending `versions`, in order.

    Raises:
        StorageError: the log cannot be read.
    """
    events: list[RecordedEvent] = []
    for run in _runs(versions):
        wanted = set(run)
        span = log.read(namespace, after=run[0] - 1, limit=run[-1] - run[0] + 1)
        events += [event for event in span if event.version in wanted]
    return events


def _runs(versions: Sequence[int]) -> list[list[int]]:
    """Split `versions` at gaps of more than `_GAP_EVENTS`."""
    runs: list[list[int]] = []
    for version in versions:
        if runs and version - runs[-1][-1] <= _GAP_EVENTS:
            runs[-1].append(version)
        else:
            runs.append([version])
    return runs
