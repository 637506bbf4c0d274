"""Folder locks: one server for a data folder, and one change of its embedding model at a time."""

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
    """Hold the folder's server lock. Other commands may run at the same time: SQLite orders their writes.

    Raises:
        FolderInUse: another server holds the lock. StorageError: the folder cannot be written.
    """
    message = "another server (process {holder}) works on {folder}; stop it, or name another --data folder"
    with _exclusive_lock(data, "server.lock", message):
        yield


@contextmanager
def model_change_lock(data: Path) -> Generator[None]:
    """Hold the lock for a change of the folder's embedding model.

    Raises:
        FolderInUse: another process holds the lock. StorageError: the folder cannot be written.
    """
    message = "another process ({holder}) changes the embedding model of {folder}; wait for it, or stop it"
    with _exclusive_lock(data, "embedding.lock", message):
        yield


@contextmanager
def _exclusive_lock(data: Path, name: str, message: str) -> Generator[None]:
    """Hold the lock file `name` in the folder. The system releases it when the process ends, even by a kill.

    Parameters:
        message: the error's text; `{holder}` is the process that holds the lock, `{folder}` the data folder.
    """
    path = data / name
    with file_lock(path, wait=False) as descriptor:
        if descriptor is None:
            raise FolderInUse(message.format(holder=_holder(path), folder=data.resolve()))
        with storage_errors(path):
            os.ftruncate(descriptor, 0)
            os.write(descriptor, str(os.getpid()).encode())
        yield


def _holder(path: Path) -> str:
    """Return the process id in the lock file `path`; "unknown" when it cannot be read."""
    try:
        return path.read_text(errors="replace")[:32].strip() or "unknown"
    except OSError:
        # On Windows a locked file cannot be read by other processes.
        return "unknown"
