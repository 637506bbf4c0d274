"""Overlay log: appends in memory over a log that stays unchanged, so that a job can be tried."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from recollect.events.backends.group_commit_writer import AppendRequest
from recollect.events.backends.log import EventLog
from recollect.events.backends.staging import Key, StagedHead, Staging, StoredEvent, StoredId
from recollect.events.envelope import Appended, EventDraft, Head, RecordedEvent, now_us
from recollect.events.errors import NotSupported
from recollect.events.progress import OnProgress
from recollect.events.storage.archive import Archive


class OverlayLog:
    """One namespace of a log with further events in memory, which are lost with this object.

    It gives the guarantees of `EventLog` except that appends are not durable. Other namespaces are not changed.

    Parameters:
        log: the log below; its appends after this moment are not seen.
        namespace: the namespace to append to.
    """

    def __init__(self, log: EventLog, namespace: str) -> None:
        self._log = log
        self._namespace = namespace
        self._base = log.head(namespace)
        newest = log.read(namespace, after=self._base.version - 1, limit=1) if self._base.version else []
        recorded_at_us = newest[0].recorded_at_us if newest else 0
        self._head = StagedHead(namespace, namespace, self._base.version, self._base.hash, recorded_at_us)
        # All appends are staged as one transaction that is never committed.
        self._staging = Staging(now_us(), [self._head], str, self._find_row)
        self._lock = threading.Lock()
        self.log_id = log.log_id
        self.keys = log.keys

    @property
    def archive(self) -> Archive | None:
        """Return the archive of the log below."""
        return self._log.archive

    def append(
        self, namespace: str, drafts: Sequence[EventDraft], *, expected_version: int | None = None
    ) -> list[Appended]:
        """Stage `drafts`, all or none, and return the version of each; see `EventLog.append`.

        Raises:
            NotSupported: another namespace than that of this log.
        """
        if namespace != self._namespace:
            raise NotSupported(f"only events of {self._namespace!r} can be tried here", field="namespace")
        request = AppendRequest(namespace, drafts, expected_version, threading.Lock())
        with self._lock:
            self._staging.stage([request])
        return request.answer()

    async def append_async(
        self, namespace: str, drafts: Sequence[EventDraft], *, expected_version: int | None = None
    ) -> list[Appended]:
        """Stage `drafts`; see `append`."""
        return self.append(namespace, drafts, expected_version=expected_version)

    def read(self, namespace: str, *, after: int = 0, limit: int = 1_000) -> list[RecordedEvent]:
        """Return up to `limit` events of `namespace` with versions over `after`, in order; see `EventLog.read`."""
        if namespace != self._namespace:
            return self._log.read(namespace, after=after, limit=limit)
        below = max(0, min(limit, self._base.version - after))
        events = self._log.read(namespace, after=after, limit=below) if below else []
        if len(events) < below:
            return events
        first = max(0, after - self._base.version)
        return [*events, *map(self._event, self._staging.rows[first : first + limit - len(events)])]

    def read_stored(self, namespace: str, *, after: int = 0, limit: int = 1_000) -> list[RecordedEvent]:
        """Return events as `read` does; appended ones are in memory, and not encrypted."""
        return self.read(namespace, after=after, limit=limit)

    def find(self, namespace: str, event_id: str) -> RecordedEvent | None:
        """Return the event of `namespace` with this id, or None."""
        if namespace == self._namespace:
            staged = next((row for row in self._staging.rows if row[2] == event_id), None)
            if staged is not None:
                return self._event(staged)
        event = self._log.find(namespace, event_id)
        is_later = event is not None and namespace == self._namespace and event.version > self._base.version
        return None if is_later else event

    def head(self, namespace: str) -> Head:
        """Return the newest version of `namespace`; version 0 when it has no events."""
        if namespace != self._namespace:
            return self._log.head(namespace)
        return Head(namespace, self._head.version, self._head.hash, self._base.erasure_version)

    def heads(self, *, after: str = "", limit: int = 1_000) -> list[Head]:
        """Return the heads of up to `limit` namespaces with names over `after`, by name."""
        return [self.head(head.namespace) for head in self._log.heads(after=after, limit=limit)]

    def prune(self, namespace: str, *, on_progress: OnProgress | None = None) -> int:  # noqa: ARG002 -- the protocol's
        """Raise `NotSupported`: the log below stays unchanged."""
        raise NotSupported("nothing is pruned in a trial", field="namespace")

    def pruned(self, namespace: str) -> int:
        """Return the last version that only the archive holds; 0 when nothing was pruned."""
        return self._log.pruned(namespace)

    def shrink(self) -> None:
        """Release nothing: the log below stays unchanged."""

    def files(self) -> list[Path]:
        """Return the files of the log below."""
        return self._log.files()

    def size_bytes(self) -> int | None:
        """Return the size of the log below."""
        return self._log.size_bytes()

    def erase(
        self,
        namespace: str,  # noqa: ARG002 -- the protocol's
        versions: Sequence[int],  # noqa: ARG002 -- the protocol's
        record: EventDraft,  # noqa: ARG002 -- the protocol's
        *,
        expected_version: int,  # noqa: ARG002 -- the protocol's
    ) -> Appended | None:
        """Raise `NotSupported`: the log below stays unchanged."""
        raise NotSupported("nothing is erased in a trial", field="namespace")

    def erasures(self, namespace: str) -> list[int]:
        """Return the versions of the erasure events of the log below."""
        return self._log.erasures(namespace)

    def on_append(self, listener: Callable[[str], None]) -> None:
        """Ignore `listener`: a trial is not announced."""

    def close(self) -> None:
        """Close nothing: the log below stays open."""

    def _find_row(self, place: tuple[Key, StoredId]) -> StoredEvent | None:
        """Return the row of the recorded event with an id; None: there is none."""
        event = self._log.find(self._namespace, str(place[1]))
        return None if event is None or event.version > self._base.version else (self._namespace, *event[1:])

    def _event(self, row: StoredEvent) -> RecordedEvent:
        """Return the event of a staged row."""
        return RecordedEvent(self._namespace, *row[1:])
