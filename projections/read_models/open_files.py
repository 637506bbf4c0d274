"""Open files: keep the files of the namespaces used last open, and close a file only when it has no users."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Generic, Protocol, TypeVar

from msgspec import Struct, field


class _Closable(Protocol):
    def close(self) -> None: ...


File = TypeVar("File", bound=_Closable)


class _Entry(Struct, Generic[File]):
    """An open file and its users."""

    file: File
    #: Contexts that use the file now.
    users: int = 0
    #: Whether the file was dropped while it had users; the last user closes it.
    dropped: bool = False
    #: What is held while the file is open.
    lease: ExitStack = field(default_factory=ExitStack)

    def close(self) -> None:
        """Close the file, then release what was held for it."""
        with self.lease:
            self.file.close()


class OpenFiles(Generic[File]):
    """The open files of up to `maximum` namespaces, and of more while more are in use. Safe to use from many threads.

    Parameters:
        maximum: open files; the least recently used file without users is closed first.
        is_current: returns whether an open file is still the namespace's; if not, the file is dropped and opened again.
        lease: returns what is held while the file of a namespace is open.
    """

    def __init__(
        self,
        maximum: int,
        *,
        is_current: Callable[[File], bool] | None = None,
        lease: Callable[[str], AbstractContextManager[None]] | None = None,
    ) -> None:
        self._maximum = maximum
        self._lease = lease
        self._is_current = is_current
        self._entries: OrderedDict[str, _Entry[File]] = OrderedDict()
        #: Held while a file is opened or dropped; hold it to drop a file and replace it on disk in one step.
        self.lock = threading.RLock()

    @contextmanager
    def using(self, namespace: str, open_file: Callable[[], File]) -> Generator[File]:
        """Yield the file of `namespace`, opened by `open_file` when it is not open."""
        entry = self._acquire(namespace, open_file)
        try:
            yield entry.file
        finally:
            with self.lock:
                entry.users -= 1
                if entry.dropped and not entry.users:
                    entry.close()

    def drop(self, namespace: str) -> None:
        """Close the file of `namespace` as soon as it has no users; the next use opens it again."""
        with self.lock:
            entry = self._entries.pop(namespace, None)
            if entry is not None:
                entry.dropped = True
                if not entry.users:
                    entry.close()

    def drop_idle(self) -> None:
        """Close the least recently used file without users, if any."""
        with self.lock:
            idle = next((namespace for namespace, entry in self._entries.items() if not entry.users), None)
            if idle is not None:
                self.drop(idle)

    def drop_all(self) -> None:
        """Close every file as soon as it has no users."""
        with self.lock:
            for namespace in list(self._entries):
                self.drop(namespace)

    @property
    def count(self) -> int:
        """Return the number of open files; it does not wait for one that is being opened."""
        return len(self._entries)

    def files(self) -> list[File]:
        """Return the open files, the least recently used one first."""
        with self.lock:
            return [entry.file for entry in self._entries.values()]

    def _acquire(self, namespace: str, open_file: Callable[[], File]) -> _Entry[File]:
        with self.lock:
            entry = self._entries.get(namespace)
            if entry is not None and self._is_current is not None and not self._is_current(entry.file):
                self.drop(namespace)
                entry = None
            if entry is None:
                entry = self._entries[namespace] = self._opened(namespace, open_file)
            self._entries.move_to_end(namespace)
            entry.users += 1
            if len(self._entries) > self._maximum:
                self.drop_idle()
            return entry

    def _opened(self, namespace: str, open_file: Callable[[], File]) -> _Entry[File]:
        """Return an entry of the file that `open_file` opens."""
        with ExitStack() as lease:
            if self._lease is not None:
                lease.enter_context(self._lease(namespace))
            return _Entry(open_file(), lease=lease.pop_all())
