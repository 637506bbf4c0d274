"""Background state: backlogs, queues, job runs, processes, dead letters and the disk, read in one call."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from recollect.api.assembly.memory_parts import MemoryParts
from recollect.api.operations.disk_usage import free_bytes
from recollect.events.errors import RecollectError
from recollect.jobs.queue.backlog import BacklogScan, backlog_totals
from recollect.jobs.queue.run_store import DeadLetter, Heartbeat, Run

#: Namespaces with a backlog that one call reads, 2 ms each; of more, the totals are reported as "at least".
_BACKLOGS_MAX = 1_000
_NO_SCAN = BacklogScan(behind=[], waiting=[], compared=0, is_complete=False)


class BackgroundState(Struct, frozen=True, kw_only=True):
    """The state of the background work on a data folder."""

    #: The namespaces with work that is left.
    scan: BacklogScan
    #: Messages that wait, by queue.
    queues: dict[str, int]
    #: The last run of every job.
    runs: list[Run]
    #: The last heartbeat of every worker and scheduler.
    heartbeats: list[Heartbeat]
    dead_letters: list[DeadLetter]
    #: Why the log could not be read; None when it was.
    log_problem: str | None
    #: Why the broker could not be read; None when it was.
    broker_problem: str | None
    #: Free bytes of the data folder's file system; None when it cannot be asked.
    free_bytes: int | None
    #: Whether files can be written into the data folder, by its mode and its mount.
    is_writable: bool

    @property
    def problem(self) -> str | None:
        """Return why the log or the broker could not be read; None when both were."""
        return self.log_problem or self.broker_problem

    @property
    def queues_total(self) -> int:
        """Return the number of messages that wait in all queues."""
        return sum(self.queues.values())

    def lag(self, now_us: int) -> dict[str, Any]:
        """Return how far the projections are behind the log, over all namespaces."""
        return backlog_totals(self.scan, now_us)


def background_state(
    parts: MemoryParts, on_step: Callable[[str], None] = lambda _: None, *, scans: bool = True
) -> BackgroundState:
    """Return the state of the background work. An unreachable log or broker is reported, not raised.

    Parameters:
        on_step: called with `disk`, `broker` and `log` before each is asked, any of which may hang, and with `backlog`
            before namespaces are compared with the log.
        scans: whether namespaces are compared with the log.
    """
    scan, log_problem, broker_problem = _NO_SCAN, None, None
    queues, runs, heartbeats, dead_letters = dict[str, int](), list[Run](), list[Heartbeat](), list[DeadLetter]()
    on_step("disk")
    data = parts.settings.storage.data
    free, is_writable = free_bytes(data), os.access(data, os.W_OK)
    on_step("broker")
    try:
        if parts.workers is not None:
            queues = parts.workers.queue_depths()
        runs, heartbeats = parts.run_store.runs(), parts.run_store.heartbeats()
        dead_letters = parts.run_store.dead_letters()
    except Exception as error:
        broker_problem = f"broker: {type(error).__name__}: {error}"
    on_step("log")
    try:
        parts.log.heads(limit=1)
        if scans:
            on_step("backlog")
            scan = parts.backlog.scan(_BACKLOGS_MAX)
    except RecollectError as error:
        log_problem = f"log: {error}"
    return BackgroundState(
        scan=scan,
        queues=queues,
        runs=runs,
        heartbeats=heartbeats,
        dead_letters=dead_letters,
        log_problem=log_problem,
        broker_problem=broker_problem,
        free_bytes=free,
        is_writable=is_writable,
    )
