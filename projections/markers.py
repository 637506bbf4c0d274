"""Markers: empty files, each the lock of something on disk that several processes share, and the date of its last use.

The lock is exclusive for who makes or removes the thing and shared for who uses it, over threads and processes alike.
The system releases it when its holder dies.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from recollect.events.database import storage_errors


@contextmanager
def held(marker: Path, *, shared: bool = False, wait: bool = True) -> Generator[bool]:
    """Hold the lock of `marker`, which is made when it is not there.

    Yields:
        False when it is not held: `wait` is False and somebody else holds it, or the marker was removed meanwhile.

    Raises:
        StorageError: the marker cannot be made.
    """
    with storage_errors(marker):
        marker.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(marker, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield _is_same(descriptor, marker)
    finally:
        os.close(descriptor)


def touch(marker: Path) -> None:
    """Note that what `marker` stands for is used now."""
    # By Python's clock: that of the file system moves in steps of milliseconds.
    at_ns = time.time_ns()
    os.utime(marker, ns=(at_ns, at_ns))


def latest_first(folder: Path) -> list[Path]:
    """Return the markers in `folder`, the one that was used last first."""
    return sorted(folder.iterdir(), key=_used_at_ns, reverse=True)


def _is_same(descriptor: int, path: Path) -> bool:
    """Tell whether `path` is still the file behind `descriptor`."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    return found.st_ino == os.fstat(descriptor).st_ino


def _used_at_ns(marker: Path) -> int:
    try:
        return marker.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
