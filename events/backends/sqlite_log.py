"""SQLite log: stores the log in one SQLite file; the default backend."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing, contextmanager
from operator import attrgetter
from pathlib import Path
from typing import Any

import apsw

from recollect.events.backends.base_log import GroupCommitLog
from recollect.events.backends.group_commit_writer import AppendRequest
from recollect.events.backends.sqlite_erasure import SqliteErasure, without_erased
from recollect.events.backends.sqlite_ids import VERSION_BITS, VERSION_MASK, original_id, recorded_ids, stored_id
from recollect.events.backends.sqlite_pruning import prune_rows
from recollect.events.backends.sqlite_schema import migrate
from recollect.events.backends.staging import Key, StagedHead, Staging, StoredEvent, StoredId
from recollect.events.chain import GENESIS
from recollect.events.encryption.key_store import KeyStore
from recollect.events.envelope import Appended, EventDraft, Head, RecordedEvent, make_recorded, now_us
from recollect.events.errors import (
    AppendUnknown,
    ForeignFile,
    NotSupported,
    RecollectError,
    StorageError,
)
from recollect.events.limits import READ_BYTES_MAX
from recollect.events.progress import OnProgress
from recollect.events.storage.archive import BLOCK_EVENTS, SEGMENT_EVENTS_MAX, Archive
from recollect.events.storage.database import connect, storage_errors
from recollect.events.storage.file_queue_lock import FileQueueLock
from recollect.events.storage.private_files import make_private_folder

_logger = logging.getLogger(__name__)

#: Events pruned in one transaction, for which an append waits some tens of milliseconds.
PRUNED_EVENTS = 4_096
#: WAL pages before SQLite copies them into the file (16 MiB): fewer interruptions of the writer than the default 1,000.
CHECKPOINT_PAGES = 4_000

_COLUMNS = (
    "id, type, schema_version, occurred_at_us, recorded_at_us, session_id, actor, causation_id, correlation_id, "
    "encoding, payload, leaf, hash"
)
#: The place of the payload in a `StoredEvent`.
_PAYLOAD = 12
_ROW = f"position >> {VERSION_BITS}, position & {VERSION_MASK}, {_COLUMNS}"
_INSERT = (
    f"INSERT INTO events (position, {_COLUMNS}) "
    f"VALUES ((? << {VERSION_BITS}) + ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_READ = f"SELECT {_ROW} FROM events WHERE position > ? AND position <= ? ORDER BY position LIMIT ?"
_FIND = f"SELECT {_ROW} FROM events WHERE position >> {VERSION_BITS} = ? AND id = ?"
_HEAD = "SELECT key, version, hash, pruned, erasure_version FROM heads WHERE namespace = ?"
_ERASURES = "SELECT erasures.version FROM erasures JOIN heads USING (key) WHERE namespace = ? ORDER BY erasures.version"
_FIND_PRUNED = (
    "SELECT pruned_ids.version, namespace FROM pruned_ids JOIN heads USING (key) WHERE key = ? AND pruned_ids.id = ?"
)
_HEADS_OF = (
    "SELECT namespace, key, version, hash, recorded_at_us, erasure_version, pruned FROM heads WHERE namespace IN "
)
_HEADS = "SELECT namespace, version, hash, erasure_version FROM heads WHERE namespace > ? ORDER BY namespace LIMIT ?"
_NEW_HEAD = "INSERT INTO heads (version, hash, recorded_at_us, namespace, key) VALUES (?, ?, ?, ?, ?)"
_MOVE_HEAD = "UPDATE heads SET version = ?, hash = ?, recorded_at_us = ? WHERE namespace = ? AND key = ?"


class SqliteLog(GroupCommitLog):
    """The log in the SQLite file `path`. `log.EventLog` has the contract of the methods.

    Several processes may use one file: heads are read inside each transaction, which holds SQLite's write lock.

    Parameters:
        path: the file, which is created with its folder when it is missing.
        clock: microseconds since 1970 UTC, for `recorded_at`.
        keys: the key store; needed to read encrypted events.
        encrypt: encrypt new events from now on, or no longer; when None, a new log with keys does, others go on.
        block_events, segment_events_max: parameters of the archive.
        pruned_events: events removed in one transaction.
        checkpoint_pages: size of the WAL in pages at which a commit copies it into the file.

    Raises:
        StorageError: the file cannot be used; `ForeignFile` when it is not a log of Recollect, `NewerFile` when a
            newer version wrote it.
    """

    def __init__(
        self,
        path: Path,
        *,
        clock: Callable[[], int] = now_us,
        keys: KeyStore | None = None,
        encrypt: bool | None = None,
        block_events: int = BLOCK_EVENTS,
        segment_events_max: int = SEGMENT_EVENTS_MAX,
        pruned_events: int = PRUNED_EVENTS,
        checkpoint_pages: int = CHECKPOINT_PAGES,
    ) -> None:
        self._path = path
        self._pruned_events = pruned_events
        self._readers: list[apsw.Connection] = []
        with storage_errors(path):
            make_private_folder(path.parent)
        self._connection = connect(path, synchronous="FULL")
        try:
            with _log_errors(path):
                self.log_id, encrypts = migrate(self._connection, path, encrypt=encrypt, has_keys=keys is not None)
                self._connection.execute(f"PRAGMA wal_autocheckpoint={checkpoint_pages}")
                #: Holds the events that are pruned from this file.
                self.archive = Archive(
                    path.parent / "archive",
                    self.log_id,
                    block_events=block_events,
                    segment_events_max=segment_events_max,
                )
        except BaseException:
            self._connection.close()
            raise
        #: Held during each transaction that writes to the file.
        self._turn = FileQueueLock(path.with_suffix(".lock"))
        self._closing = threading.Lock()
        self._closed = False
        super().__init__(clock, keys, encrypts=encrypts)

    def read_stored(self, namespace: str, *, after: int = 0, limit: int = 1_000) -> list[RecordedEvent]:
        """Return up to `limit` events and `READ_BYTES_MAX` bytes after `after`, in order, with stored payloads."""
        with self._reader() as reader:
            reader.execute("BEGIN")
            try:
                # One snapshot for all queries: events that are pruned meanwhile are still in it.
                head = reader.execute(_HEAD, (namespace,)).fetchone()
                if head is None:
                    return []
                base, pruned = head[0] << VERSION_BITS, head[3]
                sealed: list[RecordedEvent] = []
                if after < pruned:
                    sealed = self.archive.read(namespace, after=after, limit=min(limit, pruned - after))
                    if head[4]:
                        sealed = without_erased(reader, head[0], sealed)
                    if sealed and sealed[-1].version < pruned:
                        return sealed
                span = (base + max(after, pruned), base | VERSION_MASK, limit - len(sealed))
                rows = _page(reader.execute(_READ, span))
                # SQLite does not check the order of its B-tree, so a damaged key may belong to another namespace.
                if any(row[0] != head[0] for row in rows):
                    raise apsw.CorruptError("a row is not where its position says")
                return [*sealed, *_recorded_events(namespace, rows)]
            finally:
                reader.execute("ROLLBACK")

    def _find_stored(self, namespace: str, event_id: str) -> RecordedEvent | None:
        """Return the event of `namespace` with this id and its stored payload, or None."""
        with self._reader() as reader:
            head = reader.execute(_HEAD, (namespace,)).fetchone()
            if head is None:
                return None
            row = reader.execute(_FIND, (head[0], stored_id(event_id))).fetchone()
            if row is not None:
                return _recorded_events(namespace, [row])[0]
            pruned = reader.execute(_FIND_PRUNED, (head[0], stored_id(event_id))).fetchone()
            return None if pruned is None else self._read_archived(reader, head[0], namespace, pruned[0])

    def head(self, namespace: str) -> Head:
        """Return the newest version; version 0 when the namespace has no events."""
        with self._reader() as reader:
            row = reader.execute(_HEAD, (namespace,)).fetchone()
            return Head(namespace, 0, GENESIS) if row is None else _checked_head(namespace, row[1], row[2], row[4])

    def heads(self, *, after: str = "", limit: int = 1_000) -> list[Head]:
        """Return the heads of up to `limit` namespaces with names over `after`, by name."""
        with self._reader() as reader:
            return [_checked_head(*row) for row in reader.execute(_HEADS, (after, limit))]

    def prune(self, namespace: str, *, on_progress: OnProgress | None = None) -> int:
        """Remove the sealed events of `namespace` from this file and return their number.

        Reads, verification and the detection of duplicate ids use the archive for them.

        Parameters:
            on_progress: called with (events removed, events to remove).

        Raises:
            ForeignFile: a segment is damaged, or differs from this file. StorageError: the disk failed.
        """
        segments = self.archive.segments(namespace)
        key, _, _, pruned, _ = self._head_row(namespace)
        total = max(0, self.archive.sealed(namespace) - pruned)
        removed = 0
        for segment in segments:
            if segment.last_version <= pruned:
                continue
            self.archive.check(namespace, segment)
            while pruned < segment.last_version:
                last = min(segment.last_version, pruned + self._pruned_events)
                [newest] = self.archive.read(namespace, after=last - 1, limit=1)
                with (
                    closing(connect(self._path, synchronous="FULL")) as connection,
                    storage_errors(self._path),
                    self._turn.locked(),
                ):
                    prune_rows(connection, key, pruned, newest)
                removed += last - pruned
                pruned = last
                if on_progress is not None:
                    on_progress(removed, total)
        return removed

    def pruned(self, namespace: str) -> int:
        """Return the last version that only the archive holds; 0 when nothing was pruned."""
        return self._head_row(namespace)[3]

    def erase(
        self, namespace: str, versions: Sequence[int], record: EventDraft, *, expected_version: int
    ) -> Appended | None:
        """Erase the content of events and append `record` in one transaction; see `EventLog.erase`."""
        if self._encryption is None:
            raise NotSupported("needs the log's key store; open the log with its keys", field="log")
        with _log_errors(self._path), closing(connect(self._path, synchronous="FULL")) as connection:
            sealed = self.archive.sealed(namespace)
            erasure = SqliteErasure(connection, self._turn, self._encryption, self._clock(), sealed)
            appended = erasure.run(namespace, versions, record, expected_version)
        if appended is not None:
            self._notify_listeners([StagedHead(namespace, 0)])
        return appended

    def erasures(self, namespace: str) -> list[int]:
        """Return the versions of the erasure events, in order."""
        with self._reader() as reader:
            return [version for (version,) in reader.execute(_ERASURES, (namespace,))]

    def shrink(self) -> None:
        """Release the disk space of pruned events. SQLite copies the file, so it needs as much free space meanwhile."""
        with (
            closing(connect(self._path, synchronous="FULL")) as connection,
            storage_errors(self._path),
            self._turn.locked(),
        ):
            connection.execute("VACUUM")
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def files(self) -> list[Path]:
        """Return the database file, its WAL and its shared memory file."""
        return [path for part in ("", "-wal", "-shm") if (path := Path(f"{self._path}{part}")).exists()]

    def size_bytes(self) -> int | None:
        """Return the size of the database file, its WAL and its shared memory file."""
        with storage_errors(self._path):
            return sum(file.stat().st_size for file in self.files())

    def close(self) -> None:
        """Write the accepted appends, then release the file."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
        self._writer.close()
        if self.keys is not None:
            self.keys.close()
        self.archive.close()
        while self._readers:
            self._readers.pop().close()
        self._connection.close()

    @contextmanager
    def _reader(self) -> Generator[apsw.Connection]:
        """Lend a connection for reading. The pool grows to the largest number of concurrent readers."""
        if self._closed:
            raise StorageError("the log is closed")
        reader = self._readers.pop() if self._readers else connect(self._path, readonly=True)
        try:
            with _log_errors(self._path):
                yield reader
        except BaseException:
            # An unfinished query would keep the connection in its old snapshot.
            reader.close()
            raise
        if self._closed:
            reader.close()
        else:
            self._readers.append(reader)

    def _commit(self, requests: list[AppendRequest]) -> None:
        """Write `requests` in one transaction, set the outcome of each, then notify the listeners."""
        try:
            with self._turn.locked():
                moved = self._write(requests)
        except Exception as error:
            self._fail_requests(requests, error)
            return
        except BaseException:
            self._roll_back()
            raise
        self._notify_listeners(moved)

    def _write(self, requests: list[AppendRequest]) -> list[StagedHead]:
        """Record `requests` in one transaction and return the heads that moved."""
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        if self._encryption is not None:
            # Under the lock, which an erasure takes too: a key that it has destroyed is not used.
            self._encryption.prepare(requests)
        heads = self._read_heads({request.namespace for request in requests})
        recorded = recorded_ids(self._connection, requests, heads, self._encryption)
        staging = Staging(
            self._clock(),
            heads,
            stored_id,
            lambda place: self._find(*place) if place in recorded else None,
            self._encryption,
            stored_uuid=attrgetter("bytes"),
        )
        staging.stage(requests)
        self._connection.executemany(_INSERT, staging.rows)
        moved = staging.moved_heads()
        changes_before = self._connection.total_changes()
        for head in moved:
            execute(_NEW_HEAD if head.is_new else _MOVE_HEAD, _head_parameters(head))
        if self._connection.total_changes() != changes_before + len(moved):
            raise apsw.CorruptError("a row of the table heads is not where its index says")
        try:
            execute("COMMIT")
        except (apsw.FullError, apsw.ReadOnlyError):
            raise
        except apsw.Error as error:
            raise AppendUnknown(
                f"{self._path}: the append failed while it was written ({error}) and may be recorded all the same; "
                "send the same ids again, which is always safe"
            ) from error
        return moved

    def _read_heads(self, namespaces: set[str]) -> list[StagedHead]:
        """Return the heads of `namespaces`; a new namespace gets the next free key.

        The key is stored only if the namespace gets an event in this transaction.
        """
        marks = "(?)" if len(namespaces) == 1 else f"({', '.join('?' * len(namespaces))})"
        rows: list[StoredEvent] = self._connection.execute(_HEADS_OF + marks, tuple(namespaces)).fetchall()
        heads = [StagedHead(*row) for row in rows]
        if len(heads) < len(namespaces):
            new = namespaces - {head.namespace for head in heads}
            newest: StoredEvent = self._connection.execute("SELECT coalesce(max(key), 0) FROM heads").fetchall()[0]
            heads += [StagedHead(namespace, key) for key, namespace in enumerate(sorted(new), start=newest[0] + 1)]
        return heads

    def _find(self, key: Key, row_id: StoredId) -> StoredEvent | None:
        """Return the recorded row with a stored id, from the file or the archive, or None."""
        row: StoredEvent | None = self._connection.execute(_FIND, (key, row_id)).fetchone()
        if row is not None:
            return row
        pruned: StoredEvent | None = self._connection.execute(_FIND_PRUNED, (key, row_id)).fetchone()
        if pruned is None:
            return None
        event = self._read_archived(self._connection, int(key), pruned[1], pruned[0])
        return (key, event.version, row_id, *event[3:])

    def _read_archived(self, reader: apsw.Connection, key: int, namespace: str, version: int) -> RecordedEvent:
        """Return a pruned event."""
        return without_erased(reader, key, self.archive.read(namespace, after=version - 1, limit=1))[0]

    def _head_row(self, namespace: str) -> StoredEvent:
        """Return the row of a head (`_HEAD`); zeros for a namespace without events."""
        with self._reader() as reader:
            row: StoredEvent | None = reader.execute(_HEAD, (namespace,)).fetchone()
        return row or (0, 0, GENESIS, 0, 0)

    def _fail_requests(self, requests: list[AppendRequest], error: Exception) -> None:
        """Roll the transaction back and set the error of every request that has none."""
        try:
            with storage_errors(self._path):
                raise error
        except Exception as translated:
            error = translated
        if not isinstance(error, RecollectError):
            _logger.exception("unexpected error in an append")
            error = StorageError(f"{self._path}: the append failed ({error!r}); nothing was recorded")
        self._roll_back()
        for request in requests:
            request.error = request.error or error

    def _roll_back(self) -> None:
        """Roll back the transaction of an append."""
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except apsw.Error:
            _logger.exception("the transaction could not be rolled back")


