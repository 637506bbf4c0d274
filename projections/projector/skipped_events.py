"""Skipped events: those that cannot be projected and that an operator leaves out."""

from __future__ import annotations

from hashlib import sha256

from recollect.events.backends.log import EventLog
from recollect.events.envelope import RecordedEvent

SKIPPED = "event.skipped"


def skip_id(event_id: str) -> str:
    """Return the id of the event that skips the event `event_id`."""
    return f"skip-{sha256(event_id.encode()).hexdigest()[:32]}"


def is_skipped(log: EventLog, event: RecordedEvent) -> bool:
    """Return whether an operator leaves out `event`, whose projection failed; a later version may project it."""
    skip = log.find(event.namespace, skip_id(event.id))
    return skip is not None and skip.type == SKIPPED
