"""Group commit: one thread writes all appends that wait in its queue in one transaction.

An fsync costs about 0.3 ms independent of the amount of data, so the appends of many clients share one.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue

from recollect.events.envelope import Appended, EventDraft
from recollect.events.errors import AppendUnknown, StorageError

#: Events in one transaction: enough for 256 clients with small batches, and written in under 50 ms.
GROUP_EVENTS_MAX = 4_096


class AppendRequest:
    """An append in the writer's queue: its events, the waiting caller and, later, the outcome."""

    __slots__ = ("drafts", "error", "expected_version", "namespace", "recorded", "waiter")

    def __init__(
        self,
        namespace: str,
        drafts: Sequence[EventDraft],
        expected_version: int | None,
        waiter: asyncio.Future[None] | threading.Lock,
    ) -> None:
        self.namespace = namespace
        self.drafts = drafts
        self.expected_version = expected_version
        #: The future that a task awaits, or the lock that a thread waits for.
        self.waiter = waiter
        self.recorded: list[Appended] | None = None
        self.error: Exception | None = None

    def answer(self) -> list[Appended]:
        """Return the recorded events, or raise the error of the append."""
        if self.error is not None:
            raise self.error
        if self.recorded is None:
            raise AppendUnknown("the append ended without an outcome; send the same ids again, which is always safe")
        return self.recorded


def _wake(requests: Sequence[AppendRequest]) -> None:
    """Wake the callers of `requests`, with one call for each event loop, since waking a loop is a system call."""
    by_loop: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
    for request in requests:
        waiter = request.waiter
        if isinstance(waiter, asyncio.Future):
            by_loop.setdefault(waiter.get_loop(), []).append(waiter)
        else:
            waiter.release()
    for loop, futures in by_loop.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(_finish, futures)


def _finish(futures: Sequence[asyncio.Future[None]]) -> None:
    """Set the result of `futures`, on their event loop."""
    for future in futures:
        if not future.done():
            future.set_result(None)


class GroupCommitWriter:
    """The writer thread. It passes groups of requests to `commit`, which sets the outcome of each request.

    Parameters:
        commit: writes a group in one transaction and sets `recorded` or `error` on each request; it does not raise.
    """

    def __init__(self, commit: Callable[[list[AppendRequest]], None]) -> None:
        self._commit = commit
        self._queue: SimpleQueue[AppendRequest | None] = SimpleQueue()
        self._closing = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="recollect-log-writer", daemon=True)
        self._thread.start()

    def submit(self, request: AppendRequest) -> None:
        """Queue `request`; raise `StorageError` once the writer is closed."""
        with self._closing:
            if self._closed:
                raise StorageError("the log is closed")
            self._queue.put(request)

    def close(self) -> None:
        """Write all submitted requests, then end the thread."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        """Commit groups of requests until the writer is closed."""
        while True:
            first = self._queue.get()
            if first is None:
                return
            group, closing = self._gather(first)
            self._commit(group)
            _wake(group)
            if closing:
                return

    def _gather(self, first: AppendRequest) -> tuple[list[AppendRequest], bool]:
        """Return `first` with the requests queued behind it, and whether the writer was closed after them."""
        group = [first]
        events = len(first.drafts)
        while events < GROUP_EVENTS_MAX:
            try:
                request = self._queue.get_nowait()
            except Empty:
                break
            if request is None:
                return group, True
            group.append(request)
            events += len(request.drafts)
        return group, False
