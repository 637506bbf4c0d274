"""Replay: builds a read model from the log in bulk: rows, the keyword index one batch behind, then the indexes.

An event that cannot be projected ends the build, unless an operator leaves it out. The file is built without a journal
and under a temporary name; the caller publishes it as a generation when it is complete and on disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import apsw

from recollect.events.backends.log import EventLog
from recollect.events.chain import GENESIS
from recollect.events.envelope import RecordedEvent
from recollect.events.errors import ProjectionFailed
from recollect.events.limits import READ_BYTES_MAX
from recollect.events.progress import OnProgress
from recollect.events.storage.atomic_file import sync_file
from recollect.projections.projector.event_handlers import apply_event
from recollect.projections.projector.known_entities import EntityRegister
from recollect.projections.projector.skipped_events import is_skipped
from recollect.projections.projector.write_batch import WriteBatch, index_episodes
from recollect.projections.schema.schema import add_state, create_file, create_indexes, set_wal

#: Events whose rows are written and indexed together.
BATCH_EVENTS = 5_000
#: Events read and projected at a time, so that they are still in the processor's cache when their rows are computed.
_PAGE_EVENTS = 500
#: Events of a log up to which the indexes are created before the rows: copied with the empty file, they save 0.3 ms.
_INDEXED_EVENTS_MAX = 200
#: FTS5 writes a segment when its terms in memory reach this; 16 MiB halve the rebuild's time against the default 1 MiB.
_FTS_HASH_BYTES = 16 << 20

_BULK_PRAGMAS: dict[str, bool | int | str] = {
    "journal_mode": "OFF",
    "synchronous": "OFF",
    "temp_store": "MEMORY",
    "secure_delete": True,
    # 64 MiB, for the pages that indexes and the keyword index write to repeatedly.
    "cache_size": -65_536,
}


def build_read_model(
    path: Path,
    log: EventLog,
    namespace: str,
    *,
    until: int | None = None,
    batch_events: int = BATCH_EVENTS,
    on_progress: OnProgress | None = None,
) -> int:
    """Build the read model of `namespace` in the new file `path`; return its checkpoint.

    Parameters:
        until: the last version to project; the head when None.
        batch_events: events projected in one batch.
        on_progress: called with (events projected, events in all) after each batch.

    Raises:
        ProjectionFailed: an event could not be projected; the file is not complete.
    """
    skipped = set[int]()
    while True:
        try:
            version = _build(path, log, namespace, until, batch_events, on_progress, frozenset(skipped))
            break
        except ProjectionFailed as failed:
            event = log.read(namespace, after=failed.version - 1, limit=1)[0]
            if failed.version in skipped or not is_skipped(log, event):
                raise
            # What the event has changed before it failed is in the rows, so the build begins again without it.
            skipped.add(failed.version)
            path.unlink()
    set_wal(path)
    sync_file(path)
    return version


def _build(
    path: Path,
    log: EventLog,
    namespace: str,
    until: int | None,
    batch_events: int,
    on_progress: OnProgress | None,
    skipped: frozenset[int],
) -> int:
    """Build the file without the events of the versions `skipped`; return its checkpoint."""
    head = log.head(namespace).version if until is None else until
    indexed = head <= _INDEXED_EVENTS_MAX
    create_file(path, indexed=indexed)
    connection = apsw.Connection(str(path))
    try:
        # No connection reads the file before it is complete, so the build needs neither a journal nor durability.
        for name, value in _BULK_PRAGMAS.items():
            connection.pragma(name, value)
        connection.execute("BEGIN")
        add_state(connection, log_id=log.log_id, namespace=namespace)
        connection.execute("INSERT INTO episodes_fts (episodes_fts, rank) VALUES ('hashsize', ?)", (_FTS_HASH_BYTES,))
        with ThreadPoolExecutor(1, "recollect-replay-index") as indexing:
            version, chain_hash = _project_rows(
                connection, indexing, log, namespace, until, head, batch_events, on_progress, skipped
            )
        if not indexed:
            create_indexes(connection)
        connection.execute("DELETE FROM episodes_fts_config WHERE k = 'hashsize'")
        connection.execute("UPDATE read_model SET checkpoint = ?, checkpoint_hash = ?", (version, chain_hash))
        connection.execute("COMMIT")
    finally:
        connection.close()
    return version


def _project_rows(
    connection: apsw.Connection,
    indexing: ThreadPoolExecutor,
    log: EventLog,
    namespace: str,
    until: int | None,
    head: int,
    batch_events: int,
    on_progress: OnProgress | None,
    skipped: frozenset[int],
) -> tuple[int, bytes]:
    """Project the events into rows; return the last version and its chain hash.

    A second thread adds one batch to the keyword index while this one projects the next: SQLite releases Python's lock.

    Parameters:
        head: the expected last version, whose batch needs no second thread.
    """
    changes = WriteBatch(connection, EntityRegister(connection), new=True)
    version, chain_hash = 0, GENESIS
    indexed: Future[None] | None = None
    while until is None or version < until:
        limit = batch_events if until is None else min(batch_events, until - version)
        last = _project_batch(changes, log, namespace, version, limit, skipped)
        if last is None:
            break
        if indexed is not None:
            indexed.result()
            changes.deferred.apply(version)
            indexed = None
        changes.write_episodes()
        if last.version < head:
            indexed = indexing.submit(_index, connection, version + 1)
        else:
            _index(connection, version + 1)
            changes.deferred.apply(last.version)
        version, chain_hash = last.version, last.hash
        if on_progress is not None:
            on_progress(version, log.head(namespace).version if until is None else until)
    if indexed is not None:
        indexed.result()
        changes.deferred.apply(version)
    changes.write_sessions_and_entities()
    changes.resolve()
    return version, chain_hash


def _project_batch(
    changes: WriteBatch, log: EventLog, namespace: str, after: int, limit: int, skipped: frozenset[int]
) -> RecordedEvent | None:
    """Project up to `limit` events and `READ_BYTES_MAX` bytes after `after`; return the last one, None at the end."""
    last: RecordedEvent | None = None
    version, through, size = after, after + limit, 0
    while version < through and size < READ_BYTES_MAX:
        events = log.read(namespace, after=version, limit=min(_PAGE_EVENTS, through - version))
        if not events:
            break
        _apply(changes, [event for event in events if event.version not in skipped] if skipped else events)
        last, version = events[-1], events[-1].version
        size += sum([len(event.payload) for event in events])
    return last


def _index(connection: apsw.Connection, first: int) -> None:
    """Add the episodes from the version `first` on to the keyword index; flush pages so that the commit is short."""
    index_episodes(connection, first)
    connection.cache_flush()


def _apply(batch: WriteBatch, events: Sequence[RecordedEvent]) -> None:
    """Apply events; raise `ProjectionFailed` with the version of the event whose handler fails."""
    event: RecordedEvent | None = None
    try:
        for event in events:
            apply_event(batch, event)
        batch.complete_episodes()
    except Exception as error:
        event = batch.completing or event
        if event is None:
            raise
        raise ProjectionFailed(event.namespace, event.version, f"{type(error).__name__}: {error}") from error
