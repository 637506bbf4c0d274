"""PostgreSQL log: stores the log in PostgreSQL, so that several machines can share it.

An append locks the heads of its namespaces, so versions are assigned in the order of commits and a reader in the order
of versions sees no gap. There is no sequence over namespaces, and no NOTIFY, which takes a lock on the whole server at
every commit; readers compare heads.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import uuid_utils
from psycopg import errors as pg
from psycopg_pool import ConnectionPool, PoolTimeout

from recollect.events.backends.answer_deadline import answers_by, seconds_left
from recollect.events.backends.base_log import GroupCommitLog
from recollect.events.backends.group_commit_writer import AppendRequest
from recollect.events.backends.own_heads import OwnHeads
from recollect.events.backends.postgres_append import COLUMNS, lock_heads, write_and_commit, write_at_once
from recollect.events.backends.postgres_connection import Outage, TimedConnection, has_ended
from recollect.events.backends.postgres_erasure import PostgresErasure
from recollect.events.backends.postgres_schema import connection_string, migrate, storage_error
from recollect.events.backends.staging import StagedHead, Staging, StoredEvent
from recollect.events.chain import GENESIS
from recollect.events.encryption.key_store import KeyStore
from recollect.events.envelope import Appended, EventDraft, Head, RecordedEvent, now_us
from recollect.events.errors import (
    AppendUnknown,
    LogUnreachable,
    NotSupported,
    RecollectError,
    StorageError,
)
from recollect.events.limits import READ_BYTES_MAX
from recollect.events.progress import OnProgress

_logger = logging.getLogger(__name__)

#: Seconds that an append waits for another append to the same namespace; an append takes milliseconds.
LOCK_SECONDS_MAX = 10
#: Seconds that an append tries to reach the server: enough for a restart of the server.
RECONNECT_SECONDS_MAX = 10.0
#: Seconds that a read without a deadline does: a restart without a recovery. It holds a thread of the HTTP server.
_READ_SECONDS_MAX = 3.0
#: The same when the server was away for longer than that already.
_AWAY_SECONDS = 1.0
#: Connections for reading, and so the number of concurrent reads.
_READERS_MAX = 8

#: The sizes are those of the headers of the payloads, none of which is read for them.
_READ = f"""
    SELECT {COLUMNS} FROM (
        SELECT {COLUMNS},
            sum(octet_length(payload)) OVER (ORDER BY version ROWS UNBOUNDED PRECEDING) AS through
        FROM events WHERE namespace = %s AND version > %s ORDER BY version LIMIT %s
    ) AS page WHERE through - octet_length(payload) < %s
