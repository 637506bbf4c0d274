"""Circuit breaker: pauses requests to the language model after consecutive failures, for each namespace."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Breaker:
    """Counts the consecutive failures of each namespace.

    Parameters:
        failures_max: failures after which the breaker of a namespace opens.
        pause_seconds: how long an open breaker allows no request. The first request after the pause closes it or
            opens it again.
        clock: returns monotonic seconds.
    """

    def __init__(self, failures_max: int, pause_seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._failures_max = failures_max
        self._pause_seconds = pause_seconds
        self._clock = clock
        self._failures: dict[str, int] = {}
        #: When the breaker of a namespace was opened, in seconds of the clock.
        self._opened: dict[str, float] = {}
        self._lock = threading.Lock()

    def allows(self, namespace: str) -> bool:
        """Return whether `namespace` may send a request now."""
        with self._lock:
            opened = self._opened.get(namespace)
            if opened is None:
                return True
            if self._clock() - opened < self._pause_seconds:
                return False
            # Half open: this request is allowed, and the next requests wait for its result.
            self._opened[namespace] = self._clock()
            return True

    def succeeded(self, namespace: str) -> None:
        """Close the breaker of `namespace`."""
        with self._lock:
            self._failures.pop(namespace, None)
            self._opened.pop(namespace, None)

    def failed(self, namespace: str) -> None:
        """Count a failure of `namespace`; open its breaker after `failures_max`."""
        with self._lock:
            self._failures[namespace] = self._failures.get(namespace, 0) + 1
            if self._failures[namespace] >= self._failures_max:
                self._opened[namespace] = self._clock()

    def open_count(self) -> int:
        """Return the number of namespaces whose breaker is open, so that they use only the rules."""
        with self._lock:
            return len(self._opened)
