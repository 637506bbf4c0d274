"""Shared files: reads the bytes of files that SQLite may have open in this process.

POSIX drops all locks of a process on a file when the process closes any descriptor of that file. So a plain
`open` and `close` of an open database would let another process write while a transaction runs. Through the VFS of
SQLite that does not happen: it knows the descriptors of the process, and closes one only after the last lock is gone.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import apsw

from recollect.events.storage.database import storage_errors

#: Only files of this kind are known to the VFS as databases, with locks.
_FLAGS = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY


class SharedFile:
    """An open file, of any kind."""

    def __init__(self, file: apsw.VFSFile) -> None:
        self._file = file
        #: The size in bytes when it was opened.
        self.size = file.xFileSize()

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset` on; zeros at the end of the file may be left out."""
        size = min(size, self.size - offset)
        return self._file.xRead(size, offset) if size > 0 else b""


@contextmanager
def open_shared(path: Path) -> Generator[SharedFile]:
    """Open the file `path` to read it.

    Raises:
        StorageError: it cannot be opened or read.
    """
    with storage_errors(path):
        file = apsw.VFSFile("", str(path), [_FLAGS, 0])
        try:
            yield SharedFile(file)
        finally:
            file.xClose()