"""
_FIND = f"SELECT {COLUMNS} FROM events WHERE namespace = %s AND id = %s"
_HEAD = "SELECT version, hash, erasure_version FROM heads WHERE namespace = %s"
_HEADS = "SELECT namespace, version, hash, erasure_version FROM heads WHERE namespace > %s ORDER BY namespace LIMIT %s"


class PostgresLog(GroupCommitLog):
    """The log in the PostgreSQL database at `url`. `log.EventLog` has the contract of the methods.

    Any number of processes and machines may use one database.

    Parameters:
        url: ``postgresql://user:password@host:port/database``, with libpq's parameters.
        clock: microseconds since 1970 UTC, for `recorded_at`.
        keys: the key store; needed to read encrypted events. It stays outside of the database.
        encrypt: encrypt new events from now on, or no longer; when None, a new log with keys does, others go on.
        lock_seconds_max: seconds that an append waits for another append to the same namespace.
        reconnect_seconds_max: seconds that an append tries to reach the server; a read tries three seconds at most.

    Raises:
        StorageError: the server cannot be reached or used; `NewerFile` when a newer version wrote the log.
        InvalidInput: the URL is not valid.
    """

    #: Pruning is not supported, so there is no archive.
    archive = None

    def __init__(
        self,
        url: str,
        *,
        clock: Callable[[], int] = now_us,
        keys: KeyStore | None = None,
        encrypt: bool | None = None,
        lock_seconds_max: int = LOCK_SECONDS_MAX,
        reconnect_seconds_max: float = RECONNECT_SECONDS_MAX,
    ) -> None:
        self._conninfo, self._location = connection_string(url, lock_seconds_max)
        self._reconnect_seconds_max = reconnect_seconds_max
        self._read_seconds_max = min(_READ_SECONDS_MAX, reconnect_seconds_max)
        self._outage = Outage(self._location, self._read_seconds_max)
        self._closed = False
        self._own_heads = OwnHeads()
        self._write_connection: psycopg.Connection[StoredEvent] | None = None
        with self._storage_errors():
            self._write_connection = self._connect()
            try:
                self.log_id, encrypts = migrate(
                    self._write_connection, self._location, encrypt=encrypt, has_keys=keys is not None
                )
            except BaseException:
                self._write_connection.close()
                raise
        self._readers = ConnectionPool(
            self._conninfo,
            connection_class=TimedConnection,
            kwargs={"autocommit": True},
            min_size=0,
            max_size=_READERS_MAX,
            timeout=reconnect_seconds_max,
            reconnect_timeout=reconnect_seconds_max,
            check=ConnectionPool[TimedConnection].check_connection,
            name="recollect-log",
            open=True,
        )
        super().__init__(clock, keys, encrypts=encrypts)

    def read_stored(self, namespace: str, *, after: int = 0, limit: int = 1_000) -> list[RecordedEvent]:
        """Return up to `limit` events and `READ_BYTES_MAX` bytes after `after`, in order, with stored payloads."""
        return [RecordedEvent(*row) for row in self._select(_READ, (namespace, after, limit, READ_BYTES_MAX))]

    def _find_stored(self, namespace: str, event_id: str) -> RecordedEvent | None:
        """Return the event of `namespace` with this id and its stored payload, or None."""
        rows = self._select(_FIND, (namespace, event_id))
        return RecordedEvent(*rows[0]) if rows else None

    def head(self, namespace: str) -> Head:
        """Return the newest version; version 0 when the namespace has no events."""
        rows = self._select(_HEAD, (namespace,))
        return Head(namespace, *rows[0]) if rows else Head(namespace, 0, GENESIS)

    def heads(self, *, after: str = "", limit: int = 1_000) -> list[Head]:
        """Return the heads of up to `limit` namespaces with names over `after`, by name."""
        return [Head(*row) for row in self._select(_HEADS, (after, limit))]

    def prune(self, namespace: str, *, on_progress: OnProgress | None = None) -> int:  # noqa: ARG002 -- the protocol's
        """Raise `NotSupported`: PostgreSQL keeps every event."""
        raise NotSupported("only a log in SQLite can be pruned", field="log")

    def pruned(self, namespace: str) -> int:  # noqa: ARG002 -- the protocol's
        """Return 0: nothing is ever pruned."""
        return 0

    def erase(
        self, namespace: str, versions: Sequence[int], record: EventDraft, *, expected_version: int
    ) -> Appended | None:
        """Erase the content of events and append `record` in one transaction; see `EventLog.erase`."""
        if self._encryption is None:
            raise NotSupported("needs the log's key store; open the log with its keys", field="log")
        with self._storage_errors(), self._connect() as connection:
            erasure = PostgresErasure(connection, self._encryption, self._clock())
            appended = erasure.run(namespace, versions, record, expected_version)
        if appended is not None:
            self._notify_listeners([StagedHead(namespace, namespace)])
        return appended

    def erasures(self, namespace: str) -> list[int]:
        """Return the versions of the erasure events, in order."""
        rows = self._select("SELECT version FROM erasures WHERE namespace = %s ORDER BY version", (namespace,))
        return [row[0] for row in rows]

    def shrink(self) -> None:
        """Do nothing: nothing is ever pruned."""

    def files(self) -> list[Path]:
        """Return none: the server stores them."""
        return []

    def size_bytes(self) -> None:
        """Return None: the server stores the files."""
        return

    def close(self) -> None:
        """Write the accepted appends, then close the connections."""
        if self._closed:
            return
        self._closed = True
        self._writer.close()
        if self.keys is not None:
            self.keys.close()
        self._readers.close()
        if self._write_connection is not None:
            self._write_connection.close()

    def _connect(self) -> psycopg.Connection[StoredEvent]:
        """Return a new connection in autocommit mode."""
        return TimedConnection.connect(self._conninfo, autocommit=True)

    def _select(self, query: LiteralString, values: Sequence[Any]) -> list[StoredEvent]:
        """Return all rows of a query, read by a connection of the pool.

        Raises:
            LogUnreachable: the server does not answer by the deadline of `answers_by`, or in the time to reconnect.
        """
        if self._closed:
            raise StorageError("the log is closed")
        self._outage.check()
        try:
            with self._storage_errors(), self._reader() as reader:
                rows = reader.execute(query, values, binary=True).fetchall()
        except LogUnreachable:
            self._outage.failed()
            raise
        self._outage.answered()
        return rows

    @contextmanager
    def _reader(self) -> Generator[TimedConnection]:
        """Yield a connection of the pool that has just answered."""
        seconds = seconds_left(self._read_seconds_max)
        with answers_by(time.monotonic() + seconds):
            reader = self._readers.getconn(timeout=seconds)
        try:
            yield reader
        finally:
            self._readers.putconn(reader)

    def _commit(self, requests: list[AppendRequest]) -> None:
        """Write `requests` in one transaction, set the outcome of each, then notify the listeners."""
        # With an id, an event that was recorded by a commit without an answer is recognised by the next attempt.
        generated_ids = _assign_ids(requests)
        commit_requested = False
        deadline = time.monotonic() + (_AWAY_SECONDS if self._outage.is_long else self._reconnect_seconds_max)
        while True:
            try:
                with self._storage_errors(), answers_by(deadline):
                    moved = None if commit_requested else self._write_at_once(requests)
                    if moved is None:
                        moved = self._write(requests, new_ids=set() if commit_requested else generated_ids)
            except _TransactionLost as lost:
                commit_requested |= lost.committing
                if time.monotonic() < deadline and self._reconnect(deadline):
                    continue
                self._outage.failed()
                self._fail_requests(requests, lost.why, commit_requested)
                return
            except Exception as error:
                self._fail_requests(requests, error, commit_requested)
                return
            except BaseException:
                # An interrupt may leave the connection in the middle of a pipeline; the next append opens a new one.
                if self._write_connection is not None:
                    self._write_connection.close()
                raise
            self._outage.answered()
            _clear_duplicate_flags(requests, generated_ids)
            self._notify_listeners(moved)
            return

    def _write(self, requests: list[AppendRequest], *, new_ids: set[str]) -> list[StagedHead]:
        """Record `requests` in one transaction and return the heads that moved.

        Parameters:
            new_ids: ids that cannot be in the log yet and are not searched for.

        Raises `_TransactionLost` when the transaction may be tried again.
        """
        connection = self._write_connection
        if connection is None or connection.closed:
            raise _TransactionLost(LogUnreachable(f"{self._location} cannot be reached"), committing=False)
        committing = False
        try:
            # One pipeline: leaving one for the locks and one for the rows would wait for the server once more.
            with connection.pipeline():
                heads, recorded = lock_heads(connection, requests, new_ids, self._encryption)
                if self._encryption is not None:
                    # Under the lock, which an erasure takes too: a key that it has destroyed is not used.
                    self._encryption.prepare(requests)
                heads_before = {head.namespace: (head.version, head.hash) for head in heads}
                staging = Staging(self._clock(), heads, str, recorded.get, self._encryption)
                staging.stage(requests)
                moved = staging.moved_heads()
                committing = bool(moved)
                write_and_commit(connection, staging, moved, heads_before)
            self._own_heads.committed(moved, heads_before)
            return moved
        except psycopg.OperationalError as error:
            _raise_if_lost(connection, error, committing=committing)
            raise

    def _write_at_once(self, requests: Sequence[AppendRequest]) -> list[StagedHead] | None:
        """Record `requests` in one round trip, and return the heads that moved.

        Returns:
            None when the heads or the ids have to be read first; then nothing is recorded. This writer does not know
            all heads, another one has moved one of them, a request is refused, which may be due to a head that has
            moved, an id is recorded already, or the server has ended the connection, after which a commit would have an
            unknown outcome.

        Raises `_TransactionLost` when the transaction may be tried again.
        """
        connection = self._write_connection
        if self._encryption is not None or connection is None or connection.closed or has_ended(connection):
            return None
        heads = self._own_heads.find(sorted({request.namespace for request in requests}))
        if heads is None:
            return None
        heads_before = {head.namespace: (head.version, head.hash) for head in heads}
        staging = Staging(self._clock(), heads, str, lambda _: None)
        staging.stage(requests)
        moved = staging.moved_heads()
        is_refused = any(request.error is not None for request in requests)
        try:
            is_written = bool(moved) and not is_refused and write_at_once(connection, staging, moved, heads_before)
        except psycopg.OperationalError as error:
            _raise_if_lost(connection, error, committing=True)
            raise
        if not is_written:
            for request in requests:
                request.recorded = request.error = None
            return None
        self._own_heads.committed(moved, heads_before)
        return moved

    def _reconnect(self, deadline: float) -> bool:
        """Open the writer's connection again if it is closed; return whether it is open before `deadline`."""
        if self._write_connection is not None and not self._write_connection.closed:
            return True
        pause_seconds = 0.05
        while time.monotonic() < deadline:
            try:
                self._write_connection = self._connect()
                return True
            except psycopg.OperationalError:
                time.sleep(pause_seconds)
                pause_seconds = min(1.0, 2 * pause_seconds)
        return False

    def _fail_requests(self, requests: list[AppendRequest], error: Exception, commit_requested: bool) -> None:
        """Roll the transaction back and set the error of every request that has none."""
        try:
            with self._storage_errors():
                raise error
        except RecollectError as ours:
            failure: RecollectError = ours
        except Exception:
            _logger.exception("unexpected error in an append")
            failure = StorageError(f"{self._location}: the append failed ({error!r}); nothing was recorded")
        if commit_requested:
            failure = AppendUnknown(
                f"{self._location}: the connection broke during the commit ({error}), so the append may be recorded "
                "all the same; send the same ids again, which is always safe"
            )
        try:
            if self._write_connection is not None and not self._write_connection.closed:
                self._write_connection.rollback()
        except psycopg.Error:
            self._write_connection = None
        for request in requests:
            request.error = request.error or failure

    @contextmanager
    def _storage_errors(self) -> Generator[None]:
        """Translate an error of PostgreSQL into a `StorageError`, with the cause."""
        try:
            yield
        except (psycopg.Error, PoolTimeout) as error:
            raise storage_error(error, self._location) from error


