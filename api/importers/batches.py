"""Import batches: append many events in batches of one namespace, each all or none."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from recollect.api.settings import PrivacySettings
from recollect.events.backends.log import EventLog
from recollect.events.envelope import Appended, EventDraft
from recollect.events.errors import Erased
from recollect.events.intake.quarantine import with_quarantine
from recollect.events.intake.screening import screen
from recollect.events.limits import BATCH_EVENTS_MAX, REQUEST_BYTES_MAX
from recollect.events.progress import OnCount


class ImportResult(Struct):
    """The numbers of new and duplicate events of an import."""

    #: Events that the import appended.
    added: int = 0
    #: Events that were in the log already.
    duplicates: int = 0
    #: Events that were erased, or whose subject or namespace was: they are left out.
    erased: int = 0


def append_all(
    log: EventLog, events: Iterable[tuple[str, EventDraft]], privacy: PrivacySettings, on_progress: OnCount
) -> ImportResult:
    """Append (namespace, event) pairs, screened, in their order; consecutive events of one namespace form a batch.

    `events` may raise: the events before the error are appended, then the error is raised.
    """
    imported = ImportResult()
    batch: list[EventDraft] = []
    namespace, size = "", 0

    def flush() -> None:
        nonlocal size
        if batch:
            recorded = _append(log, namespace, batch)
            imported.erased += len(batch) - len(recorded)
            imported.duplicates += sum(event.duplicate for event in recorded)
            imported.added += sum(not event.duplicate for event in recorded)
            batch.clear()
            size = 0
            on_progress(imported.added + imported.duplicates)

    try:
        for event_namespace, event in events:
            is_full = len(batch) == BATCH_EVENTS_MAX or size + len(event.payload) > REQUEST_BYTES_MAX
            if event_namespace != namespace or is_full:
                flush()
                namespace = event_namespace
            screened = screen(event, privacy.policies(event_namespace))
            # An export has the quarantines of its labelled events.
            batch += [screened] if b'"labels"' in event.payload else with_quarantine([screened])
            size += len(event.payload)
    finally:
        flush()
    return imported


def _append(log: EventLog, namespace: str, batch: list[EventDraft]) -> list[Appended]:
    """Append a batch, without the events that an erasure forbids."""
    try:
        return log.append(namespace, batch)
    except Erased:
        if len(batch) == 1:
            return []
    middle = len(batch) // 2
    return [*_append(log, namespace, batch[:middle]), *_append(log, namespace, batch[middle:])]
