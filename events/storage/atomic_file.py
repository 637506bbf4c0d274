"""Atomic files: a file is written as a whole or not at all, and is on disk when the call returns."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Replace the file `path` by `content`; after a crash there is the old file or the new one. One writer at a time.

    Raises:
        OSError: the disk is full or cannot be written; the old file is still there.
    """
    temporary = path.with_name(f"{path.name}.tmp")
    try:
        _write_synced(temporary, content)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    sync_file(path.parent)


def write_once(path: Path, content: bytes) -> None:
    """Create the file `path` unless it exists: of several writers one creates it, and none reads a part of it.

    Raises:
        OSError: the disk is full or cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}")
    try:
        _write_synced(temporary, content)
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
            sync_file(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def sync_file(path: Path) -> None:
    """Have a closed file, or a folder's list of files, on disk.

    Not for a database that is open: closing a descriptor of it would drop its locks.
    """
    if os.name == "nt" and path.is_dir():
        # Windows opens no folders, and NTFS keeps a journal of their changes.
        return
    # Windows syncs only what is open for writing.
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_synced(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
