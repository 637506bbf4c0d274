"""File locks: exclusive and shared locks of files, which the system releases when the holding process ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from recollect.events.errors import StorageError
from recollect.events.storage.database import storage_errors
from recollect.events.storage.private_files import PRIVATE_MODE, make_private_folder


@contextmanager
def file_lock(path: Path, *, shared: bool = False, wait: bool = True) -> Generator[int | None]:
    """Hold the lock of the file `path`, which is created when it is missing, among threads and processes.

    Two calls exclude each other unless both are `shared`, also in one thread. On Windows, other processes cannot read
    the first 64 KiB of a file that is locked exclusively.

    Yields:
        The file's open descriptor; None when `wait` is False and another call holds the lock.

    Raises:
        StorageError: the file cannot be created, or its disk has no locks.
    """
    with storage_errors(path):
        make_private_folder(path.parent)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE_MODE)
    try:
        yield descriptor if _acquire(descriptor, path, shared, wait) else None
    finally:
        # Closing releases the lock.
        os.close(descriptor)


def _acquire(descriptor: int, path: Path, shared: bool, wait: bool) -> bool:
    """Lock the open file and return True; return False when `wait` is False and the file is locked."""
    try:
        _lock(descriptor, shared, wait)
    except BlockingIOError:
        return False
    except OSError as error:
        raise StorageError(
            f"{path} cannot be locked ({error.strerror}); put the data folder on a disk of this machine"
        ) from error
    return True


if sys.platform == "win32":
    from portalocker import AlreadyLocked, LockException, LockFlags, lock

    def _lock(descriptor: int, shared: bool, wait: bool) -> None:
        flags = LockFlags.SHARED if shared else LockFlags.EXCLUSIVE
        while True:
            try:
                lock(descriptor, flags if wait else flags | LockFlags.NON_BLOCKING)
            except AlreadyLocked as error:
                # A blocking call fails after 10 seconds.
                if not wait:
                    raise BlockingIOError from error
            except LockException as error:
                raise OSError(None, error.strerror) from error
            else:
                return

else:
    # portalocker imports asyncio and a client of Redis here, which takes 0.15 s in each command.
    import fcntl

    def _lock(descriptor: int, shared: bool, wait: bool) -> None:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
