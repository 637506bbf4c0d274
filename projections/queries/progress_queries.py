"""Progress queries: read the checkpoint of a read model, the cursors of its jobs and the size of its file."""

from __future__ import annotations

from typing import Any

import apsw

from recollect.projections.queries.records import fetch_value


class ProgressQueries:
    """Queries on the tables `read_model` and `job_cursors`, and on the versions of `episodes`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def job_cursor(self, job: str) -> int:
        """Return the version of the last event that a job has read; 0: the job has not run."""
        return fetch_value(self._connection, "SELECT through FROM job_cursors WHERE job = ?", (job,)) or 0

    def episode_from_end(self, position: int) -> int | None:
        """Return the version of the episode at a position from the end, 1 for the last one; None without one."""
        statement = "SELECT version FROM episodes ORDER BY version DESC LIMIT 1 OFFSET ?"
        return fetch_value(self._connection, statement, (position - 1,))

    def first_turn_after(self, version: int) -> int | None:
        """Return the version of the first message after `version`; None without one."""
        statement = "SELECT min(version) FROM episodes WHERE type = 'conversation' AND tier = 'raw' AND version > ?"
        return fetch_value(self._connection, statement, (version,))

    def file_size_bytes(self) -> int:
        """Return the size of the read model's file."""
        return self._pragma("page_count") * self._pragma("page_size")

    def free_share(self) -> float:
        """Return the share of the file's pages that are free: 0 to 1."""
        return self._pragma("freelist_count") / max(1, self._pragma("page_count"))

    def _pragma(self, name: str) -> int:
        """Return the value of a numeric pragma."""
        value: Any = self._connection.pragma(name)
        return value
