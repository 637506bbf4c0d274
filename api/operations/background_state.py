"""Background state: backlogs, queues, job runs, processes and dead letters, read in one call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from recollect.api.assembly.memory_parts import MemoryParts
from recollect.events.errors import RecollectError
from recollect.jobs.queue.backlog import Backlog, backlog_totals
from recollect.jobs.queue.run_store import DeadLetter, Heartbeat, Run

#: Namespaces with a backlog that one call reads; of more, the totals are reported as "at least".
_BACKLOGS_MAX = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundState:
    """The state of the background work on a data folder."""

    #: The namespaces that projections are behind in, at most `_BACKLOGS_MAX`.
    backlogs: list[Backlog]
    #: Namespaces in the log, as far as they were counted.
    namespaces: int
    #: Messages that wait, by queue.
    queues: dict[str, int]
    #: The last run of every job.
    runs: list[Run]
    #: The last heartbeat of every worker and scheduler.
    heartbeats: list[Heartbeat]
    dead_letters: list[DeadLetter]
    #: Why the log or the broker could not be read; None when both were.
    problem: str | None

    def lag(self, now_us: int) -> dict[str, Any]:
        """Return how far the projections are behind the log, over all `backlogs`."""
        return backlog_totals(self.backlogs, now_us, most=_BACKLOGS_MAX)


def background_state(parts: MemoryParts) -> BackgroundState:
    """Return the state of the background work. An unreachable log or broker is reported in `problem`, not raised."""
    backlogs, namespaces, problem = list[Backlog](), 0, None
    queues, runs, heartbeats, dead_letters = dict[str, int](), list[Run](), list[Heartbeat](), list[DeadLetter]()
    try:
        backlogs, namespaces = parts.backlog.backlogs(_BACKLOGS_MAX)
    except RecollectError as error:
        problem = f"log: {error}"
    try:
        if parts.workers is not None:
            queues = parts.workers.queue_depths()
        runs, heartbeats = parts.run_store.runs(), parts.run_store.heartbeats()
        dead_letters = parts.run_store.dead_letters()
    except Exception as error:
        problem = f"broker: {type(error).__name__}: {error}"
    return BackgroundState(
        backlogs=backlogs,
        namespaces=namespaces,
        queues=queues,
        runs=runs,
        heartbeats=heartbeats,
        dead_letters=dead_letters,
        problem=problem,
    )