class _TransactionLost(Exception):
    """The transaction failed and may be tried again: the connection broke, or the server resolved a deadlock."""

    def __init__(self, why: Exception, *, committing: bool) -> None:
        super().__init__(str(why))
        self.why = why
        #: Whether COMMIT was sent, after which the events may be recorded.
        self.committing = committing


def _raise_if_lost(
    connection: psycopg.Connection[StoredEvent], error: psycopg.OperationalError, *, committing: bool
) -> None:
    """Raise `_TransactionLost` if the transaction that ended with `error` may be tried again."""
    if isinstance(error, (pg.DeadlockDetected, pg.SerializationFailure)):
        connection.rollback()
        raise _TransactionLost(error, committing=False) from error
    if connection.closed or connection.broken:
        raise _TransactionLost(error, committing=committing) from error


def _assign_ids(requests: Sequence[AppendRequest]) -> set[str]:
    """Generate an id for every event without one, and return the generated ids."""
    generated_ids: set[str] = set()
    for request in requests:
        if all(draft.id is not None for draft in request.drafts):
            continue
        ids = [draft.id or str(uuid_utils.uuid7()) for draft in request.drafts]
        generated_ids.update(id for id, draft in zip(ids, request.drafts, strict=True) if draft.id is None)
        # The id is the first field; `_replace` takes three times as long.
        request.drafts = [EventDraft._make((id, *draft[1:])) for id, draft in zip(ids, request.drafts, strict=True)]
    return generated_ids


def _clear_duplicate_flags(requests: Sequence[AppendRequest], generated_ids: set[str]) -> None:
    """Clear the flag of events with generated ids: only an earlier attempt of this append can have recorded them."""
    for request in requests:
        if request.recorded and any(appended.duplicate for appended in request.recorded):
            request.recorded = [
                appended._replace(duplicate=appended.duplicate and appended.id not in generated_ids)
                for appended in request.recorded
            ]
