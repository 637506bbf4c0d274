"""The data folder belongs to one server at a time, and its model is changed by one at a time."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from recollect.events.errors import FolderInUse
from recollect.events.storage.database import storage_errors
from recollect.events.storage.file_lock import file_lock


@contextmanager
def serving_lock(data: Path) -> Generator[None]:
    """Hold the folder's server lock. Other commands may work beside a server: SQLite orders their writes.

    Raises:
        FolderInUse: another server holds it. StorageError: the folder cannot be written.
    """
    taken = "another server (process {holder}) works on {folder}; stop it, or name another --data folder"
    with _held(data, "server.lock", taken):
        yield


@contextmanager
def model_change_lock(data: Path) -> Generator[None]:
    """Hold the right to change the folder's embedding model.

    Raises:
        FolderInUse: another process changes it. StorageError: the folder cannot be written.
    """
    taken = "another process ({holder}) changes the embedding model of {folder}; wait for it, or stop it"
    with _held(data, "embedding.lock", taken):
        yield


@contextmanager
def _held(data: Path, name: str, taken: str) -> Generator[None]:
    """Hold a lock in the folder; the system releases it when the process ends, however it ends."""
    path = data / name
    with file_lock(path, wait=False) as descriptor:
        if descriptor is None:
            raise FolderInUse(taken.format(holder=_holder(path), folder=data.resolve()))
        with storage_errors(path):
            os.ftruncate(descriptor, 0)
            os.write(descriptor, str(os.getpid()).encode())
        yield


def _holder(path: Path) -> str:
    """Return the process that the lock file `path` names."""
    try:
        return path.read_text(errors="replace")[:32].strip() or "unknown"
    except OSError:
        # Windows lets no other process read what is locked.
        return "unknown"
