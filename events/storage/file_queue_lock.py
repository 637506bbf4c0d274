"""Turn lock: lets the processes that write to one file take turns, in the order in which they ask.

SQLite sleeps for up to 100 ms between two tries for its own lock, so that of two processes that write all the time one
waits for seconds. A process that has the turn finds SQLite's lock free.
"""

from __future__ import annotations

import os
import threading
from _thread import start_new_thread
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from recollect.events.errors import StorageError
from recollect.events.storage.database import BUSY_TIMEOUT_MS
from recollect.events.storage.private_files import PRIVATE_MODE

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


class FileQueueLock:
    """The turns of those who write to one file, threads and processes. SQLite's lock still protects the file.

    There are no turns where the lock file cannot be created or locked: on Windows, and on some network disks.

    Parameters:
        path: the lock file, which is created when it is missing. The system releases its lock when a process ends.
        seconds_max: the longest wait for a turn.
    """

    def __init__(self, path: Path, *, seconds_max: float = BUSY_TIMEOUT_MS / 1_000) -> None:
        self._path = path
        self._seconds_max = seconds_max
        #: A wait that took too long. It goes on in its thread, and ends without the turn.
        self._late: _Waiter | None = None

    @contextmanager
    def locked(self) -> Generator[None]:
        """Hold the turn.

        Raises:
            StorageError: another process had the turn for over `seconds_max`.
        """
        descriptor = self._take()
        try:
            yield
        finally:
            if descriptor is not None:
                # Closing releases the lock.
                os.close(descriptor)

    def _take(self) -> int | None:
        """Wait for the turn and return the locked file; None where there are no turns."""
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, PRIVATE_MODE)
        except OSError:
            return None
        if _is_locked(descriptor, wait=False):
            return descriptor
        late = self._late
        if late is None or late.has_ended(self._seconds_max):
            self._late = None
            waiter = _Waiter(descriptor)
            if waiter.is_granted(self._seconds_max):
                return descriptor
            self._late = waiter
        else:
            os.close(descriptor)
        raise StorageError(
            f"{self._path} is locked by another process for over {self._seconds_max:g} seconds; end that process"
        )


class _Waiter:
    """Waits for the lock of an open file in a thread of its own, since the system's call has no time limit."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        #: Held while `_is_late` is changed or read.
        self._state = threading.Lock()
        self._is_late = False
        #: Released when the file is locked, and when the thread ends. Plain locks, and no `Thread`: they take a third
        #: of the time.
        self._granted, self._ended = threading.Lock(), threading.Lock()
        self._granted.acquire()
        self._ended.acquire()
        start_new_thread(self._run, ())

    def _run(self) -> None:
        _is_locked(self._descriptor, wait=True)
        with self._state:
            if self._is_late:
                os.close(self._descriptor)
            else:
                self._granted.release()
        self._ended.release()

    def is_granted(self, seconds: float) -> bool:
        """Return whether the file is locked within `seconds`; if not, the thread closes it later."""
        if self._granted.acquire(timeout=seconds):
            return True
        with self._state:
            self._is_late = self._granted.locked()
        return not self._is_late

    def has_ended(self, seconds: float) -> bool:
        """Return whether the thread of a late wait ends within `seconds`."""
        has_ended = self._ended.acquire(timeout=seconds)
        if has_ended:
            # For the other threads that ask.
            self._ended.release()
        return has_ended


def _is_locked(descriptor: int, *, wait: bool) -> bool:
    """Lock an open file; return False when `wait` is False and another one has locked it."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # The disk has no locks.
        return True
    return True
