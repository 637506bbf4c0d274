"""Lock files: lock a file that several processes share, and record the time of its last use.

A marker is an empty file that stands for the shared one. Its lock is exclusive for creating or removing the shared file
and shared for using it, between threads and processes. The system releases the lock when its holder dies.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from recollect.events.storage.file_lock import file_lock


@contextmanager
def locked(marker: Path, *, shared: bool = False, wait: bool = True) -> Generator[bool]:
    """Lock `marker`, which is created when it is missing, and yield whether the lock was acquired.

    It is not acquired when `wait` is False and another user has the lock, or when the marker was removed meanwhile.

    Raises:
        StorageError: the marker cannot be created.
    """
    with file_lock(marker, shared=shared, wait=wait) as descriptor:
        yield descriptor is not None and _is_same(descriptor, marker)


def mark_used(marker: Path) -> None:
    """Record that the file of `marker` is used now."""
    # Python's clock, since the file system's advances in steps of milliseconds.
    now_ns = time.time_ns()
    os.utime(marker, ns=(now_ns, now_ns))


def latest_first(folder: Path) -> list[Path]:
    """Return the markers in `folder`, the most recently used one first."""
    return sorted(folder.iterdir(), key=_used_at_ns, reverse=True)


def _is_same(descriptor: int, path: Path) -> bool:
    """Return whether `path` is still the file behind `descriptor`."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return False
    return status.st_ino == os.fstat(descriptor).st_ino


def _used_at_ns(marker: Path) -> int:
    try:
        return marker.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
