"""Shared memory: bytes that a process shares with those it starts, and a lock that ends with the process."""

from __future__ import annotations

import mmap
import os
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager


class SharedMemory:
    """Zeroed bytes. A process that is forked from this one shares them.

    Parameters:
        size: the number of bytes.
    """

    def __init__(self, size: int) -> None:
        self._descriptor = _anonymous_file()
        self._threads = threading.Lock()
        os.ftruncate(self._descriptor, size)
        self.bytes = mmap.mmap(self._descriptor, size)

    @contextmanager
    def lock(self) -> Generator[None]:
        """Hold the lock of the bytes, among threads and processes."""
        # Windows has neither the module nor several server processes.
        import fcntl  # noqa: PLC0415

        with self._threads:
            # A lock of the process, unlike a semaphore: the system releases it when the process is killed.
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.lockf(self._descriptor, fcntl.LOCK_UN)


def _anonymous_file() -> int:
    """Return the descriptor of a file without a name."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("recollect")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
