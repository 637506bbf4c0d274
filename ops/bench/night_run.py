"""One scheduled run over a data folder, as a worker does it: what it takes, and what it opens."""

from __future__ import annotations

import resource
import time
from functools import partial
from pathlib import Path

from msgspec import Struct

from recollect.api.assembly.memory_parts import open_parts
from recollect.api.settings import load_settings
from recollect.events.envelope import now_us
from recollect.jobs.queue.workers import Workers


class NightRun(Struct, frozen=True, kw_only=True):
    """The result of a run."""

    #: From the first message to the end of the run.
    seconds: float
    #: Processor time, with that of the processes that the worker started.
    cpu_seconds: float
    #: Namespaces that were opened, and events that were appended.
    namespaces: int
    events: int
    #: Namespaces whose work failed.
    errors: int
    #: Of the worker, and of the largest of its processes.
    peak_mib: int
    process_peak_mib: int


def run_night(folder: Path, job: str = "compact", at_us: int | None = None, processes: int | None = None) -> NightRun:
    """Run `job` at `at_us`, now by default; the worker is this process."""
    settings = load_settings(data=folder, **({} if processes is None else {"night_processes": processes}))
    scheduled_at_us = at_us or now_us()
    with open_parts(settings, workers=False) as parts:
        parts.vectors.embedder.start()
        parts.vectors.embedder.wait_ready(600)
        reopen = partial(open_parts, settings, workers=False)
        # No sweep and no scheduler: this run alone is measured.
        workers = Workers(parts.job_context, parts.run_store, parts.backlog, schedule=False, open_parts=reopen)
        workers.allow_night_processes()
        workers.broker.emit_after("process_boot")
        background = workers._workers[-1]  # pyright: ignore[reportPrivateUsage]
        background.start()
        parts.run_store.claim(job, scheduled_at_us, now_us(), 1)
        started, before = time.perf_counter(), _cpu_seconds()
        workers.actors.run.send(job, scheduled_at_us, "")
        while not (run := next(run for run in parts.run_store.runs() if run.job == job)).ended_at_us:
            time.sleep(0.02)
        seconds = time.perf_counter() - started
        background.stop(timeout=10_000)
        if workers._night is not None:  # pyright: ignore[reportPrivateUsage]
            workers._night.close()  # pyright: ignore[reportPrivateUsage]
    return NightRun(
        seconds=seconds,
        cpu_seconds=_cpu_seconds() - before,
        namespaces=run.namespaces,
        events=run.events,
        errors=run.errors,
        peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        process_peak_mib=resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024,
    )


def _cpu_seconds() -> float:
    """Return the processor time of this process and of its children that have ended."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
