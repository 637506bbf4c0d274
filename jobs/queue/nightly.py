"""Nightly work: the compaction steps of one namespace, in order."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from recollect.events.backends.overlay_log import OverlayLog
from recollect.events.envelope import EventDraft
from recollect.events.progress import OnPartProgress, no_progress
from recollect.jobs.compaction.compress import compress
from recollect.jobs.compaction.distill import distill
from recollect.jobs.compaction.duplicates import merge_duplicates
from recollect.jobs.compaction.expire import enforce_retention_limit, expire
from recollect.jobs.compaction.file_size import limit_file_size
from recollect.jobs.compaction.staleness import decay_confidence, mark_stale
from recollect.jobs.derivation.append_derived import append_all_derived
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.extraction.extraction_job import extract
from recollect.projections.queries.queried_episodes import TierTotals
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.read_models.read_models import ReadModels

#: A step takes the context, the namespace, the time in microseconds and a snapshot, and returns the events to append.
Step = Callable[[JobContext, str, int, Snapshot], Sequence[EventDraft]]

#: The order matters: a summary is made before its sources expire, and duplicates are merged before the retention limit
#: counts the memories.
STEPS: dict[str, Step] = {
    "compress": compress,
    "distill": distill,
    "expire": expire,
    "age": mark_stale,
    "decay": decay_confidence,
    "merge": merge_duplicates,
    "cap": enforce_retention_limit,
}


class Compaction(Struct, frozen=True, kw_only=True):
    """The events that a compaction of one namespace appended, or would append, and the episodes before and after it."""

    namespace: str
    #: Number of events by step, without the steps that append none.
    events: dict[str, int]
    #: Number and tokens of the episodes by tier.
    tiers_before: dict[str, TierTotals]
    tiers_after: dict[str, TierTotals]


def compact(context: JobContext, namespace: str, now_us: int) -> int:
    """Run the nightly steps that are due at `now_us` on `namespace`; return the number of appended events."""
    appended = sum(_run_steps(context, namespace, now_us, no_progress).values())
    limit_file_size(context, namespace)
    return appended


def compact_steps(
    context: JobContext, namespace: str, now_us: int, on_progress: OnPartProgress = no_progress
) -> Compaction:
    """Run the nightly steps as `compact` does; return the appended events by step.

    Parameters:
        on_progress: called with (name of the step, steps done, steps) before each step.
    """
    compaction = _compaction(context, namespace, now_us, on_progress)
    limit_file_size(context, namespace)
    return compaction


def preview(context: JobContext, namespace: str, now_us: int, on_progress: OnPartProgress = no_progress) -> Compaction:
    """Return what `compact_steps` would do, and append nothing.

    The steps run on a copy: appends stay in memory, and a read model is built in a folder that is removed afterwards.
    No language model is asked, so its summaries and extractions are those of the rules.
    """
    with tempfile.TemporaryDirectory(prefix="recollect-preview-") as folder:
        log = OverlayLog(context.log, namespace)
        read_models = ReadModels(Path(folder), log)
        try:
            trial = replace(context, log=log, read_models=read_models, llm=None)
            return _compaction(trial, namespace, now_us, on_progress)
        finally:
            read_models.close()


def _compaction(context: JobContext, namespace: str, now_us: int, on_progress: OnPartProgress) -> Compaction:
    """Run the nightly steps; return their events, and the episodes before and after them."""
    before = _tiers(context, namespace)
    events = _run_steps(context, namespace, now_us, on_progress)
    return Compaction(
        namespace=namespace,
        events={name: count for name, count in events.items() if count},
        tiers_before=before,
        tiers_after=_tiers(context, namespace),
    )


def _run_steps(context: JobContext, namespace: str, now_us: int, on_progress: OnPartProgress) -> dict[str, int]:
    """Run all steps in order; return the number of appended events by step."""
    on_progress("extract", 0, 1 + len(STEPS))
    appended = {"extract": extract(context, namespace, now_us)}
    for name, step in STEPS.items():
        on_progress(name, len(appended), 1 + len(STEPS))
        appended[name] = append_all_derived(context, namespace, partial(step, context, namespace, now_us))
    return appended


def _tiers(context: JobContext, namespace: str) -> dict[str, TierTotals]:
    """Return the number and tokens of the episodes by tier."""
    context.read_models.catch_up(namespace)
    with context.read_models.reading(namespace) as snapshot:
        return snapshot.episodes.tier_totals()
