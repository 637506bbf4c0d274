"""Shared memory: bytes that a process shares with those it starts, and a lock that ends with the process."""

from __future__ import annotations

import mmap
import os
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager
from multiprocessing import reduction
from typing import Any


class SharedMemory:
    """Zeroed bytes. A `multiprocessing` process that gets the object as an argument shares them, on POSIX systems.

    Parameters:
        size: the number of bytes.
    """

    def __init__(self, size: int) -> None:
        self._attach(_anonymous_file(), size)
        os.ftruncate(self._descriptor, size)
        self.bytes = mmap.mmap(self._descriptor, size)

    def _attach(self, descriptor: int, size: int) -> None:
        self._descriptor = descriptor
        self._size = size
        self._threads = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return _attached, (reduction.DupFd(self._descriptor), self._size)

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


def _attached(descriptor: Any, size: int) -> SharedMemory:
    """Return the shared memory of another process."""
    memory = SharedMemory.__new__(SharedMemory)
    memory._attach(descriptor.detach(), size)  # pyright: ignore[reportPrivateUsage]
    memory.bytes = mmap.mmap(memory._descriptor, size)  # pyright: ignore[reportPrivateUsage]
    return memory
