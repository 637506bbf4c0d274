"""Registry: the live jobs and the scheduled jobs, with their times."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from hashlib import sha256
from typing import NamedTuple

from recollect.events.envelope import Head, datetime_of
from recollect.events.errors import RecollectError, short_text
from recollect.jobs.compaction.due_time import compaction_due_us
from recollect.jobs.conversation.observer import observe
from recollect.jobs.derivation.job_context import OUTAGES, Job, JobContext
from recollect.jobs.erasure.edit_transfer import transfer_edits
from recollect.jobs.erasure.retention import is_retained, retain, retention_due_us
from recollect.jobs.extraction.extraction_job import extract
from recollect.jobs.following.extensions import JobRun, OwnJob, installed_jobs
from recollect.jobs.forgetting.forget_events import forget
from recollect.jobs.llm_reading.reading_job import read_by_llm, reading_due_us
from recollect.jobs.queue.nightly import compact

#: New events of a namespace from which the nightly job seals a segment of the archive.
_SEALED_EVENTS_MIN = 10_000
#: Raised with every change after which compaction has new work in namespaces without new events.
_COMPACTION_VERSION = "1"


class LiveJob(NamedTuple):
    """A job that runs when a namespace has new events."""

    work: Job


def _all_namespaces(_: JobContext, __: Head) -> bool:
    return True


def _never_due(_: JobContext, __: str, ___: int) -> int | None:
    return None


class ScheduledJob(NamedTuple):
    """A job that runs at a time of the day or week, in the namespaces in which it has work."""

    work: Job
    #: A cron expression in the time zone of the settings: ``0 3 * * *`` is 3:00.
    cron: str
    #: Returns the hash of what the work depends on besides the events of a namespace.
    basis: Callable[[JobContext], str]
    #: Returns whether the job ever has work in a namespace with this head.
    concerns: Callable[[JobContext, Head], bool] = _all_namespaces
    #: Returns when the job has work again without new events, in microseconds; None: never. It takes the context, the
    #: namespace and the time of the run that has just ended.
    due_us: Callable[[JobContext, str, int], int | None] = _never_due


def repair(context: JobContext, namespace: str, _: int) -> int:
    """Project and embed the rows that a lost message left behind; append no events, return 0."""
    context.read_models.catch_up(namespace)
    context.vectors().embed_new(namespace, stop=context.stop)
    return 0


def _compaction_basis(context: JobContext) -> str:
    """Return the hash of the settings and models that the steps of compaction depend on."""
    settings = context.settings
    return _hash(
        _COMPACTION_VERSION,
        settings.compaction.model_dump_json(),
        settings.llm.llm or "",
        _fingerprint(context),
    )


def _embedding_basis(context: JobContext) -> str:
    return _hash(_fingerprint(context))


def _retention_basis(context: JobContext) -> str:
    return _hash(context.settings.retention.model_dump_json())


def _reading_basis(context: JobContext) -> str:
    return _hash(context.settings.llm.model_dump_json())


def _archive_basis(_: JobContext) -> str:
    return _hash(str(_SEALED_EVENTS_MIN))


def _fingerprint(context: JobContext) -> str:
    """Return the fingerprint of the embedding model; empty until it is ready."""
    embedder = context.vectors().embedder
    return embedder.fingerprint if embedder.state == "ready" else ""


def _no_basis(_: JobContext) -> str:
    return _hash()


def _hash(*parts: str) -> str:
    return sha256("\n".join(parts).encode()).hexdigest()[:16]


def _has_many_events(context: JobContext, head: Head) -> bool:
    """Return whether a namespace may have enough events for a segment."""
    return context.log.archive is not None and head.version >= _SEALED_EVENTS_MIN


def seal(context: JobContext, namespace: str, _: int) -> int:
    """Seal the events since the last segment when they are many; append no events, return 0.

    A log without an archive is sealed only by `recollect archive`.
    """
    if context.log.archive is not None:
        context.log.archive.seal(context.log, namespace, min_events=_SEALED_EVENTS_MIN)
    return 0


#: In the order in which they run for new events: what is to be forgotten is not extracted, and the observer follows the
#: extraction.
LIVE_JOBS: dict[str, LiveJob] = {
    "forget": LiveJob(forget),
    "extract": LiveJob(extract),
    "read": LiveJob(read_by_llm),
    "edits": LiveJob(transfer_edits),
    "observe": LiveJob(observe),
}

SCHEDULED_JOBS: dict[str, ScheduledJob] = {
    "compact": ScheduledJob(compact, "0 3 * * *", _compaction_basis, due_us=compaction_due_us),
    "retain": ScheduledJob(retain, "0 4 * * *", _retention_basis, is_retained, retention_due_us),
    "repair": ScheduledJob(repair, "0 5 * * *", _embedding_basis),
    # What was not read while the model was paused or out of budget.
    "read": ScheduledJob(read_by_llm, "*/15 * * * *", _reading_basis, due_us=reading_due_us),
    "seal": ScheduledJob(seal, "0 6 * * sun", _archive_basis, _has_many_events),
}


def scheduled_jobs() -> dict[str, ScheduledJob]:
    """Return the scheduled jobs by name, with those of other packages, whose names begin with `own `."""
    own = {
        f"own {job.name}": ScheduledJob(partial(_run_own, job), job.cron, _no_basis)
        for job in installed_jobs().values()
    }
    return SCHEDULED_JOBS | own


def _run_own(job: OwnJob, context: JobContext, namespace: str, at_us: int) -> int:
    """Run a job of another package; return the number of appended events.

    Raises:
        RecollectError: its error, which is recorded in the run.
    """
    run = JobRun(context, namespace, datetime_of(at_us))
    try:
        job.work(run)
    except OUTAGES:
        raise
    except Exception as error:
        raise RecollectError(f"the job {job.name} failed: {short_text(error)}") from error
    return run.appended
