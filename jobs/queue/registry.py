"""Every job: what it does, when, and in which queue."""

from __future__ import annotations

from typing import NamedTuple

from recollect.jobs.conversation.observer import observe
from recollect.jobs.derivation.job_context import Job, JobContext
from recollect.jobs.extraction.extraction_job import extract
from recollect.jobs.queue.nightly import compact

#: Events of a namespace that are worth a segment.
_SEALED_EVENTS_MIN = 10_000


class LiveJob(NamedTuple):
    """A job that is done when a namespace has news."""

    work: Job


class ScheduledJob(NamedTuple):
    """A job that is done for every namespace at its time."""

    work: Job
    #: In the time zone of the setting: ``0 3 * * *`` is three o'clock in the morning.
    cron: str


def repair(context: JobContext, namespace: str, _: int) -> int:
    """Embed what has no vectors yet, whatever was lost; it appends nothing."""
    context.read_models.catch_up(namespace)
    context.vectors().embed_new(namespace, stop=context.stop)
    return 0


def seal(context: JobContext, namespace: str, _: int) -> int:
    """Seal what has come since the last segment, when it is much.

    A log without an archive is sealed by `recollect archive` alone.
    """
    if context.log.archive is not None:
        context.log.archive.seal(context.log, namespace, min_events=_SEALED_EVENTS_MIN)
    return 0


#: In the order in which they are done for news.
LIVE_JOBS: dict[str, LiveJob] = {"extract": LiveJob(extract), "observe": LiveJob(observe)}

SCHEDULED_JOBS: dict[str, ScheduledJob] = {
    "compact": ScheduledJob(compact, "0 3 * * *"),
    "repair": ScheduledJob(repair, "0 5 * * *"),
    "seal": ScheduledJob(seal, "0 6 * * sun"),
}
