"""The data folder belongs to one server at a time, and its model is changed by one at a time."""

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
    """Hold the folder's server lock. Other commands may work beside a server: SQLite orders their writes.

    Raises:
        FolderInUse: another server holds it. StorageError: the folder cannot be written.
    """
    taken = "another server (process {holder}) works on {folder}; stop it, or name another --data folder"
    with _held(data, "server.lock", taken):
        yield


@contextmanager
def changing_model(data: Path) -> Generator[None]:
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
    with storage_errors(path):
        data.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            raise FolderInUse(taken.format(holder=holder, folder=data.resolve())) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)
