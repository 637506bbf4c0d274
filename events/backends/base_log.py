"""Base log: the base class of both backends, which appends through group commit and notifies listeners."""

from __future__ import annotations

import asyncio
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import count

from recollect.events.backends.group_commit_writer import AppendRequest, GroupCommitWriter
from recollect.events.backends.staged_encryption import StagedEncryption
from recollect.events.backends.staging import StagedHead
from recollect.events.encryption.key_store import KeyStore
from recollect.events.encryption.payload_cipher import PayloadCipher
from recollect.events.envelope import ENCODING_AES, Appended, EventDraft, Head, RecordedEvent
from recollect.events.errors import (
    EventIdConflict,
    ForeignFile,
    InvalidEvent,
    KeyMissing,
    StorageError,
    TooLarge,
    VersionConflict,
)
from recollect.events.instruments import Counter, Histogram
from recollect.events.limits import BATCH_EVENTS_MAX, check_namespace
from recollect.events.tracing import span

_APPENDED = Counter("recollect_events_appended", "Events appended by this process", ("type",))
_APPEND_SECONDS = Histogram("recollect_append_duration_seconds", "Time of an append, until its events are on disk")
_CONFLICTS = Counter("recollect_append_conflicts", "Appends refused because the head had moved or the id was taken")
#: Namespaces in which encrypted events are looked for when there is no key store: new ones, and old ones that are lost.
_ENCRYPTED_HEADS_MAX = 100
_LOST_KEYS = (
    "{path} is missing, and the events of the log are encrypted with its keys; restore that file, or name its folder "
    "with RECOLLECT_KEYS; or accept that these events stay unreadable: `recollect backup FOLDER`, then "
    "`recollect restore FOLDER --without-keys`"
)


