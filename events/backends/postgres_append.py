"""PostgreSQL append: the statements of the transaction of an append, in one pipeline.

The heads of the namespaces are locked first, in the order of their names; the commit is sent with the rows. For a
writer that knows the heads, one statement does all of it (`write_at_once`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from psycopg import errors as pg

from recollect.events.backends.group_commit_writer import AppendRequest
from recollect.events.backends.own_heads import HeadBefore
from recollect.events.backends.staged_encryption import StagedEncryption
from recollect.events.backends.staging import Key, StagedHead, Staging, StoredEvent, StoredId
from recollect.events.chain import GENESIS

#: The columns of an event, in the order of `StoredEvent`.
COLUMNS = (
    "namespace, version, id, type, schema_version, occurred_at_us, recorded_at_us, session_id, actor, causation_id, "
    "correlation_id, encoding, payload, leaf, hash"
)
_ARRAYS = (
    "%b::text[], %b::bigint[], %b::text[], %b::text[], %b::integer[], %b::bigint[], %b::bigint[], %b::text[], "
    "%b::text[], %b::text[], %b::text[], %b::text[], %b::bytea[], %b::bytea[], %b::bytea[]"
)
_INSERT = f"INSERT INTO events ({COLUMNS}) SELECT * FROM unnest({_ARRAYS})"
_FIND_ALL = (
    f"SELECT {COLUMNS} FROM events JOIN unnest(%s::text[], %s::text[]) AS wanted (namespace, id) USING (namespace, id)"
)
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
#: Locks in the order of names, so that two writers with the same namespaces cannot deadlock.
_LOCK_HEADS = (
    "SELECT namespace, namespace, version, hash, recorded_at_us, erasure_version FROM heads "
    "WHERE namespace = ANY(%s) ORDER BY namespace FOR UPDATE"
)
_BEGIN_HEADS = (
    "INSERT INTO heads (namespace, version, hash, recorded_at_us) "
    "SELECT name, 0, %s, 0 FROM unnest(%s::text[]) AS name ORDER BY name ON CONFLICT DO NOTHING"
)
_MOVE = """
UPDATE heads SET version = new.version, hash = new.hash, recorded_at_us = new.recorded_at_us
    FROM unnest(%b::text[], %b::bigint[], %b::bytea[], %b::bigint[], %b::bigint[], %b::bytea[])
        AS new (namespace, version, hash, recorded_at_us, before, hash_before)
    WHERE heads.namespace = new.namespace AND heads.version = new.before AND heads.hash = new.hash_before
