"""The data folder belongs to one server at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from recollect.events.database import storage_errors
from recollect.events.errors import FolderInUse


@contextmanager
def serving(data: Path) -> Generator[None]:
    """Hold the folder's server lock; the system releases it when the process ends, however it ends.

    Other commands may work beside a server: SQLite orders their writes.

    Raises:
        FolderInUse: another server holds it. StorageError: the folder cannot be written.
    """
    path = data / "server.lock"
    with storage_errors(path):
        data.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            raise FolderInUse(
                f"another server (process {holder}) works on {data.resolve()}; stop it, or name another --data folder"
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)
