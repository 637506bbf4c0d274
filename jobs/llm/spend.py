"""Spend: counts the tokens that language models used, by day, in a file that survives restarts."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from pathlib import Path

import orjson

from recollect.events.storage.atomic_file import write_atomically
from recollect.events.storage.database import storage_errors
from recollect.events.storage.file_lock import file_lock

#: Days that the file holds.
_DAYS_MAX = 90


class Spend:
    """The tokens of each day (UTC) in the file `path`; several processes may add to it at the same time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def tokens_today(self) -> int:
        """Return the tokens that were used today."""
        with storage_errors(self._path):
            return self._read().get(_day(), 0)

    def add(self, tokens: int) -> None:
        """Add the tokens of a request to today."""
        # The lock is a separate file, because each write replaces the file with the counts.
        with storage_errors(self._path), file_lock(self._path.with_suffix(".lock")):
            days = self._read()
            days[_day()] = days.get(_day(), 0) + tokens
            recent = dict(sorted(days.items())[-_DAYS_MAX:])
            write_atomically(self._path, orjson.dumps(recent))

    def _read(self) -> dict[str, int]:
        days: dict[str, int] = {}
        # The file is missing before the first request. It may be damaged, because an earlier release did not write
        # atomically.
        with contextlib.suppress(FileNotFoundError, orjson.JSONDecodeError):
            days = orjson.loads(self._path.read_bytes())
        return days


def _day() -> str:
    return datetime.now(UTC).date().isoformat()
