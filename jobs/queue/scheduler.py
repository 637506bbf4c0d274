"""Scheduler: starts each scheduled run once, a missed run too, however many schedulers are running."""

from __future__ import annotations

import logging
import threading
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any
from zoneinfo import ZoneInfo

from recollect.events.envelope import microseconds, now_us
from recollect.events.errors import short_text
from recollect.jobs.job_settings import QueueSettings
from recollect.jobs.queue.actors import Actors
from recollect.jobs.queue.registry import scheduled_jobs
from recollect.jobs.queue.run_store import RunStore

_logger = logging.getLogger(__name__)

#: Seconds after the start until the first check: apscheduler takes as long to load as a twentieth of the start of a
#: server, and a short program ends without it.
_DELAY_SECONDS = 0.5
#: Seconds between two checks for runs that were not started or that have stalled.
_CHECK_SECONDS = 10.0
#: A run that was missed is started up to this long after its time: the weekly job is covered.
_MISSED_AGE_MAX = timedelta(days=8)


class Scheduler:
    """Starts the runs of `scheduled_jobs`; several schedulers may run, on several machines.

    Starting a run only sends the message of its first batch of namespaces. If every scheduler was down, the next start
    makes up for the latest missed run of each job; a memory without earlier runs waits for its first one.
    """

    def __init__(self, actors: Actors, run_store: RunStore, settings: QueueSettings) -> None:
        self._actors = actors
        self._run_store = run_store
        self._stale_us = int(settings.slot_stale_seconds * 1_000_000)
        self._zone = ZoneInfo(settings.timezone)
        self._started_us = now_us()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="recollect-scheduler", daemon=True)
        self._lock = threading.Lock()

    @cached_property
    def _triggers(self) -> dict[str, Any]:
        """The times of each job."""
        from apscheduler.triggers.cron import CronTrigger  # noqa: PLC0415 # pyright: ignore[reportMissingTypeStubs]

        return {
            name: CronTrigger.from_crontab(job.cron, timezone=self._zone)  # pyright: ignore[reportUnknownMemberType]
            for name, job in scheduled_jobs().items()
        }

    def start(self) -> None:
        """Start the thread of the scheduler."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread; runs that were started continue in the workers."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        """Check at the start, at intervals and at the times of the jobs, until the stop."""
        if self._stopped.wait(_DELAY_SECONDS):
            return
        from apscheduler.schedulers.background import (  # noqa: PLC0415 # pyright: ignore[reportMissingTypeStubs]
            BackgroundScheduler,
        )

        scheduler: Any = BackgroundScheduler(timezone="UTC")
        options = {"coalesce": True, "misfire_grace_time": None, "max_instances": 1}
        for trigger in self._triggers.values():
            scheduler.add_job(self.check, trigger, **options)
        # Checks at the start and at intervals find missed runs and stalled runs.
        scheduler.add_job(self.check, "interval", seconds=_CHECK_SECONDS, next_run_time=datetime.now(UTC), **options)
        scheduler.start()
        self._stopped.wait()
        scheduler.shutdown(wait=True)

    def check(self) -> None:
        """Start the latest run of every job that was not started, or that has stalled."""
        with self._lock:
            try:
                jobs_with_runs = {run.job for run in self._run_store.runs()}
                for name in self._triggers:
                    self._check(name, first=name not in jobs_with_runs)
            except Exception as error:
                # For example, the broker cannot be reached. The next check makes up for it.
                _logger.warning("the scheduler could not start the runs that are due: %s", short_text(error))

    def _check(self, job: str, *, first: bool) -> None:
        """Start the latest run of `job` if this scheduler can claim it; `first` when the job has no run yet."""
        scheduled_at_us = self.latest_due_us(job)
        if scheduled_at_us is None:
            return
        if self._run_store.claim(job, scheduled_at_us, now_us(), self._stale_us):
            if first and scheduled_at_us < self._started_us:
                # A new memory has no work for times before its first start.
                self._run_store.end(job, scheduled_at_us, now_us())
                return
            self._actors.run.send(job, scheduled_at_us, "")

    def latest_due_us(self, job: str) -> int | None:
        """Return the last time at which `job` was due, in microseconds since 1970 UTC; None before its first time."""
        trigger = self._triggers[job]
        now = datetime.now(UTC)
        latest: datetime | None = None
        following: datetime | None = trigger.get_next_fire_time(None, now - _MISSED_AGE_MAX)
        while following is not None and following <= now:
            latest = following
            following = trigger.get_next_fire_time(following, following + timedelta(seconds=1))
        return None if latest is None else microseconds(latest)
