"""Appending many events: in batches a namespace, each all or none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from recollect.events.backends.log import EventLog
from recollect.events.envelope import EventDraft
from recollect.events.limits import BATCH_EVENTS_MAX, REQUEST_BYTES_MAX
from recollect.events.progress import OnCount


@dataclass(slots=True)
class ImportResult:
    """What an import did."""

    #: Events recorded now.
    added: int = 0
    #: Events that had been recorded before.
    known: int = 0


def append_all(log: EventLog, events: Iterable[tuple[str, EventDraft]], on_progress: OnCount) -> ImportResult:
    """Append (namespace, event) pairs in their order, events of one namespace in a row as one batch.

    What comes before an error is recorded, the error included in nothing: `events` may raise.
    """
    imported = ImportResult()
    batch: list[EventDraft] = []
    namespace, size = "", 0

    def flush() -> None:
        nonlocal size
        if batch:
            recorded = log.append(namespace, batch)
            imported.known += sum(one.duplicate for one in recorded)
            imported.added += sum(not one.duplicate for one in recorded)
            batch.clear()
            size = 0
            on_progress(imported.added + imported.known)

    try:
        for owner, event in events:
            full = len(batch) == BATCH_EVENTS_MAX or size + len(event.payload) > REQUEST_BYTES_MAX
            if owner != namespace or full:
                flush()
                namespace = owner
            batch.append(event)
            size += len(event.payload)
    finally:
        flush()
    return imported
