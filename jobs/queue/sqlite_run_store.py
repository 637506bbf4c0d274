"""SQLite run store: `RunStore` in a file of the data folder, for workers on one machine."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import orjson
from msgspec.structs import astuple

from recollect.events.envelope import now_us
from recollect.events.errors import ForeignFile
from recollect.events.storage.database import connect, storage_errors, truncate_wal
from recollect.events.storage.private_files import make_private_folder
from recollect.jobs.following.cursor import Cursor
from recollect.jobs.queue.run_store import (
    DEAD_LETTERS_MAX,
    HEARTBEAT_SHOWN_SECONDS_MAX,
    DeadLetter,
    Finished,
    Heartbeat,
    Run,
)

_logger = logging.getLogger(__name__)

#: Runs of a job that are stored: a month of nightly runs.
_RUNS_MAX = 30
_HEARTBEAT_AGE_US_MAX = int(HEARTBEAT_SHOWN_SECONDS_MAX * 1_000_000)

_CLAIM = """
INSERT INTO runs (job, slot_us, started_us, touched_us, ended_us, namespaces, events, errors, error)
VALUES (?1, ?2, ?3, ?3, NULL, 0, 0, 0, NULL)
ON CONFLICT (job, slot_us) DO UPDATE SET touched_us = ?3 WHERE ended_us IS NULL AND touched_us <= ?3 - ?4
"""
_ATTEMPT = (
    "INSERT INTO attempts (message_id, count) VALUES (?, 1) "
    "ON CONFLICT (message_id) DO UPDATE SET count = count + 1 RETURNING count"
)
_LAST_RUNS = (
    "SELECT job, slot_us, started_us, touched_us, ended_us, namespaces, events, errors, error FROM runs "
    "WHERE (job, slot_us) IN (SELECT job, max(slot_us) FROM runs GROUP BY job) ORDER BY job"
)
_LETTER_COLUMNS = "id, queue, actor, arguments, died_us, error"
_HEARTBEAT_COLUMNS = "id, role, host, pid, beat_us"
_DELETE_OLD_RUNS = (
    "DELETE FROM runs WHERE job = ?1 AND slot_us NOT IN "
    "(SELECT slot_us FROM runs WHERE job = ?1 ORDER BY slot_us DESC LIMIT ?2)"
)
_NOTE_READ = (
    "INSERT INTO read_messages (namespace_key, version) VALUES (?, ?) "
    "ON CONFLICT (namespace_key) DO UPDATE SET version = max(version, excluded.version)"
)
_CURSOR_COLUMNS = "position, erasure_version, failures, retry_at_us, hash"
_SET_CURSOR = f"INSERT OR REPLACE INTO cursors (name, namespace_key, {_CURSOR_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"

_RECORD_FINISHED = "INSERT OR REPLACE INTO finished (job, namespace_key, version, basis, due_us) VALUES (?, ?, ?, ?, ?)"
_FINISHED = "SELECT namespace_key, version, basis, due_us FROM finished WHERE job = ? AND namespace_key IN ({})"
#: Keys in one statement: SQLite takes 32,766 values.
_KEYS_MAX = 1_000

_FORGET_LETTERS = (
    "DELETE FROM dead_letters WHERE EXISTS (SELECT 1 FROM json_each(arguments) WHERE value = ?) RETURNING id"
)
_FORGET_ERRORS = "UPDATE runs SET error = NULL WHERE substr(error, 1, length(?1)) = ?1 RETURNING job"


class SqliteRunStore:
    """`RunStore` in the SQLite file `path`.

    A damaged file is put aside, and a new one is begun: the jobs whose runs are forgotten find nothing left to do.
    """

    forget_leaves: str | None = None

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        try:
            self._open()
        except ForeignFile as error:
            aside = path.with_name(f"{path.name}.damaged")
            _logger.warning("%s: kept as %s; past runs and dead letters are forgotten", error, aside.name)
            with storage_errors(path):
                path.replace(aside)
                for suffix in ("-wal", "-shm"):
                    Path(f"{path}{suffix}").unlink(missing_ok=True)
            self._open()

    def _open(self) -> None:
        """Connect to the file, which is created or checked.

        Raises:
            ForeignFile: it is damaged.
        """
        with storage_errors(self._path):
            make_private_folder(self._path.parent)
            self._connection = connect(self._path)
            # NORMAL may lose the last rows at a power cut. The work is then done again, which appends nothing.
            self._connection.pragma("synchronous", "NORMAL")
            self._connection.execute(files(__package__).joinpath("sqlite_run_store.sql").read_text(encoding="utf-8"))
            if "hash" not in [row[1] for row in self._connection.execute("PRAGMA table_info(cursors)")]:
                # A file of the main branch of 29 November 2026.
                self._connection.execute("ALTER TABLE cursors ADD COLUMN hash TEXT NOT NULL DEFAULT ''")
            problem = self._connection.pragma("quick_check")
        if problem != "ok":
            raise ForeignFile(f"{self._path} is damaged ({problem})")

    def claim(self, job: str, scheduled_at_us: int, now_us: int, stale_us: int) -> bool:
        """See `RunStore.claim`."""
        with self._lock, storage_errors(self._path):
            self._connection.execute(_CLAIM, (job, scheduled_at_us, now_us, stale_us))
            claimed = self._connection.changes() > 0
            if claimed:
                self._connection.execute(_DELETE_OLD_RUNS, (job, _RUNS_MAX))
            return claimed

    def record_progress(
        self, job: str, scheduled_at_us: int, now_us: int, *, events: int = 0, error: str | None = None
    ) -> None:
        """See `RunStore.record_progress`."""
        self._execute(
            "UPDATE runs SET touched_us = ?, namespaces = namespaces + 1, events = events + ?, "
            "errors = errors + ?, error = coalesce(?, error) WHERE job = ? AND slot_us = ?",
            now_us,
            events,
            int(error is not None),
            error,
            job,
            scheduled_at_us,
        )

    def record_finished(self, job: str, finished: Sequence[Finished]) -> None:
        """See `RunStore.record_finished`."""
        rows = [
            (job, bytes.fromhex(state.namespace_key), state.version, bytes.fromhex(state.basis), state.due_us)
            for state in finished
        ]
        with self._lock, storage_errors(self._path), self._connection:
            self._connection.executemany(_RECORD_FINISHED, rows)

    def finished(self, job: str, namespace_keys: Sequence[str]) -> dict[str, Finished]:
        """See `RunStore.finished`."""
        states: dict[str, Finished] = {}
        for first in range(0, len(namespace_keys), _KEYS_MAX):
            keys = [bytes.fromhex(key) for key in namespace_keys[first : first + _KEYS_MAX]]
            statement = _FINISHED.format(", ".join("?" * len(keys)))
            for row in self._execute(statement, job, *keys):
                states[row[0].hex()] = Finished(
                    namespace_key=row[0].hex(), version=row[1], basis=row[2].hex(), due_us=row[3]
                )
        return states

    def end(self, job: str, scheduled_at_us: int, now_us: int) -> None:
        """See `RunStore.end`."""
        self._execute("UPDATE runs SET ended_us = ? WHERE job = ? AND slot_us = ?", now_us, job, scheduled_at_us)

    def runs(self) -> list[Run]:
        """See `RunStore.runs`."""
        return [_run(row) for row in self._execute(_LAST_RUNS)]

    def add_attempt(self, message_id: str) -> int:
        """See `RunStore.add_attempt`."""
        return self._execute(_ATTEMPT, message_id)[0][0]

    def clear_attempts(self, message_id: str) -> None:
        """See `RunStore.clear_attempts`."""
        self._execute("DELETE FROM attempts WHERE message_id = ?", message_id)

    def add_dead_letter(self, letter: DeadLetter) -> None:
        """See `RunStore.add_dead_letter`."""
        arguments = orjson.dumps(letter.arguments).decode()
        self._execute(
            f"INSERT OR REPLACE INTO dead_letters ({_LETTER_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",
            letter.id,
            letter.queue,
            letter.actor,
            arguments,
            letter.failed_at_us,
            letter.error,
        )
        self._execute(
            "DELETE FROM dead_letters WHERE id NOT IN (SELECT id FROM dead_letters ORDER BY died_us DESC LIMIT ?)",
            DEAD_LETTERS_MAX,
        )

    def dead_letters(self) -> list[DeadLetter]:
        """See `RunStore.dead_letters`."""
        return [
            _letter(row) for row in self._execute(f"SELECT {_LETTER_COLUMNS} FROM dead_letters ORDER BY died_us, id")
        ]

    def pop_dead_letter(self, letter_id: str) -> DeadLetter | None:
        """See `RunStore.pop_dead_letter`."""
        rows = self._execute(f"DELETE FROM dead_letters WHERE id = ? RETURNING {_LETTER_COLUMNS}", letter_id)
        return _letter(rows[0]) if rows else None

    def forget(self, namespace: str) -> int:
        """See `RunStore.forget`."""
        letters = self._execute(_FORGET_LETTERS, namespace)
        runs = self._execute(_FORGET_ERRORS, f"{namespace}: ")
        with self._lock, storage_errors(self._path):
            truncate_wal(self._connection)
        return len(letters) + len(runs)

    def heartbeat(self, heartbeat: Heartbeat) -> None:
        """See `RunStore.heartbeat`."""
        row = (heartbeat.id, heartbeat.role, heartbeat.host, heartbeat.pid, heartbeat.seen_at_us)
        self._execute(f"INSERT OR REPLACE INTO beats ({_HEARTBEAT_COLUMNS}) VALUES (?, ?, ?, ?, ?)", *row)
        self._execute("DELETE FROM beats WHERE beat_us < ?", heartbeat.seen_at_us - _HEARTBEAT_AGE_US_MAX)

    def deregister(self, heartbeat_id: str) -> None:
        """See `RunStore.deregister`."""
        self._execute("DELETE FROM beats WHERE id = ?", heartbeat_id)

    def heartbeats(self) -> list[Heartbeat]:
        """See `RunStore.heartbeats`."""
        query = f"SELECT {_HEARTBEAT_COLUMNS} FROM beats WHERE beat_us > ? ORDER BY role, id"
        return [_heartbeat(row) for row in self._execute(query, now_us() - _HEARTBEAT_AGE_US_MAX)]

    def note_read(self, namespace_key: str, version: int) -> None:
        """See `RunStore.note_read`."""
        self._execute(_NOTE_READ, namespace_key, version)

    def read_through(self, namespace_key: str) -> int:
        """See `RunStore.read_through`."""
        rows = self._execute("SELECT version FROM read_messages WHERE namespace_key = ?", namespace_key)
        return rows[0][0] if rows else 0

    def cursor(self, name: str, namespace_key: str) -> Cursor | None:
        """See `CursorStore.cursor`."""
        query = f"SELECT {_CURSOR_COLUMNS} FROM cursors WHERE name = ? AND namespace_key = ?"
        rows = self._execute(query, name, namespace_key)
        return _cursor(rows[0]) if rows else None

    def cursors(self, name: str) -> dict[str, Cursor]:
        """See `CursorStore.cursors`."""
        query = f"SELECT {_CURSOR_COLUMNS}, namespace_key FROM cursors WHERE name = ?"
        return {row[-1]: _cursor(row[:-1]) for row in self._execute(query, name)}

    def set_cursor(self, name: str, namespace_key: str, cursor: Cursor | None) -> None:
        """See `CursorStore.set_cursor`."""
        if cursor is None:
            self._execute("DELETE FROM cursors WHERE name = ? AND namespace_key = ?", name, namespace_key)
        else:
            self._execute(_SET_CURSOR, name, namespace_key, *astuple(cursor))

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def _execute(self, query: str, *values: str | int | bytes | None) -> list[tuple[Any, ...]]:
        with self._lock, storage_errors(self._path):
            return self._connection.execute(query, values).fetchall()


def _run(row: tuple[Any, ...]) -> Run:
    job, scheduled_at_us, started_at_us, progressed_at_us, ended_at_us, namespaces, events, errors, error = row
    return Run(
        job=job,
        scheduled_at_us=scheduled_at_us,
        started_at_us=started_at_us,
        progressed_at_us=progressed_at_us,
        ended_at_us=ended_at_us,
        namespaces=namespaces,
        events=events,
        errors=errors,
        error=error,
    )


def _letter(row: tuple[Any, ...]) -> DeadLetter:
    id, queue, actor, arguments, failed_at_us, error = row
    return DeadLetter(
        id=id,
        queue=queue,
        actor=actor,
        arguments=tuple(orjson.loads(arguments)),
        failed_at_us=failed_at_us,
        error=error,
    )


def _heartbeat(row: tuple[Any, ...]) -> Heartbeat:
    id, role, host, pid, seen_at_us = row
    return Heartbeat(id=id, role=role, host=host, pid=pid, seen_at_us=seen_at_us)


def _cursor(row: tuple[Any, ...]) -> Cursor:
    position, erasure_version, failures, retry_at_us, hash = row
    return Cursor(
        position=position, erasure_version=erasure_version, failures=failures, retry_at_us=retry_at_us, hash=hash
    )
