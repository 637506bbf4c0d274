"""SQLite pruning: deletes sealed events from the file of a log, and keeps their ids for the check of appends."""

from __future__ import annotations

import apsw

from recollect.events.backends.sqlite_ids import VERSION_BITS, VERSION_MASK
from recollect.events.backends.staging import StoredEvent
from recollect.events.envelope import RecordedEvent
from recollect.events.errors import ForeignFile, StorageError

_COPY_PRUNED_IDS = (
    f"INSERT INTO pruned_ids SELECT position >> {VERSION_BITS}, id, position & {VERSION_MASK} "
    "FROM events WHERE position > ? AND position <= ?"
)
_DELETE_TRIGGER = "SELECT sql FROM sqlite_schema WHERE name = 'events_refuse_delete'"


def prune_rows(connection: apsw.Connection, key: int, pruned: int, sealed: RecordedEvent) -> None:
    """Delete the versions over `pruned` up to that of `sealed` in one transaction; store their ids in `pruned_ids`.

    Parameters:
        key: of the namespace.
        sealed: the last event to delete, as the archive has it.

    Raises:
        ForeignFile: the archive has another event. StorageError: another process prunes the namespace.
    """
    namespace = sealed.namespace
    span = ((key << VERSION_BITS) + pruned, (key << VERSION_BITS) + sealed.version)
    connection.execute("BEGIN IMMEDIATE")
    try:
        row: StoredEvent | None = connection.execute("SELECT hash FROM events WHERE position = ?", span[1:]).fetchone()
        if row is None or row[0] != sealed.hash:
            raise ForeignFile(
                f"{connection.filename}: version {sealed.version} of {namespace!r} differs from the sealed event; "
                "run verify"
            )
        connection.execute(_COPY_PRUNED_IDS, span)
        # Only this transaction may delete: it restores the trigger before other connections see the change.
        trigger: StoredEvent = connection.execute(_DELETE_TRIGGER).fetchall()[0]
        connection.execute("DROP TRIGGER events_refuse_delete")
        connection.execute("DELETE FROM events WHERE position > ? AND position <= ?", span)
        connection.execute(trigger[0])
        connection.execute("UPDATE heads SET pruned = ? WHERE key = ? AND pruned = ?", (sealed.version, key, pruned))
        if connection.changes() != 1:
            raise StorageError(
                f"{connection.filename}: another process prunes {namespace!r} at the same time; try again"
            )
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
