"""A circuit breaker for each namespace: after failures in a row nobody is asked for a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Breaker:
    """Counts failures in a row.

    Parameters:
        failures_max: after so many it opens.
        pause_seconds: then nobody is asked for this time; the first one after it decides.
        clock: monotonic seconds.
    """

    def __init__(self, failures_max: int, pause_seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._failures_max = failures_max
        self._pause_seconds = pause_seconds
        self._clock = clock
        self._failures: dict[str, int] = {}
        self._opened: dict[str, float] = {}
        self._lock = threading.Lock()

    def allows(self, namespace: str) -> bool:
        """Tell whether `namespace` may ask now."""
        with self._lock:
            opened = self._opened.get(namespace)
            if opened is None:
                return True
            if self._clock() - opened < self._pause_seconds:
                return False
            # Half open: this one may, the next ones wait for what comes of it.
            self._opened[namespace] = self._clock()
            return True

    def succeeded(self, namespace: str) -> None:
        """Close it."""
        with self._lock:
            self._failures.pop(namespace, None)
            self._opened.pop(namespace, None)

    def failed(self, namespace: str) -> None:
        """Count a failure; open it when there were too many."""
        with self._lock:
            self._failures[namespace] = self._failures.get(namespace, 0) + 1
            if self._failures[namespace] >= self._failures_max:
                self._opened[namespace] = self._clock()

    def open_count(self) -> int:
        """Return how many namespaces are left to the rules now."""
        with self._lock:
            return len(self._opened)