@contextmanager
def _log_errors(path: Path) -> Generator[None]:
    """Translate errors as `storage_errors` does, and SQL errors to `ForeignFile`.

    The SQL is constant, so an SQL error means that the file's schema is damaged.
    """
    try:
        with storage_errors(path):
            yield
    except apsw.SQLError as error:
        raise ForeignFile(f"{path} is damaged ({error}); restore it from a backup") from error


def _head_parameters(head: StagedHead) -> StoredEvent:
    """Return the parameters of `_NEW_HEAD` and `_MOVE_HEAD`."""
    return head.version, head.hash, head.recorded_at_us, head.namespace, head.key


def _checked_head(namespace: Any, version: Any, chain_hash: Any, erasure_version: int) -> Head:
    """Return a head, or raise `CorruptError`: a damaged file may hold values of types that its schema excludes."""
    if not (isinstance(namespace, str) and isinstance(version, int) and isinstance(chain_hash, bytes)):
        raise apsw.CorruptError("invalid row in the table heads")
    return Head(namespace, version, chain_hash, erasure_version)


def _page(rows: Iterable[StoredEvent]) -> list[StoredEvent]:
    """Return the rows until their payloads reach `READ_BYTES_MAX`."""
    page, size = list[StoredEvent](), 0
    for row in rows:
        page.append(row)
        size += len(row[_PAYLOAD] or b"")  # A damaged row may have none.
        if size >= READ_BYTES_MAX:
            break
    return page


def _recorded_events(namespace: str, rows: Sequence[StoredEvent]) -> list[RecordedEvent]:
    """Return the events in rows of `_ROW`."""
    # The columns are in the order of the fields.
    start = (namespace,)
    return [
        make_recorded(start + row[1:] if isinstance(row[2], str) else (*start, row[1], original_id(row[2]), *row[3:]))
        for row in rows
    ]
