"""Markers: empty files, each the lock of something on disk that several processes share, and the date of its last use.

The lock is exclusive for who makes or removes the thing and shared for who uses it, over threads and processes alike.
The system releases it when its holder dies.
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
    """Hold the lock of `marker`, which is made when it is not there.

    Yields:
        False when it is not held: `wait` is False and somebody else holds it, or the marker was removed meanwhile.

    Raises:
        StorageError: the marker cannot be made.
    """
    with file_lock(marker, shared=shared, wait=wait) as descriptor:
        yield descriptor is not None and _is_same(descriptor, marker)


def mark_used(marker: Path) -> None:
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
