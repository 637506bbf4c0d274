"""What language models have cost, by day, in a file beside the data: a restart does not forget it."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from pathlib import Path

import orjson

from recollect.events.storage.atomic_file import write_atomically
from recollect.events.storage.database import storage_errors
from recollect.events.storage.file_lock import file_lock

#: Days that are kept.
_DAYS_MAX = 90


class Spend:
    """Tokens by day (UTC) in the file `path`; several processes may count at once."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def today(self) -> int:
        """Return the tokens that today has cost so far."""
        with storage_errors(self._path):
            return self._read().get(_day(), 0)

    def add(self, tokens: int) -> None:
        """Count what an answer has cost."""
        # The lock is a file of its own: the other one is replaced by each write.
        with storage_errors(self._path), file_lock(self._path.with_suffix(".lock")):
            days = self._read()
            days[_day()] = days.get(_day(), 0) + tokens
            kept = dict(sorted(days.items())[-_DAYS_MAX:])
            write_atomically(self._path, orjson.dumps(kept))

    def _read(self) -> dict[str, int]:
        days: dict[str, int] = {}
        # Missing: nothing was spent yet. Damaged: an earlier release did not write it atomically.
        with contextlib.suppress(FileNotFoundError, orjson.JSONDecodeError):
            days = orjson.loads(self._path.read_bytes())
        return days


def _day() -> str:
    return datetime.now(UTC).date().isoformat()
