"""Request activity: the requests that a server answers now; background threads pause for them between their steps.

All threads of a process share Python's lock. A background thread that computes keeps it from the requests that need it
for a switch interval each time. A thread that pauses while requests are answered also finds more events at its next
step, and reads them together for less.
"""

from __future__ import annotations

import threading
import time

#: Seconds of a pause for each second of work: while requests wait, the background threads together get a tenth of a
#: processor. With a tenth for each, three threads took nearly as much of a processor as the appends.
_PAUSE_SHARE = 9.0
#: The longest pause, so that the work goes on however many requests come in.
PAUSE_SECONDS_MAX = 2.0
#: Seconds of work before a pause: one of less would be over before the threads have changed.
_WORK_SECONDS_MIN = 0.002
#: Seconds between two looks whether requests are still answered.
_LOOK_SECONDS = 0.02
#: Seconds after a request in which the next one is expected. A thread that pauses gets Python's lock, and looks, when
#: the event loop waits for its clients; the requests that share a commit have all ended then, and their clients go on.
_QUIET_SECONDS = 0.02


class RequestActivity:
    """The requests of one process that are being answered."""

    def __init__(self) -> None:
        self._requests = 0
        #: When the last request has ended for `_QUIET_SECONDS`, in monotonic seconds.
        self._quiet_at = 0.0
        #: Held while the numbers of this object are changed.
        self._counting = threading.Lock()
        #: When the pauses for all work so far are over, in monotonic seconds.
        self._paid_until = 0.0
        #: The processor time of each thread at the end of its last pause.
        self._threads = threading.local()

    @property
    def is_busy(self) -> bool:
        """Return whether a request is being answered, or was a moment ago."""
        return self._requests > 0 or time.monotonic() < self._quiet_at

    def begin(self) -> None:
        """Count a request that begins; `end` follows."""
        with self._counting:
            self._requests += 1

    def end(self) -> None:
        """Count the end of a request."""
        with self._counting:
            self._requests -= 1
            self._quiet_at = time.monotonic() + _QUIET_SECONDS

    def pause(self, stop: threading.Event) -> None:
        """Pause this thread for what it and other threads have worked, and end when no request is being answered.

        The caller holds no lock that a request takes.
        """
        worked = time.thread_time() - getattr(self._threads, "paused_at", 0.0)
        if self.is_busy:
            if worked < _WORK_SECONDS_MIN:
                return
            until = self._pay(worked * _PAUSE_SHARE)
            while self.is_busy and time.monotonic() < until and not stop.is_set():
                time.sleep(_LOOK_SECONDS)
        self._threads.paused_at = time.thread_time()

    def _pay(self, seconds: float) -> float:
        """Return when a pause for work ends: its seconds follow those that other threads pause for theirs."""
        present = time.monotonic()
        with self._counting:
            self._paid_until = min(max(self._paid_until, present) + seconds, present + PAUSE_SECONDS_MAX)
            return self._paid_until
