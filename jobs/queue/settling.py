"""Settling: runs the background work of one namespace to its end, in the caller's thread."""

from __future__ import annotations

from recollect.events.errors import NotSettled, ProjectionFailed
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.queue.backlog import BacklogMonitor
from recollect.jobs.queue.registry import LIVE_JOBS

#: Rounds before the call gives up. A round does all the work that is due, and the next round handles the events that
#: its jobs appended: three are usual. More are needed only while other processes keep appending.
ROUNDS_MAX = 100


def settle(
    context: JobContext, backlog: BacklogMonitor, namespace: str, now_us: int, *, rounds_max: int = ROUNDS_MAX
) -> None:
    """Project, embed and run the live jobs of `namespace` until no work is left.

    Parameters:
        now_us: the current time of the jobs, in microseconds since 1970 UTC.
        rounds_max: rounds before `NotSettled` is raised.

    Raises:
        ProjectionFailed: the namespace is parked. NotSettled: work is left after `rounds_max` rounds, or the memory
            was closed meanwhile. StorageError: the disk failed.
    """
    for _ in range(rounds_max):
        if context.stop.is_set():
            break
        progress = context.read_models.catch_up(namespace)
        if progress.parked is not None:
            raise ProjectionFailed(namespace, progress.parked.version, progress.parked.error)
        # Embedding comes before the jobs: the observer cuts observations where the vectors show a change of topic.
        context.vectors().embed_new(namespace, stop=context.stop)
        version = progress.version
        appended = sum(job.work(context, namespace, now_us) for job in LIVE_JOBS.values())
        backlog.note_read(namespace, version)
        if not appended and backlog.namespace_backlog(namespace).is_settled:
            return
    raise NotSettled(namespace, "the memory is being closed" if context.stop.is_set() else f"{rounds_max} rounds done")
