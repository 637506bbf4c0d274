"""Process supervisor: starts the server processes of one port, starts one again that ends, and stops all of them.

The first process holds the lock of the data folder and the listening socket. It serves nothing, so that it never fails
for what a request does. The server processes are forked from it, not from a process between, whose end would end them
all. It has imported what they need, has opened nothing and has no thread of Python: a start takes a quarter of the
time, and the imports are in memory once.
"""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import FrameType

from recollect.api.access.access_control import new_local_secret
from recollect.api.access.rate_limits import RateMemory
from recollect.api.http.processes.channels import Channels
from recollect.api.http.processes.process_table import ProcessTable
from recollect.api.http.processes.server_process import STOP_SIGNALS, run_server_process
from recollect.api.http.processes.server_start import ServerShared
from recollect.api.settings import Settings, available_processors
from recollect.events.errors import StorageError

_logger = logging.getLogger(__name__)

#: Seconds before a process that has ended is started again: the first, doubled for each further end within
#: `_STABLE_SECONDS` of its start, and the most.
_RESTART_SECONDS, _RESTART_SECONDS_MAX = 0.2, 30.0
_STABLE_SECONDS = 30.0
#: Seconds after which a process that does not stop is killed: running requests and work take 15.
_KILL_SECONDS = 20.0
_FORK = multiprocessing.get_context("fork")


class ProcessSupervisor:
    """The server processes of one port.

    Parameters:
        servers: the processes that own namespaces.
        has_background: whether one more process runs worker and scheduler.
        configure_log: called in each process before anything else.
    """

    def __init__(
        self,
        settings: Settings,
        listener: socket.socket,
        *,
        servers: int,
        has_background: bool,
        configure_log: Callable[[], None],
    ) -> None:
        table = ProcessTable(servers, has_background=has_background)
        self.shared = ServerShared(
            settings=settings,
            listener=listener,
            table=table,
            channels=Channels(table.size),
            rates=RateMemory(is_shared=True),
            local_secret=new_local_secret(),
            configure_log=configure_log,
        )
        self._children = [_Child(self.shared, number) for number in range(table.size)]

    def run(self, on_serving: Callable[[], None]) -> None:
        """Serve until SIGINT or SIGTERM, and start processes again that end.

        Parameters:
            on_serving: called once all processes serve.

        Raises:
            StorageError: a process cannot start; its text is the reason.
        """
        # Threads of one inference: the processes answer at once, and more threads than processors slow all of them.
        os.environ.setdefault("OMP_NUM_THREADS", str(max(1, available_processors() // self.shared.table.servers)))
        # Garbage collection writes into every object that it looks at, and so would copy the pages that all share.
        gc.freeze()
        with _signals() as stopped:
            try:
                if self._start(stopped):
                    gc.enable()
                    on_serving()
                    self._watch(stopped)
            finally:
                self._stop()

    def _start(self, stopped: socket.socket) -> bool:
        """Start the processes; return False when a signal arrives meanwhile."""
        for child in self._children:
            child.start()
        for child in self._children:
            if stopped in wait([child.started, stopped]):
                return False
            child.require_started()
        return True

    def _watch(self, stopped: socket.socket) -> None:
        """Start processes again that end; return after a signal."""
        while True:
            sentinels = [child.process.sentinel for child in self._children if child.is_running]
            ready = wait([*sentinels, stopped], _next_start(self._children))
            if stopped in ready:
                return
            for child in self._children:
                child.restart_if_ended()

    def _stop(self) -> None:
        """End all processes. Work for what is appended meanwhile is found by the sweep of the next start."""
        deadline = time.monotonic() + _KILL_SECONDS
        for child in self._children:
            child.terminate()
        for child in self._children:
            child.join(deadline)
        self.shared.channels.close()


class _Child:
    """One process, and its successors."""

    def __init__(self, shared: ServerShared, number: int) -> None:
        self._shared, self._number = shared, number
        self._started_at = self._next_start_at = 0.0
        self._delay_seconds = _RESTART_SECONDS
        self.is_running = self._has_served = False
        self.process: BaseProcess
        self.started: Connection

    def start(self) -> None:
        """Start the process."""
        self._has_served = False
        self.started, reports = _FORK.Pipe(duplex=False)
        self.process = _FORK.Process(
            target=run_server_process, args=(self._shared, self._number, reports), name=f"recollect-{self._number}"
        )
        # A signal that arrives before the new process has set its own handlers waits for them.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        reports.close()
        self.is_running, self._started_at, self._next_start_at = True, time.monotonic(), 0.0
        self._shared.table.note_start(self._number, self.process.pid or 0)

    def require_started(self) -> None:
        """Raise `StorageError` when the process has reported that it cannot start, or has ended."""
        problem = self._problem()
        if problem:
            raise StorageError(problem)
        self._has_served = True

    @property
    def next_start_at(self) -> float | None:
        """Return when the process is to be started again, in monotonic seconds; None while it runs."""
        return None if self.is_running else self._next_start_at

    def restart_if_ended(self) -> None:
        """Start the process again if it has ended, after a delay that grows while it ends soon after each start."""
        if self.is_running and not self.process.is_alive():
            self._shared.table.note_serving(self._number, is_serving=False)
            lived = time.monotonic() - self._started_at
            self._delay_seconds = (
                _RESTART_SECONDS if lived > _STABLE_SECONDS else min(2 * self._delay_seconds, _RESTART_SECONDS_MAX)
            )
            self.is_running, self._next_start_at = False, time.monotonic() + self._delay_seconds
            name = self._shared.table.name(self._number)
            _logger.warning(
                "server process %s (pid %s) ended with exit code %s and is started again in %.1f s%s",
                name, self.process.pid, self.process.exitcode, self._delay_seconds, _after(self._problem()),
            )  # fmt: skip
            self.process.close()
            self.started.close()
        if not self.is_running and time.monotonic() >= self._next_start_at:
            self.start()

    def terminate(self) -> None:
        """Ask the process to end."""
        if self.is_running:
            with suppress(ValueError):
                self.process.terminate()

    def join(self, deadline: float) -> None:
        """Wait for the end of the process; kill it after the deadline."""
        if not self.is_running:
            return
        self.process.join(max(0.1, deadline - time.monotonic()))
        if self.process.is_alive():
            _logger.warning("server process %s did not stop and is killed", self._shared.table.name(self._number))
            self.process.kill()
            self.process.join()

    def _problem(self) -> str:
        """Return what the process has reported; empty when it serves, or has served."""
        try:
            return str(self.started.recv()) if self.started.poll() else ""
        except (EOFError, OSError):
            return "" if self._has_served else "a server process ended while it started"


def _after(problem: str) -> str:
    return f": {problem}" if problem else ""


def _next_start(children: list[_Child]) -> float | None:
    """Return the seconds until the next process is to be started again; None when all run."""
    times = [child.next_start_at for child in children if child.next_start_at is not None]
    return max(0.0, min(times) - time.monotonic()) if times else None


@contextmanager
def _signals() -> Generator[socket.socket]:
    """Yield a socket that is readable once SIGINT or SIGTERM has arrived."""
    readable, written = socket.socketpair()
    written.setblocking(False)

    def stop(_number: int, _frame: FrameType | None) -> None:
        # A second signal finds the socket full, or this one read.
        with suppress(OSError):
            written.send(b"s")

    before = {number: signal.signal(number, stop) for number in STOP_SIGNALS}
    try:
        yield readable
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        readable.close()
        written.close()
