"""Scheduled work: each slot of each job is begun once, by whichever scheduler comes first, a missed one too."""

from __future__ import annotations

import logging
import threading
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from apscheduler.schedulers.background import BackgroundScheduler  # pyright: ignore[reportMissingTypeStubs]
from apscheduler.triggers.cron import CronTrigger  # pyright: ignore[reportMissingTypeStubs]

from recollect.events.envelope import microseconds, now_us
from recollect.jobs.job_settings import QueueSettings
from recollect.jobs.queue.actors import Actors
from recollect.jobs.queue.registry import SCHEDULED_JOBS
from recollect.jobs.queue.run_store import RunStore

_logger = logging.getLogger(__name__)

#: How often slots are looked at that nobody began, or that nobody goes on with.
_CHECK_SECONDS = 10.0
#: How far back a missed slot is made up for.
_BACK = timedelta(days=8)


class Scheduler:
    """Begins the slots of `SCHEDULED`; several may run, on several machines.

    A firing only sends the first page of the work. A slot that was missed while every scheduler was down is begun at
    the next start, the latest one of each job; a memory that never saw a slot before waits for its first one.
    """

    def __init__(self, actors: Actors, run_store: RunStore, settings: QueueSettings) -> None:
        self._actors = actors
        self._records = run_store
        self._stale_us = int(settings.slot_stale_seconds * 1_000_000)
        zone = ZoneInfo(settings.timezone)
        self._triggers: dict[str, Any] = {
            name: CronTrigger.from_crontab(job.cron, timezone=zone)  # pyright: ignore[reportUnknownMemberType]
            for name, job in SCHEDULED_JOBS.items()
        }
        self._started_us = now_us()
        self._scheduler: Any = BackgroundScheduler(timezone="UTC")
        options = {"coalesce": True, "misfire_grace_time": None, "max_instances": 1}
        for trigger in self._triggers.values():
            self._scheduler.add_job(self.check, trigger, **options)
        # At once, and now and then: what was missed, and what went quiet.
        self._scheduler.add_job(
            self.check, "interval", seconds=_CHECK_SECONDS, next_run_time=datetime.now(UTC), **options
        )
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start the thread."""
        self._scheduler.start()

    def stop(self) -> None:
        """Stop; what was begun goes on in the workers."""
        self._scheduler.shutdown(wait=True)

    def check(self) -> None:
        """Begin the latest slot of every job that nobody began, or that nobody goes on with."""
        with self._lock:
            try:
                known = {run.job for run in self._records.runs()}
                for name in SCHEDULED_JOBS:
                    self._check(name, known)
            except Exception:
                # The broker is away, say. The next look makes up for it.
                _logger.warning("the scheduler could not begin what is due", exc_info=True)

    def _check(self, job: str, known: set[str]) -> None:
        slot_us = self.latest_due_us(job)
        if slot_us is None:
            return
        if self._records.claim(job, slot_us, now_us(), self._stale_us):
            if job not in known and slot_us < self._started_us:
                # The first look at a new memory: its time comes tonight.
                self._records.end(job, slot_us, now_us())
                return
            self._actors.run.send(job, slot_us, "")

    def latest_due_us(self, job: str) -> int | None:
        """Return the last time at which `job` was due."""
        trigger = self._triggers[job]
        now = datetime.now(UTC)
        slot: datetime | None = None
        following: datetime | None = trigger.get_next_fire_time(None, now - _BACK)
        while following is not None and following <= now:
            slot = following
            following = trigger.get_next_fire_time(following, following + timedelta(seconds=1))
        return None if slot is None else microseconds(slot)
