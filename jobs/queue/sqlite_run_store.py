"""Records in a SQLite file beside the data: for workers on one machine."""

from __future__ import annotations

import threading
from importlib.resources import files
from pathlib import Path
from typing import Any

import orjson

from recollect.events.storage.database import connect, storage_errors
from recollect.jobs.queue.run_store import DEAD_LETTERS_MAX, DeadLetter, Heartbeat, Run

#: Slots of a job that are kept.
_SLOTS_MAX = 30
#: Signs of life are forgotten after a day.
_BEATS_US = 86_400_000_000

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
_FORGET_RUNS = (
    "DELETE FROM runs WHERE job = ?1 AND slot_us NOT IN "
    "(SELECT slot_us FROM runs WHERE job = ?1 ORDER BY slot_us DESC LIMIT ?2)"
)
_FORGET_PAGES = "DELETE FROM pages WHERE job = ?1 AND slot_us NOT IN (SELECT slot_us FROM runs WHERE job = ?1)"


class SqliteRunStore:
    """`Records` in the file `path`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        with storage_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = connect(path)
            # A record that a power cut takes is made again; no memory depends on it.
            self._connection.pragma("synchronous", "NORMAL")
            self._connection.execute(files(__package__).joinpath("sqlite_run_store.sql").read_text(encoding="utf-8"))

    def claim(self, job: str, slot_us: int, now_us: int, stale_us: int) -> bool:
        """See `Records.claim`."""
        with self._lock, storage_errors(self._path):
            self._connection.execute(_CLAIM, (job, slot_us, now_us, stale_us))
            claimed = self._connection.changes() > 0
            if claimed:
                self._connection.execute(_FORGET_RUNS, (job, _SLOTS_MAX))
                self._connection.execute(_FORGET_PAGES, (job,))
            return claimed

    def record_progress(
        self, job: str, slot_us: int, now_us: int, *, events: int = 0, error: str | None = None
    ) -> None:
        """See `Records.touch`."""
        self._do(
            "UPDATE runs SET touched_us = ?, namespaces = namespaces + 1, events = events + ?, "
            "errors = errors + ?, error = coalesce(?, error) WHERE job = ? AND slot_us = ?",
            now_us,
            events,
            int(error is not None),
            error,
            job,
            slot_us,
        )

    def finish_batch(self, job: str, slot_us: int, after: str) -> None:
        """See `Records.finish_page`."""
        self._do("INSERT OR IGNORE INTO pages (job, slot_us, after) VALUES (?, ?, ?)", job, slot_us, after)

    def has_batch(self, job: str, slot_us: int, after: str) -> bool:
        """See `Records.has_page`."""
        return bool(self._do("SELECT 1 FROM pages WHERE job = ? AND slot_us = ? AND after = ?", job, slot_us, after))

    def end(self, job: str, slot_us: int, now_us: int) -> None:
        """See `Records.end`."""
        self._do("UPDATE runs SET ended_us = ? WHERE job = ? AND slot_us = ?", now_us, job, slot_us)

    def runs(self) -> list[Run]:
        """See `Records.runs`."""
        return [_run(row) for row in self._do(_LAST_RUNS)]

    def add_attempt(self, message_id: str) -> int:
        """See `Records.attempt`."""
        return self._do(_ATTEMPT, message_id)[0][0]

    def clear_attempts(self, message_id: str) -> None:
        """See `Records.settle`."""
        self._do("DELETE FROM attempts WHERE message_id = ?", message_id)

    def add_dead_letter(self, letter: DeadLetter) -> None:
        """See `Records.bury`."""
        arguments = orjson.dumps(letter.arguments).decode()
        self._do(
            f"INSERT OR REPLACE INTO dead_letters ({_LETTER_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",
            letter.id,
            letter.queue,
            letter.actor,
            arguments,
            letter.failed_at_us,
            letter.error,
        )
        self._do(
            "DELETE FROM dead_letters WHERE id NOT IN (SELECT id FROM dead_letters ORDER BY died_us DESC LIMIT ?)",
            DEAD_LETTERS_MAX,
        )

    def dead_letters(self) -> list[DeadLetter]:
        """See `Records.dead_letters`."""
        return [_letter(row) for row in self._do(f"SELECT {_LETTER_COLUMNS} FROM dead_letters ORDER BY died_us, id")]

    def pop_dead_letter(self, letter_id: str) -> DeadLetter | None:
        """See `Records.take`."""
        rows = self._do(f"DELETE FROM dead_letters WHERE id = ? RETURNING {_LETTER_COLUMNS}", letter_id)
        return _letter(rows[0]) if rows else None

    def heartbeat(self, beat: Heartbeat) -> None:
        """See `Records.beat`."""
        row = (beat.id, beat.role, beat.host, beat.pid, beat.seen_at_us)
        self._do(f"INSERT OR REPLACE INTO beats ({_HEARTBEAT_COLUMNS}) VALUES (?, ?, ?, ?, ?)", *row)
        self._do("DELETE FROM beats WHERE beat_us < ?", beat.seen_at_us - _BEATS_US)

    def deregister(self, beat_id: str) -> None:
        """See `Records.leave`."""
        self._do("DELETE FROM beats WHERE id = ?", beat_id)

    def heartbeats(self) -> list[Heartbeat]:
        """See `Records.beats`."""
        return [_heartbeat(row) for row in self._do(f"SELECT {_HEARTBEAT_COLUMNS} FROM beats ORDER BY role, id")]

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def _do(self, query: str, *values: str | int | None) -> list[tuple[Any, ...]]:
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