"""
#: Compare and set: a head moves only from the version and the hash that the writer has read, since a replica that has
#: become the server may have other events of that version. Otherwise the statement fails by a division by zero, since
#: the transaction is committed before the client has read how many have moved.
_ALL_MOVED = "SELECT 1 / (count(*) = %b)::integer FROM moved"
_MOVE_HEADS = f"WITH moved AS ({_MOVE} RETURNING 1) {_ALL_MOVED}"
#: All of an append in one statement, which is a transaction of its own. An update of several heads locks them in any
#: order; counting `locked`, which is always true, makes it wait until they are locked in the order of their names.
_APPEND = f"""
WITH locked AS (SELECT 1 FROM heads WHERE namespace = ANY(%b) ORDER BY namespace FOR UPDATE),
    moved AS ({_MOVE} AND (SELECT count(*) FROM locked) >= 0 RETURNING 1)
{_INSERT} WHERE ({_ALL_MOVED}) = 1
"""
#: The errors of a head that has moved, and of an id that is recorded.
_REFUSALS = (pg.DivisionByZero, pg.UniqueViolation)
_DROP_UNUSED_HEADS = "DELETE FROM heads WHERE namespace = ANY(%s) AND version = 0"


def lock_heads(
    connection: psycopg.Connection[StoredEvent],
    requests: Sequence[AppendRequest],
    new_ids: set[str],
    encryption: StagedEncryption | None,
) -> tuple[list[StagedHead], dict[tuple[Key, StoredId], StoredEvent]]:
    """Begin a transaction; return the heads of `requests`, locked, and the recorded events by (namespace, id).

    New namespaces get their heads only when they are missing, which saves a statement of each other append.
    """
    names = sorted({request.namespace for request in requests})
    pairs = {
        (request.namespace, draft.id)
        for request in requests
        for draft in request.drafts
        if draft.id is not None and draft.id not in new_ids
    }
    if encryption is not None and encryption.keys.exists:
        pairs |= {(namespace, encryption.keys.erased_id(namespace, id)) for namespace, id in pairs}
    locked, recorded = _locked(connection, names, sorted(pairs), with_new=False)
    if len(locked) < len(names):
        # Begun again, since the locks of the others were taken before that of a new name between them.
        connection.execute("ROLLBACK")
        locked, recorded = _locked(connection, names, sorted(pairs), with_new=True)
    return [StagedHead(*row) for row in locked], {(row[0], row[2]): row for row in recorded}


def _locked(
    connection: psycopg.Connection[StoredEvent], names: list[str], pairs: list[tuple[str, str]], *, with_new: bool
) -> tuple[list[StoredEvent], list[StoredEvent]]:
    """Begin a transaction; return the rows of the heads `names`, locked, and of the events `pairs` (namespace, id).

    Parameters:
        with_new: add the heads that are missing.
    """
    connection.execute(_BEGIN)
    if with_new:
        connection.execute(_BEGIN_HEADS, (GENESIS, names))
    locked = connection.execute(_LOCK_HEADS, (names,), binary=True)
    if not pairs:
        return locked.fetchall(), []
    # READ COMMITTED takes a new snapshot after the lock, which has the events of the writer before.
    wanted = ([name for name, _ in pairs], [event_id for _, event_id in pairs])
    recorded = connection.execute(_FIND_ALL, wanted, binary=True)
    return locked.fetchall(), recorded.fetchall()


def write_and_commit(
    connection: psycopg.Connection[StoredEvent],
    staging: Staging,
    moved: Sequence[StagedHead],
    heads_before: Mapping[str, HeadBefore],
) -> None:
    """Write what was staged, move the heads and commit; the caller's pipeline waits for the outcome."""
    if not moved:
        connection.execute("ROLLBACK")
        return
    unused_heads = [
        name for name, (version, _) in heads_before.items() if version == 0 and not staging.heads[name].moved
    ]
    _move_heads(connection, moved, heads_before)
    connection.execute(_INSERT, [list(column) for column in zip(*staging.rows, strict=True)])
    if unused_heads:
        connection.execute(_DROP_UNUSED_HEADS, (unused_heads,))
    connection.execute("COMMIT")


def write_at_once(
    connection: psycopg.Connection[StoredEvent],
    staging: Staging,
    moved: Sequence[StagedHead],
    heads_before: Mapping[str, HeadBefore],
) -> bool:
    """Lock the heads, write what was staged and commit, in one statement.

    Returns:
        False when another writer has moved one of the heads, or an id is recorded; then nothing is written.
    """
    rows = [list(column) for column in zip(*staging.rows, strict=True)]
    moves = _moves(moved, heads_before)
    try:
        connection.execute(_APPEND, (moves[0], *moves, *rows, len(moved)))
    except _REFUSALS:
        return False
    return True


def _move_heads(
    connection: psycopg.Connection[StoredEvent], moved: Sequence[StagedHead], heads_before: Mapping[str, HeadBefore]
) -> None:
    """Move the heads; the transaction fails by `DivisionByZero` when one has not the version that it moves from."""
    connection.execute(_MOVE_HEADS, (*_moves(moved, heads_before), len(moved)))


def _moves(moved: Sequence[StagedHead], heads_before: Mapping[str, HeadBefore]) -> tuple[list[Any], ...]:
    """Return the columns of the moves of heads, for `_MOVE`; the first one has the namespaces."""
    return (
        [head.namespace for head in moved],
        [head.version for head in moved],
        [head.hash for head in moved],
        [head.recorded_at_us for head in moved],
        [heads_before[head.namespace][0] for head in moved],
        [heads_before[head.namespace][1] for head in moved],
    )
