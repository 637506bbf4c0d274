"""Fair lock: a lock that threads get in the order in which they asked for it.

With an ordinary lock, a thread that releases it and asks again at once mostly gets it again.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager


class FairLock:
    """A lock that goes to the thread that has waited longest."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._is_held = False
        self._waiting: deque[object] = deque()

    @contextmanager
    def locked(self, timeout_seconds: float = math.inf) -> Generator[bool]:
        """Hold the lock; yield whether it was had within the time."""
        with self._condition:
            ticket = object()
            self._waiting.append(ticket)
            try:
                is_mine = self._condition.wait_for(
                    lambda: not self._is_held and self._waiting[0] is ticket,
                    None if math.isinf(timeout_seconds) else max(0.0, timeout_seconds),
                )
            finally:
                self._waiting.remove(ticket)
                # The next one may have become the first.
                self._condition.notify_all()
            self._is_held = self._is_held or is_mine
        try:
            yield is_mine
        finally:
            if is_mine:
                with self._condition:
                    self._is_held = False
                    self._condition.notify_all()
