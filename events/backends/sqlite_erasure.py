"""SQLite erasure: empties events in the file of a log, in the transaction that records their erasure."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import apsw

from recollect.events.backends.group_commit_writer import AppendRequest
from recollect.events.backends.sqlite_ids import VERSION_BITS, original_id, stored_id
from recollect.events.backends.staged_encryption import StagedEncryption
from recollect.events.backends.staging import Key, StagedHead, Staging, StoredEvent, StoredId
from recollect.events.encryption.key_store import ERASED_ID_PREFIX
from recollect.events.envelope import ENCODING_ERASED, ERASED_TYPE, Appended, EventDraft, RecordedEvent
from recollect.events.errors import VersionConflict
from recollect.events.storage.database import truncate_wal
from recollect.events.storage.file_queue_lock import FileQueueLock

_HEAD = "SELECT key, version, hash, recorded_at_us, erasure_version, pruned FROM heads WHERE namespace = ?"
_UPDATE_TRIGGER = "SELECT sql FROM sqlite_schema WHERE name = 'events_refuse_update'"
_ID = "SELECT id FROM events WHERE position = ? AND encoding <> ?"
_INSERT = f"INSERT INTO events VALUES ((? << {VERSION_BITS}) + ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_MOVE_HEAD = "UPDATE heads SET version = ?, hash = ?, recorded_at_us = ?, erasure_version = ?1 WHERE key = ?"
#: The columns of `RecordedEvent.erased`.
_ERASE = """
UPDATE events SET id = ?, type = ?, schema_version = 1, occurred_at_us = recorded_at_us, session_id = NULL,
    actor = NULL, causation_id = NULL, correlation_id = NULL, encoding = ?, payload = x''
WHERE position = ?
"""
_HIDDEN = "SELECT version, id FROM erased_in_archive WHERE key = ? AND version BETWEEN ? AND ?"


class SqliteErasure:
    """One erasure in the file of a log.

    Parameters:
        connection: a connection of its own, which overwrites what it deletes (`secure_delete`).
        turn: of the writers of the file.
        now_us: the time of recording.
        sealed: the last version that the archive has.
    """

    def __init__(
        self, connection: apsw.Connection, turn: FileQueueLock, encryption: StagedEncryption, now_us: int, sealed: int
    ) -> None:
        self._turn = turn
        self._sealed = sealed
        self._connection = connection
        self._encryption = encryption
        self._now_us = now_us

    def run(
        self, namespace: str, versions: Sequence[int], record: EventDraft, expected_version: int
    ) -> Appended | None:
        """Erase and record in one transaction, then remove the old bytes from the WAL; see `EventLog.erase`."""
        with self._turn.locked():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                appended = self._write(namespace, versions, record, expected_version)
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            self._vacuum_once()
        truncate_wal(self._connection, turn=self._turn.locked)
        return appended

    def _vacuum_once(self) -> None:
        """Write the file again if an earlier release began it, which did not overwrite what it deleted."""
        [[vacuumed]] = self._connection.execute("SELECT vacuumed FROM log").fetchall()
        if not vacuumed:
            self._connection.execute("VACUUM")
            self._connection.execute("UPDATE log SET vacuumed = 1")

    def _write(
        self, namespace: str, versions: Sequence[int], record: EventDraft, expected_version: int
    ) -> Appended | None:
        row: StoredEvent | None = self._connection.execute(_HEAD, (namespace,)).fetchone()
        if row is None:
            raise VersionConflict(namespace, expected_version, 0)
        key, version, chain_hash, recorded_at_us, erasure_version, pruned = row
        head = StagedHead(namespace, key, version, chain_hash, recorded_at_us, erasure_version)
        staging = Staging(self._now_us, [head], stored_id, self._find, self._encryption)
        request = AppendRequest(namespace, [record], expected_version, threading.Lock())
        staging.stage([request])
        [appended] = request.answer()
        if appended.duplicate:
            return None
        self._connection.executemany(_INSERT, staging.rows)
        self._connection.execute(_MOVE_HEAD, (head.version, head.hash, head.recorded_at_us, key))
        self._connection.execute("INSERT INTO erasures VALUES (?, ?)", (key, appended.version))
        known_ids = self._erase(namespace, key, [version for version in versions if version > pruned])
        known_ids |= self._erase_pruned(namespace, key, [version for version in versions if version <= pruned])
        self._connection.executemany(
            "INSERT OR IGNORE INTO erased_in_archive VALUES (?, ?, ?)",
            [(key, version, known_id) for version, known_id in known_ids.items() if version <= self._sealed],
        )
        return appended

    def _find(self, place: tuple[Key, StoredId]) -> StoredEvent | None:
        """Return the row of an earlier record with the same key and id."""
        query = f"SELECT * FROM events WHERE position >> {VERSION_BITS} = ? AND id = ?"
        row: StoredEvent | None = self._connection.execute(query, place).fetchone()
        return None if row is None else (place[0], row[0] & ((1 << VERSION_BITS) - 1), *row[1:])

    def _erase(self, namespace: str, key: int, versions: Sequence[int]) -> dict[int, str]:
        """Empty rows of the file; return their new ids by version.

        Only this transaction may update: it restores the trigger before its end.
        """
        known_ids: dict[int, str] = {}
        for version in versions:
            row = self._connection.execute(_ID, ((key << VERSION_BITS) + version, ENCODING_ERASED)).fetchone()
            if row is not None:
                known_ids[version] = self._encryption.keys.erased_id(namespace, original_id(row[0]))
        trigger: StoredEvent = self._connection.execute(_UPDATE_TRIGGER).fetchall()[0]
        self._connection.execute("DROP TRIGGER events_refuse_update")
        self._connection.executemany(
            _ERASE,
            [
                (known_id, ERASED_TYPE, ENCODING_ERASED, (key << VERSION_BITS) + version)
                for version, known_id in known_ids.items()
            ],
        )
        self._connection.execute(trigger[0])
        return known_ids

    def _erase_pruned(self, namespace: str, key: int, versions: Sequence[int]) -> dict[int, str]:
        """Replace the ids of events that only the archive has; return the new ids by version."""
        if not versions:
            return {}
        rows: Any = self._connection.execute("SELECT version, id FROM pruned_ids WHERE key = ?", (key,))
        ids: dict[Any, Any] = dict(rows)
        known_ids: dict[int, str] = {}
        for version in versions:
            old_id = ids[version]
            if isinstance(old_id, str) and old_id.startswith(ERASED_ID_PREFIX):
                continue
            known_ids[version] = self._encryption.keys.erased_id(namespace, original_id(old_id))
            new = (known_ids[version], key, old_id)
            self._connection.execute("UPDATE pruned_ids SET id = ? WHERE key = ? AND id = ?", new)
        return known_ids


def without_erased(reader: apsw.Connection, key: int, sealed: list[RecordedEvent]) -> list[RecordedEvent]:
    """Return sealed events without the content of the erased ones."""
    if not sealed:
        return sealed
    span = (key, sealed[0].version, sealed[-1].version)
    rows: Any = reader.execute(_HIDDEN, span)
    hidden: dict[int, str] = dict(rows)
    if not hidden:
        return sealed
    return [event.erased(hidden[event.version]) if event.version in hidden else event for event in sealed]
