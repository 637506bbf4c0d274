"""PostgreSQL erasure: empties events in the database of a log, in the transaction that records their erasure."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import psycopg

from recollect.events.backends.group_commit_writer import AppendRequest
from recollect.events.backends.postgres_schema import StoredEvent
from recollect.events.backends.staged_encryption import StagedEncryption
from recollect.events.backends.staging import Key, StagedHead, Staging, StoredId
from recollect.events.envelope import ENCODING_ERASED, ERASED_TYPE, Appended, EventDraft
from recollect.events.errors import VersionConflict

_HEAD = """
SELECT namespace, namespace, version, hash, recorded_at_us, erasure_version
FROM heads WHERE namespace = %s FOR UPDATE
"""
_IDS = "SELECT version, id FROM events WHERE namespace = %s AND version = ANY(%s) AND encoding <> %s"
_INSERT = """
INSERT INTO events (
    namespace, version, id, type, schema_version, occurred_at_us, recorded_at_us, session_id, actor, causation_id,
    correlation_id, encoding, payload, leaf, hash
) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
"""
_MOVE_HEAD = """
UPDATE heads SET version = %(version)s, hash = %(hash)s, recorded_at_us = %(recorded)s, erasure_version = %(version)s
WHERE namespace = %(namespace)s
"""
#: The columns of `RecordedEvent.erased`.
_ERASE = """
UPDATE events SET id = erased.id, type = %s, schema_version = 1, occurred_at_us = recorded_at_us, session_id = NULL,
    actor = NULL, causation_id = NULL, correlation_id = NULL, encoding = %s, payload = ''
FROM unnest(%s::bigint[], %s::text[]) AS erased (version, id)
WHERE events.namespace = %s AND events.version = erased.version
"""


class PostgresErasure:
    """One erasure in the database of a log.

    The server keeps the old bytes in dead rows and in its WAL until it reuses them. They are ciphertext, if the event
    was encrypted; the receipt says so.

    Parameters:
        connection: a connection of its own, in autocommit mode.
        now_us: the time of recording.
    """

    def __init__(self, connection: psycopg.Connection[StoredEvent], encryption: StagedEncryption, now_us: int) -> None:
        self._connection = connection
        self._encryption = encryption
        self._now_us = now_us

    def run(
        self, namespace: str, versions: Sequence[int], record: EventDraft, expected_version: int
    ) -> Appended | None:
        """Erase and record in one transaction; see `EventLog.erase`."""
        with self._connection.transaction():
            row = self._connection.execute(_HEAD, (namespace,), binary=True).fetchone()
            if row is None:
                raise VersionConflict(namespace, expected_version, 0)
            head = StagedHead(*row)
            staging = Staging(self._now_us, [head], str, self._find, self._encryption)
            request = AppendRequest(namespace, [record], expected_version, threading.Lock())
            staging.stage([request])
            [appended] = request.answer()
            if appended.duplicate:
                return None
            self._connection.execute(_INSERT, staging.rows[0])
            values = {"version": head.version, "hash": head.hash, "recorded": head.recorded_at_us}
            self._connection.execute(_MOVE_HEAD, values | {"namespace": namespace})
            self._connection.execute("INSERT INTO erasures VALUES (%s, %s)", (namespace, head.version))
            self._erase(namespace, versions)
        return appended

    def _find(self, place: tuple[Key, StoredId]) -> StoredEvent | None:
        """Return the row of an earlier record with the same namespace and id."""
        query = "SELECT * FROM events WHERE namespace = %s AND id = %s"
        return self._connection.execute(query, place, binary=True).fetchone()

    def _erase(self, namespace: str, versions: Sequence[int]) -> None:
        """Empty the rows of `versions`; the right to update exists in this transaction alone."""
        rows = self._connection.execute(_IDS, (namespace, list(versions), ENCODING_ERASED)).fetchall()
        known_ids = [self._encryption.keys.erased_id(namespace, row[1]) for row in rows]
        # One at a time: two transactions that grant the right would change the same row of the catalogue.
        self._connection.execute("SELECT pg_advisory_xact_lock(hashtext('recollect.erase'))")
        self._connection.execute("SELECT set_config('recollect.erasing', 'on', true)")
        self._connection.execute("GRANT UPDATE ON events TO CURRENT_USER")
        erased = ([row[0] for row in rows], known_ids)
        self._connection.execute(_ERASE, (ERASED_TYPE, ENCODING_ERASED, *erased, namespace))
        self._connection.execute("REVOKE UPDATE ON events FROM CURRENT_USER")
