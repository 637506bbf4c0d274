"""Log port: the interface of the event log, with the guarantees that every backend gives.

`tests/integration/test_log_contract.py` tests the guarantees on every backend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from recollect.events.encryption.key_store import KeyStore
from recollect.events.envelope import Appended, EventDraft, Head, RecordedEvent
from recollect.events.progress import OnProgress

if TYPE_CHECKING:
    from recollect.events.storage.archive import Archive


class EventLog(Protocol):
    """An append-only log of events, with one stream for each namespace. Safe to use from any thread.

    Payloads may be encrypted: `read` and `find` decrypt them.

    Guarantees:
        * An append is atomic, and durable before it returns.
        * Versions are 1, 2, 3 … within a namespace without gaps, also after failures and concurrent appends.
        * The same id with the same content is recorded once; with other content it is refused.
        * Recorded events cannot be changed or removed.
    """

    #: The permanent id of this log. A read model stores the id of its log, and refuses another log.
    log_id: str

    #: The key store; None when the log was opened without one.
    keys: KeyStore | None

    @property
    def archive(self) -> Archive | None:
        """Return the archive that pruned events are read from; None where the backend cannot prune."""
        ...

    def append(
        self, namespace: str, drafts: Sequence[EventDraft], *, expected_version: int | None = None
    ) -> list[Appended]:
        """Record `drafts`, all or none, and return the version of each once they are on disk.

        Parameters:
            namespace: a valid name (`limits.check_namespace`).
            drafts: 1 to `limits.BATCH_EVENTS_MAX` validated events (`validation.draft`).
            expected_version: the head that the caller has read (optimistic concurrency); None appends at any head.

        Raises:
            EventIdConflict: an id is taken by other content. VersionConflict: the head has moved.
            InvalidInput: a limit is exceeded. In these three cases nothing was written.
            StorageError: the disk failed; `AppendUnknown` when the events may be recorded all the same.
        """
        ...

    async def append_async(
        self, namespace: str, drafts: Sequence[EventDraft], *, expected_version: int | None = None
    ) -> list[Appended]:
        """Append without blocking the event loop; see `append`."""
        ...

    def read(self, namespace: str, *, after: int = 0, limit: int = 1_000) -> list[RecordedEvent]:
        """Return up to `limit` events of `namespace` with versions over `after`, in order.

        A page ends with the event that makes its payloads reach `READ_BYTES_MAX`, so only an empty page says that there
        are no more events.
        """
        ...

    def read_stored(self, namespace: str, *, after: int = 0, limit: int = 1_000) -> list[RecordedEvent]:
        """Return events as `read` does, with their stored payloads, which the hash chain covers."""
        ...

    def find(self, namespace: str, event_id: str) -> RecordedEvent | None:
        """Return the event of `namespace` with this id, or None."""
        ...

    def head(self, namespace: str) -> Head:
        """Return the newest version of `namespace`; version 0 when it has no events."""
        ...

    def heads(self, *, after: str = "", limit: int = 1_000) -> list[Head]:
        """Return the heads of up to `limit` namespaces with names over `after`, by name."""
        ...

    def prune(self, namespace: str, *, on_progress: OnProgress | None = None) -> int:
        """Remove the sealed events of `namespace`, which the archive holds, from the database; return how many.

        Parameters:
            on_progress: called with (events removed, events to remove).

        Raises:
            NotSupported: the backend cannot prune; see `archive`.
            ForeignFile: a segment is damaged, or differs from the database. StorageError: the disk failed.
        """
        ...

    def pruned(self, namespace: str) -> int:
        """Return the last version that only the archive holds; 0 when nothing was pruned."""
        ...

    def shrink(self) -> None:
        """Release the disk space of pruned events."""
        ...

    def files(self) -> list[Path]:
        """Return the files of the database without the archive; none when a server stores them."""
        ...

    def size_bytes(self) -> int | None:
        """Return the size of the database's files without the archive; None when a server stores them."""
        ...

    def erase(
        self, namespace: str, versions: Sequence[int], record: EventDraft, *, expected_version: int
    ) -> Appended | None:
        """Erase the content of the events `versions`, and append `record`, an erasure event, in one transaction.

        An erased event keeps its version, time of recording, leaf and hash, and stays known by an HMAC of its id. Where
        only the archive holds an event, every read hides it until the archive is written again (`Archive.rewrite`).

        Returns:
            None when `record` is in the log already: the erasure was done before.

        Raises:
            VersionConflict: the head is not `expected_version`. NotSupported: the log was opened without a key store.
            StorageError: the disk failed; the same call again is safe.
        """
        ...

    def erasures(self, namespace: str) -> list[int]:
        """Return the versions of the erasure events of `namespace`, in order."""
        ...

    def on_append(self, listener: Callable[[str], None]) -> None:
        """Call `listener(namespace)` after each commit with new events.

        The listener must return quickly, since the writer waits for it, and must not raise.
        """
        ...

    def close(self) -> None:
        """Write the accepted appends, then release the files."""
        ...


def each_page(
    read: Callable[..., list[RecordedEvent]], namespace: str, *, after: int = 0, limit: int = 1_000
) -> Iterator[list[RecordedEvent]]:
    """Yield the events of `namespace` after a version in pages, which `EventLog.read` or `read_stored` returns."""
    while page := read(namespace, after=after, limit=limit):
        yield page
        after = page[-1].version


def each_head(log: EventLog) -> Iterator[Head]:
    """Yield the heads of all namespaces in the order of their names, read in pages."""
    after = ""
    while page := log.heads(after=after):
        yield from page
        after = page[-1].namespace


def version_recorded_by(log: EventLog, namespace: str, moment_us: int) -> int:
    """Return the newest version that was recorded at or before `moment_us`; 0 when there is none.

    A binary search finds it, since the time of recording never decreases within a namespace.

    Parameters:
        moment_us: microseconds since 1970 UTC.
    """
    low, high = 0, log.head(namespace).version
    while low < high:
        middle = (low + high + 1) // 2
        if log.read(namespace, after=middle - 1, limit=1)[0].recorded_at_us <= moment_us:
            low = middle
        else:
            high = middle - 1
    return low
