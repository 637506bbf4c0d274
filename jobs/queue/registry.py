"""Registry: the live jobs and the scheduled jobs, with their times."""

from __future__ import annotations

from typing import NamedTuple

from recollect.jobs.conversation.observer import observe
from recollect.jobs.derivation.job_context import Job, JobContext
from recollect.jobs.erasure.care_transfer import transfer_care
from recollect.jobs.erasure.retention import retain
from recollect.jobs.extraction.extraction_job import extract
from recollect.jobs.queue.nightly import compact

#: New events of a namespace from which the nightly job seals a segment of the archive.
_SEALED_EVENTS_MIN = 10_000


class LiveJob(NamedTuple):
    """A job that runs when a namespace has new events."""

    work: Job


class ScheduledJob(NamedTuple):
    """A job that runs for every namespace at a time of the day or week."""

    work: Job
    #: A cron expression in the time zone of the settings: ``0 3 * * *`` is 3:00.
    cron: str


def repair(context: JobContext, namespace: str, _: int) -> int:
    """Project and embed the rows that a lost message left behind; append no events, return 0."""
    context.read_models.catch_up(namespace)
    context.vectors().embed_new(namespace, stop=context.stop)
    return 0


def seal(context: JobContext, namespace: str, _: int) -> int:
    """Seal the events since the last segment when they are many; append no events, return 0.

    A log without an archive is sealed only by `recollect archive`.
    """
    if context.log.archive is not None:
        context.log.archive.seal(context.log, namespace, min_events=_SEALED_EVENTS_MIN)
    return 0


#: In the order in which they run for new events: the observer follows the extraction.
LIVE_JOBS: dict[str, LiveJob] = {
    "extract": LiveJob(extract),
    "care": LiveJob(transfer_care),
    "observe": LiveJob(observe),
}

SCHEDULED_JOBS: dict[str, ScheduledJob] = {
    "compact": ScheduledJob(compact, "0 3 * * *"),
    "retain": ScheduledJob(retain, "0 4 * * *"),
    "repair": ScheduledJob(repair, "0 5 * * *"),
    "seal": ScheduledJob(seal, "0 6 * * sun"),
}
