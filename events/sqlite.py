"""The log in one SQLite file: the default backend."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import apsw
import uuid_utils

from recollect.events.chain import leaf, link
from recollect.events.database import connect, storage_errors
from recollect.events.envelope import Appended, EventDraft, Head, RecordedEvent, now_us
from recollect.events.errors import (
    AppendUnknown,
    EventIdConflict,
    ForeignFile,
    InvalidEvent,
    NewerFile,
    RecollectError,
    StorageError,
    TooLarge,
    VersionConflict,
)
from recollect.events.limits import BATCH_EVENTS_MAX, check_namespace
from recollect.events.log import GENESIS
from recollect.events.writer import AppendRequest, GroupCommitWriter

_logger = logging.getLogger(__name__)

#: "RCLG" in the file's header (PRAGMA application_id): this file is a log of ours.
APPLICATION_ID = 0x52434C47
#: Bits of a position that hold the version: 68 billion events a namespace, 134 million namespaces.
_VERSION_BITS = 36
_VERSION_MASK = (1 << _VERSION_BITS) - 1
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
#: WAL pages before SQLite copies them into the file (16 MiB): fewer interruptions of the writer than the default 1,000.
_CHECKPOINT_PAGES = 4_000

_COLUMNS = (
    "position, id, type, schema_version, occurred_at_us, recorded_at_us, session_id, actor, causation_id, "
    "correlation_id, encoding, payload, leaf, hash"
)
_INSERT = f"INSERT INTO events ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_READ = f"SELECT {_COLUMNS} FROM events WHERE position > ? AND position <= ? ORDER BY position LIMIT ?"
_FIND = f"SELECT {_COLUMNS} FROM events WHERE position >> {_VERSION_BITS} = ? AND id = ?"
_HEAD = "SELECT key, version, hash, recorded_at_us FROM heads WHERE namespace = ?"
_HEADS_OF = "SELECT namespace, key, version, hash, recorded_at_us FROM heads WHERE namespace IN ({marks})"
_HEADS = "SELECT namespace, version, hash FROM heads WHERE namespace > ? ORDER BY namespace LIMIT ?"
_MOVE_HEAD = (
    "INSERT INTO heads (key, namespace, version, hash, recorded_at_us) VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) "
    "DO UPDATE SET version = excluded.version, hash = excluded.hash, recorded_at_us = excluded.recorded_at_us"
)


#: A row of `events`, in the order of `_COLUMNS`.
_Row = tuple[Any, ...]


class _Head:
    """A head while a transaction works on it. Read from the file in every transaction, never kept."""

    __slots__ = ("hash", "key", "moved", "namespace", "recorded_at_us", "version")

    def __init__(self, namespace: str, key: int, version: int, chain_hash: bytes, recorded_at_us: int) -> None:
        self.namespace = namespace
        self.key = key
        self.version = version
        self.hash = chain_hash
        self.recorded_at_us = recorded_at_us
        self.moved = False

    def state(self) -> tuple[int, bytes, int, bool]:
        return self.version, self.hash, self.recorded_at_us, self.moved

    def restore(self, state: tuple[int, bytes, int, bool]) -> None:
        self.version, self.hash, self.recorded_at_us, self.moved = state

    def row(self) -> tuple[int, str, int, bytes, int]:
        """Return the parameters of `_MOVE_HEAD`."""
        return self.key, self.namespace, self.version, self.hash, self.recorded_at_us


class _Group:
    """What one transaction is about to write."""

    __slots__ = ("by_id", "heads", "now_us", "rows")

    def __init__(self, now_us: int) -> None:
        self.now_us = now_us
        self.heads: dict[str, _Head] = {}
        self.rows: list[_Row] = []
        #: Staged rows with a producer's id, by (namespace's key, stored id): it may come twice in one group.
        self.by_id: dict[tuple[int, str | bytes], _Row] = {}

    def add(self, head: _Head, draft: EventDraft) -> Appended:
        """Stage `draft` as the next version of `head`."""
        if draft.id is None:
            made = uuid_utils.uuid7()
            event_id, stored_id = str(made), made.bytes
        else:
            event_id, stored_id = draft.id, _stored_id(draft.id)
        version = head.version + 1
        recorded_at_us = max(self.now_us, head.recorded_at_us)
        occurred_at_us = recorded_at_us if draft.occurred_at_us is None else draft.occurred_at_us
        event_leaf = leaf(head.namespace, version, event_id, occurred_at_us, recorded_at_us, draft)
        chain_hash = link(head.hash, event_leaf)
        row = (
            (head.key << _VERSION_BITS) + version,
            stored_id,
            draft.type,
            draft.schema_version,
            occurred_at_us,
            recorded_at_us,
            draft.session_id,
            draft.actor,
            draft.causation_id,
            draft.correlation_id,
            draft.encoding,
            draft.payload,
            event_leaf,
            chain_hash,
        )
        self.rows.append(row)
        if draft.id is not None:
            self.by_id[head.key, stored_id] = row
        head.version, head.hash, head.recorded_at_us, head.moved = version, chain_hash, recorded_at_us, True
        return Appended(event_id, version, recorded_at_us, chain_hash, False)

    def forget_rows(self, keep: int) -> None:
        """Drop the rows staged after the first `keep`."""
        for row in self.rows[keep:]:
            self.by_id.pop((row[0] >> _VERSION_BITS, row[1]), None)
        del self.rows[keep:]


class SqliteLog:
    """The log in the SQLite file `path`. See `log.EventLog` for what it promises.

    Several processes may work on one file: heads are read inside each transaction, which holds SQLite's write lock.

    Parameters:
        path: the file; made, with its folder, when it is not there.
        clock: microseconds since 1970 UTC, for `recorded_at`.

    Raises:
        StorageError: the file cannot be used; `ForeignFile` when it is no log of ours, `NewerFile` when a newer
            program wrote it.
    """

    def __init__(self, path: Path, *, clock: Callable[[], int] = now_us) -> None:
        self._path = path
        self._clock = clock
        self._listeners: list[Callable[[str], None]] = []
        self._readers: list[apsw.Connection] = []
        with storage_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = connect(path, synchronous="FULL")
        try:
            with storage_errors(path):
                self.log_id = _prepare(self._connection, path)
        except BaseException:
            self._connection.close()
            raise
        self._closing = threading.Lock()
        self._closed = False
        self._writer = GroupCommitWriter(self._commit)

    def append(
        self, namespace: str, drafts: Sequence[EventDraft], *, expected_version: int | None = None
    ) -> list[Appended]:
        """Record `drafts`, all or none; see `log.EventLog.append`."""
        _check(namespace, drafts)
        recorded = threading.Lock()
        recorded.acquire()
        request = AppendRequest(namespace, drafts, expected_version, recorded)
        self._writer.submit(request)
        recorded.acquire()
        return request.answer()

    async def append_async(
        self, namespace: str, drafts: Sequence[EventDraft], *, expected_version: int | None = None
    ) -> list[Appended]:
        """Do what `append` does without blocking the event loop."""
        _check(namespace, drafts)
        recorded = asyncio.get_running_loop().create_future()
        request = AppendRequest(namespace, drafts, expected_version, recorded)
        self._writer.submit(request)
        await recorded
        return request.answer()

    def read(self, namespace: str, *, after: int = 0, limit: int = 1_000) -> list[RecordedEvent]:
        """Return up to `limit` events with versions over `after`, in order."""
        with self._reader() as reader:
            head = reader.execute(_HEAD, (namespace,)).fetchone()
            if head is None:
                return []
            base = head[0] << _VERSION_BITS
            rows = reader.execute(_READ, (base + after, base | _VERSION_MASK, limit))
            return [_recorded(namespace, row) for row in rows]

    def find(self, namespace: str, event_id: str) -> RecordedEvent | None:
        """Return the event with this id, if the namespace has it."""
        with self._reader() as reader:
            head = reader.execute(_HEAD, (namespace,)).fetchone()
            if head is None:
                return None
            row = reader.execute(_FIND, (head[0], _stored_id(event_id))).fetchone()
            return None if row is None else _recorded(namespace, row)

    def head(self, namespace: str) -> Head:
        """Return the newest version; version 0 when the namespace has no events."""
        with self._reader() as reader:
            row = reader.execute(_HEAD, (namespace,)).fetchone()
            return Head(namespace, 0, GENESIS) if row is None else Head(namespace, row[1], row[2])

    def heads(self, *, after: str = "", limit: int = 1_000) -> list[Head]:
        """Return the heads of up to `limit` namespaces with names over `after`, by name."""
        with self._reader() as reader:
            return [Head(*row) for row in reader.execute(_HEADS, (after, limit))]

    def on_append(self, listener: Callable[[str], None]) -> None:
        """Call `listener(namespace)` after each commit with new events."""
        self._listeners.append(listener)

    def close(self) -> None:
        """Finish what was accepted, then release the file."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
        self._writer.close()
        while self._readers:
            self._readers.pop().close()
        self._connection.close()

    @contextmanager
    def _reader(self) -> Generator[apsw.Connection]:
        """Lend a connection for reading; there are as many as threads that ever read at once."""
        if self._closed:
            raise StorageError("the log is closed")
        reader = self._readers.pop() if self._readers else connect(self._path, readonly=True)
        try:
            with storage_errors(self._path):
                yield reader
        finally:
            if self._closed:
                reader.close()
            else:
                self._readers.append(reader)

    def _commit(self, requests: list[AppendRequest]) -> None:
        """Write `requests` in one transaction and set each one's outcome. The writer's thread runs this."""
        try:
            with storage_errors(self._path):
                group = self._write(requests)
        except Exception as error:
            self._give_up(requests, error)
            return
        for namespace, head in group.heads.items():
            if head.moved:
                for listener in self._listeners:
                    listener(namespace)

    def _write(self, requests: list[AppendRequest]) -> _Group:
        self._connection.execute("BEGIN IMMEDIATE")
        group = _Group(self._clock())
        self._read_heads(group, {request.namespace for request in requests})
        for request in requests:
            try:
                request.recorded = self._stage(group, request)
            except RecollectError as refusal:
                request.error = refusal
        self._connection.executemany(_INSERT, group.rows)
        self._connection.executemany(_MOVE_HEAD, [head.row() for head in group.heads.values() if head.moved])
        try:
            self._connection.execute("COMMIT")
        except (apsw.FullError, apsw.ReadOnlyError):
            raise
        except apsw.Error as error:
            raise AppendUnknown(
                f"{self._path}: the append failed while it was written ({error}) and may be there all the same; "
                "send the same ids again, which is always safe"
            ) from error
        return group

    def _stage(self, group: _Group, request: AppendRequest) -> list[Appended]:
        """Give the request's events their versions and rows; undo that when one of them is refused."""
        head = group.heads[request.namespace]
        rows_before, head_before = len(group.rows), head.state()
        try:
            return [self._place(group, head, request, draft, head_before[0]) for draft in request.drafts]
        except RecollectError:
            group.forget_rows(rows_before)
            head.restore(head_before)
            raise

    def _place(
        self, group: _Group, head: _Head, request: AppendRequest, draft: EventDraft, version_before: int
    ) -> Appended:
        """Return where `draft` is recorded already, or else stage it as the head's next version."""
        if draft.id is not None:
            known = self._known(group, head, draft.id)
            if known is not None:
                version = known[0] & _VERSION_MASK
                if not _same_content(known, draft):
                    raise EventIdConflict(request.namespace, draft.id, version)
                return Appended(draft.id, version, known[5], known[13], True)
        expected = request.expected_version
        if expected is not None and expected != version_before:
            raise VersionConflict(request.namespace, expected, version_before)
        return group.add(head, draft)

    def _read_heads(self, group: _Group, namespaces: set[str]) -> None:
        """Read the heads that the group works on, inside its transaction; a new namespace gets the next free key.

        The key is taken only if the namespace gets an event in this transaction.
        """
        marks = ", ".join("?" * len(namespaces))
        rows: list[_Row] = self._connection.execute(_HEADS_OF.format(marks=marks), tuple(namespaces)).fetchall()
        group.heads = {row[0]: _Head(*row) for row in rows}
        new = namespaces - group.heads.keys()
        if new:
            newest: _Row = self._connection.execute("SELECT coalesce(max(key), 0) FROM heads").fetchall()[0]
            for key, namespace in enumerate(sorted(new), start=newest[0] + 1):
                group.heads[namespace] = _Head(namespace, key, 0, GENESIS, 0)

    def _known(self, group: _Group, head: _Head, event_id: str) -> _Row | None:
        if head.version == 0:
            return None
        stored_id = _stored_id(event_id)
        staged = group.by_id.get((head.key, stored_id))
        return staged or self._connection.execute(_FIND, (head.key, stored_id)).fetchone()

    def _give_up(self, requests: list[AppendRequest], error: Exception) -> None:
        """Undo the transaction and tell every request why."""
        if not isinstance(error, RecollectError):
            _logger.exception("append failed in an unforeseen way")
            error = StorageError(f"{self._path}: the append failed ({error!r}); nothing of it was recorded")
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except apsw.Error:
            _logger.exception("the transaction could not be rolled back")
        for request in requests:
            request.error = request.error or error


