"""Nightly work: the compaction steps of one namespace, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from recollect.events.envelope import EventDraft
from recollect.jobs.compaction.clusters import cluster
from recollect.jobs.compaction.compress import compress
from recollect.jobs.compaction.daily_digest import add_daily_digests
from recollect.jobs.compaction.distill import distill
from recollect.jobs.compaction.duplicates import merge_duplicates
from recollect.jobs.compaction.expire import expire
from recollect.jobs.compaction.file_size import limit_file_size
from recollect.jobs.compaction.retention_limit import enforce_retention_limit
from recollect.jobs.compaction.staleness import decay_confidence, mark_stale
from recollect.jobs.derivation.append_derived import append_all_derived
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.extraction.extraction_job import extract
from recollect.projections.queries.snapshot import Snapshot

#: A step takes the context, the namespace, the time in microseconds and a snapshot, and returns the events to append.
Step = Callable[[JobContext, str, int, Snapshot], Sequence[EventDraft]]

#: The order matters: a day is digested before its episodes expire, and duplicates are merged before the retention limit
#: counts the memories.
STEPS: dict[str, Step] = {
    "digest": add_daily_digests,
    "compress": compress,
    "distill": distill,
    "expire": expire,
    "age": mark_stale,
    "decay": decay_confidence,
    "merge": merge_duplicates,
    "cap": enforce_retention_limit,
    "cluster": cluster,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """The number of events that a compaction of one namespace appended, or that a preview would append."""

    namespace: str
    #: Number of events by step, without the steps that append none.
    events: dict[str, int]


def compact(context: JobContext, namespace: str, now_us: int) -> int:
    """Run the nightly steps that are due at `now_us` on `namespace`; return the number of appended events."""
    return sum(compact_steps(context, namespace, now_us).events.values())


def compact_steps(context: JobContext, namespace: str, now_us: int) -> Compaction:
    """Run the nightly steps as `compact` does; return the number of appended events by step."""
    appended = {"extract": extract(context, namespace, now_us)}
    for name, step in STEPS.items():
        appended[name] = append_all_derived(context, namespace, partial(step, context, namespace, now_us))
    limit_file_size(context, namespace)
    return Compaction(namespace=namespace, events={name: count for name, count in appended.items() if count})


def preview(context: JobContext, namespace: str, now_us: int) -> Compaction:
    """Return the number of events that the next round of each step would append; append none."""
    context.read_models.catch_up(namespace)
    with context.read_models.reading(namespace) as snapshot:
        planned = {name: len(step(context, namespace, now_us, snapshot)) for name, step in STEPS.items()}
    return Compaction(namespace=namespace, events={name: count for name, count in planned.items() if count})
