"""Night processes: run scheduled jobs of many namespaces in processes of a low priority.

A night over a thousand namespaces computes for minutes. In the threads of a server it would take Python's lock from the
requests; in processes of a low priority it takes the processor time that the requests leave. A namespace is one step:
nothing is held between two of them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import NamedTuple, Protocol

from msgspec import Struct

from recollect.events.envelope import Head
from recollect.events.errors import RecollectError
from recollect.events.storage.process_pool import ProcessPool, process_pool
from recollect.jobs.derivation.job_context import OUTAGES, JobContext
from recollect.jobs.queue.due_namespaces import finished_state
from recollect.jobs.queue.registry import scheduled_jobs
from recollect.jobs.queue.run_store import Finished

#: Added to the niceness of the processes: Linux gives a process of the server ten times the time of one of these.
_NICENESS = 10
#: Seconds without a batch after which the processes end: each has an embedding model in memory.
_IDLE_SECONDS = 30.0
#: Seconds between two looks at whether the worker stops.
_STOP_CHECK_SECONDS = 0.5
#: Seconds that a process waits for its embedding model; without the model, nothing is merged or embedded.
_MODEL_SECONDS_MAX = 300.0


class OpenJobParts(Protocol):
    """The parts of a memory that were opened in another process."""

    @property
    def job_context(self) -> JobContext:
        """Return the parts that jobs use."""
        ...

    def close(self) -> None:
        """Release the files."""
        ...


#: Opens the parts of the same memory again; it must be picklable.
OpenParts = Callable[[], OpenJobParts]


class Outcome(Struct, frozen=True, kw_only=True):
    """The result of a scheduled job in one namespace."""

    head: Head
    #: Events that were appended.
    events: int = 0
    #: The state in which the next run may skip the namespace; None when it may not.
    state: Finished | None = None
    #: The message of the error; None without one.
    error: str | None = None


class _Task(NamedTuple):
    """A scheduled job in one namespace."""

    job: str
    head: Head
    at_us: int


def run_job(context: JobContext, job: str, head: Head, at_us: int) -> Outcome:
    """Run a scheduled job in one namespace; an error becomes part of the result.

    Raises:
        DiskFull, LogUnreachable, ReadOnly: it would be the same for the other namespaces of the batch.
    """
    try:
        events = scheduled_jobs()[job].work(context, head.namespace, at_us)
        state = finished_state(context, job, head, events, at_us)
    except OUTAGES:
        raise
    except RecollectError as error:
        return Outcome(head=head, error=str(error))
    return Outcome(head=head, events=events, state=state)


class NightProcesses:
    """Processes that are started for the first batch, and end some time after the last one.

    Parameters:
        open_parts: opens the parts of the memory in each process.
        processes: number of processes.
    """

    def __init__(self, open_parts: OpenParts, processes: int) -> None:
        self._open_parts = open_parts
        self._processes = processes
        self._lock = threading.Lock()
        self._stack: ExitStack | None = None
        self._pool: ProcessPool[OpenJobParts] | None = None
        self._timer: threading.Timer | None = None
        #: Whether processes may be started: they import the main module of the program again, which the commands allow
        #: and a program of a user may not expect.
        self.is_allowed = False
        #: Batches in progress; the processes are not ended meanwhile.
        self._users = 0

    def run_batch(self, job: str, heads: Sequence[Head], at_us: int, stop: threading.Event) -> Generator[Outcome]:
        """Run `job` in the namespaces of `heads`; yield the result of each when it is complete.

        Raises:
            InterruptedError: `stop` was set; namespaces that had not begun are left out.
            BrokenProcessPool: a process was killed. The next batch gets new processes.
        """
        with self._using() as pool:
            pending = {pool.submit(_run_task, _Task(job, head, at_us)) for head in heads}
            while pending:
                done, pending = wait(pending, _STOP_CHECK_SECONDS, FIRST_COMPLETED)
                for future in done:
                    yield future.result()
                if pending and stop.is_set():
                    for future in pending:
                        future.cancel()
                    raise InterruptedError("the worker is stopping; the batch is processed again later")

    @contextmanager
    def _using(self) -> Generator[ProcessPool[OpenJobParts]]:
        """Yield the pool, started if needed, which stays for `_IDLE_SECONDS` after the block."""
        with self._lock:
            self._users += 1
            if self._timer is not None:
                self._timer.cancel()
            if self._pool is None:
                self._stack = ExitStack()
                opened = process_pool(self._processes, partial(_open, self._open_parts), _close)
                self._pool = self._stack.enter_context(opened)
            pool = self._pool
        try:
            yield pool
        except BrokenProcessPool:
            self.close()
            raise
        finally:
            self._end_use()

    def _end_use(self) -> None:
        """End the use of the pool, and begin the time after which it is closed."""
        with self._lock:
            self._users -= 1
            if self._pool is not None:
                self._timer = threading.Timer(_IDLE_SECONDS, self._close_idle)
                self._timer.daemon = True
                self._timer.start()

    def close(self) -> None:
        """End the processes after the namespaces in progress."""
        with self._lock:
            stack, self._stack, self._pool = self._stack, None, None
            if self._timer is not None:
                self._timer.cancel()
        if stack is not None:
            stack.close()

    def _close_idle(self) -> None:
        if not self._users:
            self.close()


def _open(open_parts: OpenParts) -> OpenJobParts:
    """Open the memory in this process, and lower its priority."""
    with suppress(AttributeError, OSError):
        os.nice(_NICENESS)
    parts = open_parts()
    embedder = parts.job_context.vectors().embedder
    embedder.start()
    embedder.wait_ready(_MODEL_SECONDS_MAX)
    return parts


def _close(parts: OpenJobParts) -> None:
    parts.close()


def _run_task(parts: OpenJobParts, task: _Task) -> Outcome:
    """Run a task, and embed what it appended, so that no thread of the server has to."""
    outcome = run_job(parts.job_context, task.job, task.head, task.at_us)
    if outcome.events:
        parts.job_context.vectors().embed_new(task.head.namespace)
    return outcome