def _check(namespace: str, drafts: Sequence[EventDraft]) -> None:
    check_namespace(namespace)
    if not drafts:
        raise InvalidEvent("give at least one event", field="events")
    if len(drafts) > BATCH_EVENTS_MAX:
        raise TooLarge(f"more than {BATCH_EVENTS_MAX:,} events; send several batches", field="events")


def _prepare(connection: apsw.Connection, path: Path) -> str:
    """Bring the file to the newest schema and return the log's id."""
    migrations = sorted(files(__package__).joinpath("migrations").iterdir(), key=lambda file: file.name)
    connection.execute("BEGIN IMMEDIATE")
    try:
        applied = _migrations_applied(connection, path, len(migrations))
        for migration in migrations[applied:]:
            connection.execute(migration.read_text(encoding="utf-8"))
        if not applied:
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
            connection.execute("INSERT INTO log (log_id) VALUES (?)", (str(uuid_utils.uuid7()),))
        connection.execute(f"PRAGMA user_version={len(migrations)}")
        row: _Row = connection.execute("SELECT log_id FROM log").fetchall()[0]
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute(f"PRAGMA wal_autocheckpoint={_CHECKPOINT_PAGES}")
    return row[0]


def _migrations_applied(connection: apsw.Connection, path: Path, known: int) -> int:
    """Return how many migrations the file has seen; raise `ForeignFile` or `NewerFile` when it is not for us."""
    application_id = connection.pragma("application_id")
    if application_id != APPLICATION_ID:
        if application_id or connection.execute("SELECT 1 FROM sqlite_schema").fetchone():
            raise ForeignFile(f"{path} is a database of another program; move it away, or name another data folder")
        return 0
    applied = connection.pragma("user_version")
    if applied > known:
        raise NewerFile(f"{path} was written by a newer Recollect; install that version or a later one")
    return applied


def _stored_id(event_id: str) -> str | bytes:
    """Return the id as it is stored: a UUID as its 16 bytes, any other text as it is."""
    return bytes.fromhex(event_id.replace("-", "")) if _UUID.fullmatch(event_id) else event_id


def _given_id(stored_id: str | bytes) -> str:
    """Return the id as the producer gave it."""
    if isinstance(stored_id, str):
        return stored_id
    digits = stored_id.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _recorded(namespace: str, row: _Row) -> RecordedEvent:
    return RecordedEvent(namespace, row[0] & _VERSION_MASK, _given_id(row[1]), *row[2:])


def _same_content(row: _Row, draft: EventDraft) -> bool:
    """Tell whether a recorded row says what `draft` says. A time that the producer left out is the log's own."""
    return row[2:4] == (draft.type, draft.schema_version) and (
        draft.occurred_at_us in (None, row[4])
        and row[6:12]
        == (
            draft.session_id,
            draft.actor,
            draft.causation_id,
            draft.correlation_id,
            draft.encoding,
            draft.payload,
        )
    )
