"""What language models have cost, by day, in a file beside the data: a restart does not forget it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import orjson

from recollect.events.database import storage_errors

#: Days that are kept.
_DAYS_MAX = 90


class Spend:
    """Tokens by day (UTC) in the file `path`; several processes may count at once."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def today(self) -> int:
        """Return the tokens that today has cost so far."""
        with self._opened() as descriptor:
            return _read(descriptor).get(_day(), 0)

    def add(self, tokens: int) -> None:
        """Count what an answer has cost."""
        with self._opened() as descriptor:
            days = _read(descriptor)
            days[_day()] = days.get(_day(), 0) + tokens
            kept = dict(sorted(days.items())[-_DAYS_MAX:])
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, orjson.dumps(kept), 0)

    @contextmanager
    def _opened(self) -> Generator[int]:
        with storage_errors(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield descriptor
        finally:
            os.close(descriptor)


def _read(descriptor: int) -> dict[str, int]:
    content = os.pread(descriptor, 1 << 16, 0)
    try:
        days: dict[str, int] = orjson.loads(content)
    except orjson.JSONDecodeError:
        # Cut off by a power cut, or new.
        return {}
    return days


def _day() -> str:
    return datetime.now(UTC).date().isoformat()
