"""State monitor: reads the state of a memory in a thread of its own, so that health answers from the last check.

A log in PostgreSQL or a broker that hangs holds up this thread, and no request. While it hangs, the answers are those
of the last check, with what the present one waits for.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from typing import Any

from msgspec import Struct

from recollect.api.assembly.memory_parts import MemoryParts
from recollect.api.operations.background_state import BackgroundState, background_state
from recollect.api.operations.disk_usage import DatabaseBytes
from recollect.api.operations.health import health_report

_logger = logging.getLogger(__name__)

#: Seconds between two checks, when no request asks for one.
_INTERVAL_SECONDS = 5.0
#: Seconds until the next check while the log or the broker is away, so that a server is ready soon after it is back.
_OUTAGE_INTERVAL_SECONDS = 1.0
#: Between two checks, the processor time of the last one this many times over: with 100,000 namespaces a check takes
#: 0.4 s, which every 5 s would be a twelfth of a core on a server without requests. Waiting is not counted.
_REST_FACTOR = 20
#: Seconds between two checks, at most: half of the age from which a state is too old to be ready.
_REST_SECONDS_MAX = 15.0
#: Seconds that a request waits for a check that begins after it, out of the 100 ms in which it answers.
_WAIT_SECONDS = 0.05
#: Seconds that a request waits for the first check of all, which begins with the server.
_FIRST_SECONDS = 2.0
#: Seconds between two looks of a request at the check.
_STEP_SECONDS = 0.004
#: Seconds after which a step of a check that has not ended is a problem.
SLOW_SECONDS = 2.0
#: Seconds of each check for counting the bytes of files.
_COUNT_SECONDS = 0.02


class CheckedState(Struct, frozen=True, kw_only=True):
    """The result of the last check."""

    background: BackgroundState
    #: The answer of /health.
    report: dict[str, Any]
    #: Bytes of the files of the data folder by kind; empty before they were counted once.
    database_bytes: dict[str, int]
    #: Files of read models and vectors that are open.
    open_files: int
    #: When the check ended, in monotonic seconds.
    checked_at: float


class StateMonitor:
    """Checks the state of `parts` at intervals, and when a request asks. The thread begins with the first request.

    Parameters:
        scans: whether namespaces are compared with the log. Of several processes of a server one does it, since it
            opens the namespaces that are behind.
    """

    def __init__(self, parts: MemoryParts, *, scans: bool = True) -> None:
        self._parts = parts
        self._scans = scans
        self._database_bytes = DatabaseBytes(parts.settings.storage.data)
        self._wake = threading.Event()
        self._stopped = False
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._started_at = 0.0
        #: The numbers of the checks that began and ended.
        self._begun = 0
        self._ended = 0
        #: When the present check began, in monotonic seconds; None between two checks.
        self._running_since: float | None = None
        #: The step that the present check is at, and when it began; None between two checks.
        self._step: tuple[str, float] | None = None
        self.state: CheckedState | None = None

    async def latest(self) -> CheckedState | None:
        """Return the state as of now if a check takes less than 50 ms, or the last one.

        In the first two seconds of the process it waits for the first one; after them it returns None without one.
        """
        with self._lock:
            self._start()
            # A check that is running may have read the log before this request.
            wanted = self._begun + 1
        self._wake.set()
        since = self._running_since
        # A check that takes longer than that, such as one that hangs, is not waited for.
        if self.state is None or since is None or time.monotonic() - since < _WAIT_SECONDS:
            await self._wait_for(wanted)
        return self.state

    async def first(self) -> CheckedState | None:
        """Return the last state; before the first one, wait for it."""
        with self._lock:
            self._start()
        await self._wait_for(1)
        return self.state

    def overdue(self) -> tuple[str, float] | None:
        """Return the step that the present check is at, and for how many seconds, when these are too many."""
        step = self._step
        if step is None:
            return None
        seconds = time.monotonic() - step[1]
        return (step[0], seconds) if seconds > SLOW_SECONDS else None

    def stop(self) -> None:
        """End the thread after its check; one that hangs ends with the process."""
        self._stopped = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(SLOW_SECONDS)

    async def _wait_for(self, number: int) -> None:
        deadline = time.monotonic() + _WAIT_SECONDS
        if self.state is None:
            deadline = max(deadline, self._started_at + _FIRST_SECONDS)
        while self._ended < number and time.monotonic() < deadline:
            await asyncio.sleep(_STEP_SECONDS)

    def start(self) -> None:
        """Begin to check, if that has not begun yet."""
        with self._lock:
            self._start()

    def _start(self) -> None:
        if self._thread is None and not self._stopped:
            self._started_at = time.monotonic()
            self._thread = threading.Thread(target=self._run, name="recollect-state", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while not self._stopped:
            self._wake.clear()
            with self._lock:
                self._begun += 1
            number = self._begun
            cpu_started = time.thread_time()
            self._running_since = time.monotonic()
            try:
                self.state = self._check()
            except Exception:
                # The next check may succeed; until then the state gets old, which readiness reports.
                _logger.warning("the state could not be read", exc_info=True)
            self._running_since = self._step = None
            self._ended = number
            self._wake.wait(self._rest_seconds(time.thread_time() - cpu_started))

    def _rest_seconds(self, cpu_seconds: float) -> float:
        """Return the seconds until the next check."""
        if self.state is not None and self.state.background.problem is not None:
            return _OUTAGE_INTERVAL_SECONDS
        return min(max(_INTERVAL_SECONDS, _REST_FACTOR * cpu_seconds), _REST_SECONDS_MAX)

    def _check(self) -> CheckedState:
        """Return the present state."""
        background = background_state(self._parts, self._on_step, scans=self._scans)
        self._on_step("state")
        report = health_report(self._parts, background)
        self._database_bytes.advance(_COUNT_SECONDS)
        return CheckedState(
            background=background,
            report=report,
            database_bytes=self._database_bytes.by_kind,
            open_files=open_files(self._parts),
            checked_at=time.monotonic(),
        )

    def _on_step(self, step: str) -> None:
        self._step = (step, time.monotonic())


def open_files(parts: MemoryParts) -> int:
    """Return the number of files of read models and vectors that this process has open."""
    return parts.read_models.live.count + parts.vectors.open_count
