"""Folder locks: one server for a data folder, and one change of its embedding model at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from recollect.events.errors import FolderInUse
from recollect.events.storage.database import storage_errors
from recollect.events.storage.file_lock import file_lock
from recollect.events.storage.private_files import make_private

#: Characters of a lock file that are read: a process id and an address are shorter.
_LOCK_CHARS_MAX = 512
#: The lock file of the server. Its lines are the server's process id and, once it accepts requests, its address and a
#: secret, by which commands that read the folder are answered without a token.
_SERVER_LOCK = "server.lock"


@contextmanager
def serving_lock(data: Path) -> Generator[Callable[[str, str], None]]:
    """Hold the folder's server lock. Other commands may run at the same time: SQLite orders their writes.

    Yields:
        A function that stores the server's address and its secret in the lock file, where `server_address` reads them.

    Raises:
        FolderInUse: another server holds the lock. StorageError: the folder cannot be written.
    """
    message = "another server (process {holder}) works on {folder}; stop it, or name another --data folder"
    with _exclusive_lock(data, _SERVER_LOCK, message) as descriptor:

        def publish(address: str, secret: str) -> None:
            with storage_errors(data / _SERVER_LOCK):
                # An earlier version created the file for all to read.
                make_private(data / _SERVER_LOCK)
                os.write(descriptor, f"\n{address}\n{secret}\n".encode())

        try:
            yield publish
        finally:
            with storage_errors(data / _SERVER_LOCK):
                os.ftruncate(descriptor, 0)


def server_address(data: Path) -> tuple[str, str] | None:
    """Return the address and the secret in the folder's server lock; None when no server stored them.

    The address of a server that was killed stays in the file, so the caller has to check it.
    """
    lines = _lock_lines(data / _SERVER_LOCK)
    return (lines[1], lines[2] if len(lines) > 2 else "") if len(lines) > 1 else None


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
def _exclusive_lock(data: Path, name: str, message: str) -> Generator[int]:
    """Hold the lock file `name` and yield its descriptor. The system releases it when the process ends or is killed.

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
        yield descriptor


def _holder(path: Path) -> str:
    """Return the process id in the lock file `path`; "unknown" when it cannot be read."""
    lines = _lock_lines(path)
    return lines[0] if lines else "unknown"


def _lock_lines(path: Path) -> list[str]:
    """Return the lines of the lock file `path`, without empty ones; none when it cannot be read."""
    try:
        text = path.read_text(errors="replace")[:_LOCK_CHARS_MAX]
    except OSError:
        # On Windows a locked file cannot be read by other processes.
        return []
    return [line.strip() for line in text.splitlines() if line.strip()]
