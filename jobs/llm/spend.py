"""Spend: counts the tokens, the words and the cost of language models by day, in a file that survives restarts."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from recollect.events.storage.atomic_file import write_atomically
from recollect.events.storage.database import storage_errors
from recollect.events.storage.file_lock import file_lock

#: Days that the file holds.
_DAYS_MAX = 90
#: What is counted. `words_seen`: words of messages that were to be read; `words_sent`: of requests, without prompts.
COUNTERS = ("requests", "tokens", "input_tokens", "output_tokens", "words_seen", "words_sent", "cost_usd")


class Spend:
    """The counters of each day (UTC) in the file `path`; several processes may add to it at the same time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def today(self) -> dict[str, float]:
        """Return the counters of today."""
        with storage_errors(self._path):
            return self._read().get(_day(), dict.fromkeys(COUNTERS, 0))

    def tokens_today(self) -> int:
        """Return the tokens that were used today."""
        return int(self.today()["tokens"])

    def add(self, counts: Mapping[str, float]) -> None:
        """Add to the counters of today."""
        # The lock is a separate file, because each write replaces the file with the counts.
        with storage_errors(self._path), file_lock(self._path.with_suffix(".lock")):
            days = self._read()
            day = days.setdefault(_day(), dict.fromkeys(COUNTERS, 0))
            for name, count in counts.items():
                day[name] += count
            write_atomically(self._path, orjson.dumps(dict(sorted(days.items())[-_DAYS_MAX:])))

    def _read(self) -> dict[str, dict[str, float]]:
        # The file is missing before the first request. It may be damaged, because an earlier release did not write
        # atomically.
        with contextlib.suppress(FileNotFoundError, orjson.JSONDecodeError, AttributeError):
            return {day: _counters(counts) for day, counts in orjson.loads(self._path.read_bytes()).items()}
        return {}


def _counters(stored: Any) -> dict[str, float]:
    """Return the counters of a day; an earlier release stored the tokens alone."""
    counts: dict[str, Any] = {"tokens": stored} if isinstance(stored, int) else stored
    return {name: counts.get(name, 0) for name in COUNTERS}


def _day() -> str:
    return datetime.now(UTC).date().isoformat()
