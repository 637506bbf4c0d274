"""Atomic files: writes a file as a whole or not at all, and syncs it to disk before the call returns."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

from recollect.events.storage.private_files import make_private_folder, open_private


def write_atomically(path: Path, content: bytes) -> None:
    """Replace the file `path` by `content`; a crash leaves the old file or the new file. One writer at a time.

    Raises:
        OSError: the disk is full or cannot be written; the old file is unchanged.
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
    """Create the file `path` unless it exists; safe for concurrent writers. Readers never see a partial file.

    Raises:
        OSError: the disk is full or cannot be written.
    """
    make_private_folder(path.parent)
    temporary = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}")
    try:
        _write_synced(temporary, content)
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
            sync_file(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def sync_file(path: Path) -> None:
    """Sync a closed file, or the list of files of a folder, to disk.

    Not for an open database, since closing any descriptor of its file drops the locks of the process.
    """
    if os.name == "nt" and path.is_dir():
        # Windows cannot open folders, and NTFS journals their changes.
        return
    # Windows syncs only files that are open for writing.
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_synced(path: Path, content: bytes) -> None:
    """Write a file that only its owner reads, and sync it to disk."""
    with open_private(path) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
