"""Circuit breaker: pauses the requests to a language model while its server fails.

All namespaces use one server, so one slow or failed request is enough to spare the others the same wait. A namespace
whose messages get no usable answer is paused on its own, so that its texts cannot stop the requests of others.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Literal

#: What a failed request says about the server. slow: no answer in time. unavailable: an error, or no connection.
#: unusable: it answers, but not with what it was asked for, or it refuses the text. refused: the model is unknown,
#: or the key is missing or wrong.
Failure = Literal["slow", "unavailable", "unusable", "refused"]


class Breaker:
    """The pauses of one server. Safe to use from many threads.

    Parameters:
        failures_max: consecutive failures after which all requests pause; one slow or refused request is enough.
            Unusable answers count once for each namespace and pause.
        pause_seconds: the length of a pause. The first request after it ends the pause or begins another one.
        clock: returns monotonic seconds.
    """

    def __init__(self, failures_max: int, pause_seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._failures_max = failures_max
        self._pause_seconds = pause_seconds
        self._clock = clock
        self._failures = 0
        #: When all requests were paused, in seconds of the clock; None: they are not paused.
        self._paused_at: float | None = None
        #: When the requests of a namespace were paused.
        self._namespaces: dict[str, float] = {}
        self._lock = threading.Lock()

    def allows(self, namespace: str) -> bool:
        """Return whether `namespace` may send a request now."""
        with self._lock:
            now = self._clock()
            namespace_paused_at = self._namespaces.get(namespace)
            if namespace_paused_at is not None and now - namespace_paused_at < self._pause_seconds:
                return False
            if self._paused_at is None:
                return True
            if now - self._paused_at < self._pause_seconds:
                return False
            # Half open: this request is allowed, and the next requests wait for its result.
            self._paused_at = now
            return True

    def succeeded(self, namespace: str) -> bool:
        """Record an answer; return whether it ends a pause of all requests."""
        with self._lock:
            was_paused = self._paused_at is not None
            self._failures, self._paused_at = 0, None
            self._namespaces.pop(namespace, None)
            return was_paused

    def failed(self, namespace: str, failure: Failure) -> bool:
        """Record a failed request; return whether it begins a pause of all requests."""
        with self._lock:
            now = self._clock()
            if failure == "unusable":
                # Entries whose pause is over have no effect; without them there are only those of one pause.
                self._namespaces = {
                    name: paused for name, paused in self._namespaces.items() if now - paused < self._pause_seconds
                } | {namespace: now}
            self._failures += 1
            was_paused = self._paused_at is not None
            if was_paused or failure in ("slow", "refused") or self._failures >= self._failures_max:
                self._paused_at = now
            return self._paused_at is not None and not was_paused

    def seconds_left(self) -> float | None:
        """Return the rest of the pause of all requests; 0 until the next request shows whether it ends; None: none."""
        with self._lock:
            if self._paused_at is None:
                return None
            return max(0.0, self._pause_seconds - (self._clock() - self._paused_at))

    def paused_namespaces(self) -> int:
        """Return the number of namespaces that are paused on their own."""
        with self._lock:
            now = self._clock()
            return sum(now - paused < self._pause_seconds for paused in self._namespaces.values())