class GroupCommitLog(ABC):
    """A log whose appends go through one writer thread. `log.EventLog` has the contract of the methods.

    Parameters:
        clock: microseconds since 1970 UTC, for `recorded_at`.
        keys: the key store; without one, payloads are neither encrypted nor decrypted.
        encrypts: whether new events are encrypted.
    """

    def __init__(self, clock: Callable[[], int], keys: KeyStore | None, *, encrypts: bool) -> None:
        self._clock = clock
        #: The key store; None when the log was opened without one.
        self.keys = keys
        self._encryption = None if keys is None else StagedEncryption(PayloadCipher(keys), encrypts=encrypts)
        self._encrypts = encrypts
        self._listeners: list[Callable[[str], None]] = []
        #: When the last append failed for reasons of the disk or the database, in monotonic seconds; None: it did not.
        self.append_failed_at: float | None = None
        self._writer = GroupCommitWriter(self._commit_and_count)

    def append(
        self, namespace: str, drafts: Sequence[EventDraft], *, expected_version: int | None = None
    ) -> list[Appended]:
        """Record `drafts`, all or none; see `log.EventLog.append`."""
        self._check_batch(namespace, drafts)
        recorded = threading.Lock()
        recorded.acquire()
        request = AppendRequest(namespace, drafts, expected_version, recorded)
        with span("log.append"):
            self._writer.write(request, recorded)
            return request.answer()

    async def append_async(
        self, namespace: str, drafts: Sequence[EventDraft], *, expected_version: int | None = None
    ) -> list[Appended]:
        """Append without blocking the event loop; see `log.EventLog.append`."""
        self._check_batch(namespace, drafts)
        recorded = asyncio.get_running_loop().create_future()
        request = AppendRequest(namespace, drafts, expected_version, recorded)
        with span("log.append"):
            self._writer.submit(request)
            await recorded
            return request.answer()

    def read(self, namespace: str, *, after: int = 0, limit: int = 1_000) -> list[RecordedEvent]:
        """Return up to `limit` events with versions over `after`, in order, without a gap and decrypted."""
        events = self.read_stored(namespace, after=after, limit=limit)
        if not events and self.head(namespace).version > after:
            # Appended since, or missing.
            events = self.read_stored(namespace, after=after, limit=limit)
            if not events:
                raise _missing_events(namespace, after + 1)
        if events and (events[0].version != after + 1 or events[-1].version != after + len(events)):
            present = {event.version for event in events}
            raise _missing_events(namespace, next(version for version in count(after + 1) if version not in present))
        return events if self._encryption is None else self._encryption.cipher.open_all(events)

    def find(self, namespace: str, event_id: str) -> RecordedEvent | None:
        """Return the event of `namespace` with this id, decrypted, or None."""
        event = self._find_stored(namespace, event_id)
        return event if event is None or self._encryption is None else self._encryption.cipher.open(event)

    @abstractmethod
    def head(self, namespace: str) -> Head:
        """Return the newest version; version 0 when the namespace has no events."""

    @abstractmethod
    def heads(self, *, after: str = "", limit: int = 1_000) -> list[Head]:
        """Return the heads of up to `limit` namespaces with names over `after`, by name."""

    @abstractmethod
    def read_stored(self, namespace: str, *, after: int = 0, limit: int = 1_000) -> list[RecordedEvent]:
        """Return up to `limit` events and `READ_BYTES_MAX` bytes after `after`, in order, with stored payloads."""

    @abstractmethod
    def _find_stored(self, namespace: str, event_id: str) -> RecordedEvent | None:
        """Return the event with this id and its stored payload, or None."""

    def on_append(self, listener: Callable[[str], None]) -> None:
        """Call `listener(namespace)` after each commit with new events."""
        self._listeners.append(listener)

    @abstractmethod
    def _commit(self, requests: list[AppendRequest]) -> None:
        """Write `requests` in one transaction and set the outcome of each request; one thread at a time calls this.

        An interrupt of the calling thread (`KeyboardInterrupt`) rolls the transaction back and is raised.
        """

    def _commit_and_count(self, requests: list[AppendRequest]) -> None:
        """Commit `requests`, then count them all at once, before their callers go on."""
        self._commit(requests)
        ended = time.perf_counter()
        durations: list[float] = []
        # `collections.Counter` takes 1.3 µs to make, for a group of one event too.
        appended: dict[str, int] = {}
        for request in requests:
            error, recorded = request.error, request.recorded
            if error is None and recorded is not None:
                durations.append(ended - request.started)
                for draft, event in zip(request.drafts, recorded, strict=True):
                    if not event.duplicate:
                        appended[draft.type] = appended.get(draft.type, 0) + 1
            elif isinstance(error, VersionConflict | EventIdConflict):
                _CONFLICTS.add()
            elif isinstance(error, StorageError):
                self.append_failed_at = time.monotonic()
        if durations:
            self.append_failed_at = None
            _APPEND_SECONDS.observe_all(durations)
            _APPENDED.add_all(appended)

    def _notify_listeners(self, heads: Sequence[StagedHead]) -> None:
        """Call the listeners for each namespace that has new events."""
        for head in heads:
            for listener in self._listeners:
                listener(head.namespace)

    def _check_batch(self, namespace: str, drafts: Sequence[EventDraft]) -> None:
        """Raise `InvalidInput` for an invalid namespace, an empty batch or one over `BATCH_EVENTS_MAX`."""
        check_namespace(namespace)
        if not drafts:
            raise InvalidEvent("give at least one event", field="events")
        if len(drafts) > BATCH_EVENTS_MAX:
            raise TooLarge(f"more than {BATCH_EVENTS_MAX:,} events; send several batches", field="events")
        if self._encrypts:
            self._check_keys()

    def _check_keys(self) -> None:
        """Raise `KeyMissing` when new keys would take the place of a lost key store, whose copy could not come back."""
        if self.keys is None:
            raise KeyMissing("the log is encrypted, and was opened without a key store; open it with its keys")
        if self.keys.exists:
            return
        # Another append may have made the keys meanwhile: they are there before the first event that they encrypt.
        if self._has_encrypted_events() and not self.keys.exists:
            raise KeyMissing(_LOST_KEYS.format(path=self.keys.path))

    def _has_encrypted_events(self) -> bool:
        """Return whether the first or the last event of a namespace is encrypted."""
        return any(
            event.encoding == ENCODING_AES
            for head in self.heads(limit=_ENCRYPTED_HEADS_MAX)
            for after in {0, head.version - 1}
            for event in self.read_stored(head.namespace, after=after, limit=1)
        )


def _missing_events(namespace: str, version: int) -> ForeignFile:
    """Return the error of a log that has a later event than `version`, and not that one."""
    return ForeignFile(
        f"version {version} of namespace {namespace!r} is missing from the log, which has later ones: a part of the "
        "log, or of its archive, was removed or damaged. Restore both from a backup; `recollect verify` names it"
    )
