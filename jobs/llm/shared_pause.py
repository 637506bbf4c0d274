"""Shared pause: the pause of the language model in a file, for the other processes of a data folder and the next start.

A worker that waits for a slow model spares the other workers the wait, and the server reports the pause of its workers.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import NamedTuple

import orjson

from recollect.events.envelope import now_us
from recollect.events.storage.atomic_file import write_atomically
from recollect.events.storage.database import storage_errors

#: The file of the pause, in the data folder.
PAUSE_NAME = "llm-pause.json"
_FORGOTTEN = "the error was removed by an erasure"


class Pause(NamedTuple):
    """A pause of all requests."""

    #: When it ends, in microseconds since 1970 UTC.
    until_us: int
    #: The error that began it.
    reason: str


class SharedPause:
    """The pause in the file `path`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def current(self) -> Pause | None:
        """Return the pause that lasts at present; None without one."""
        # The file is missing without a pause. A damaged one is as good as none: the next failure writes it again.
        with (
            storage_errors(self._path),
            contextlib.suppress(FileNotFoundError, orjson.JSONDecodeError, KeyError, TypeError),
        ):
            content = orjson.loads(self._path.read_bytes())
            pause = Pause(int(content["until_us"]), str(content["reason"]))
            return pause if pause.until_us > now_us() else None
        return None

    def is_over(self) -> bool:
        """Return whether a pause is over, and no process has shown since that the server answers."""
        with storage_errors(self._path):
            return self._path.exists() and self.current() is None

    def begin(self, seconds: float, reason: str) -> None:
        """Record a pause of `seconds` from now on."""
        self._write(now_us() + int(seconds * 1_000_000), reason)

    def _write(self, until_us: int, reason: str) -> None:
        with storage_errors(self._path):
            write_atomically(self._path, orjson.dumps({"until_us": until_us, "reason": reason}))

    def forget_reason(self) -> bool:
        """Remove the error from the file, and keep the pause; return whether there was one."""
        pause = self.current()
        if pause is None or pause.reason == _FORGOTTEN:
            # A pause that is over needs no file.
            is_there = pause is None and self._path.exists()
            if is_there:
                self.end()
            return is_there
        self._write(pause.until_us, _FORGOTTEN)
        return True

    def end(self) -> None:
        """Remove the pause."""
        with storage_errors(self._path):
            self._path.unlink(missing_ok=True)
