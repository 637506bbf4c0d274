"""The nightly order of work on one namespace."""

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

#: A step: called with the context, the namespace, the time and the read model; returns what it would append.
Step = Callable[[JobContext, str, int, Snapshot], Sequence[EventDraft]]

#: In this order: a day is told while its words are there, and what was told apart is merged before the cap counts it.
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
    """What a compaction of one namespace appended, or would append as things are now."""

    namespace: str
    #: Events by step; only steps with any.
    events: dict[str, int]


def compact(context: JobContext, namespace: str, now_us: int) -> int:
    """Do the nightly work on `namespace` that is due at `now_us`; return how many events it appended."""
    return sum(compact_steps(context, namespace, now_us).events.values())


def compact_steps(context: JobContext, namespace: str, now_us: int) -> Compaction:
    """Do what `compact` does, and tell the events by step."""
    done = {"extract": extract(context, namespace, now_us)}
    for name, step in STEPS.items():
        done[name] = append_all_derived(context, namespace, partial(step, context, namespace, now_us))
    limit_file_size(context, namespace)
    return Compaction(namespace=namespace, events={name: count for name, count in done.items() if count})


def preview(context: JobContext, namespace: str, now_us: int) -> Compaction:
    """Tell what the next round of each step would append, and append nothing."""
    context.read_models.catch_up(namespace)
    with context.read_models.reading(namespace) as snapshot:
        found = {name: len(step(context, namespace, now_us, snapshot)) for name, step in STEPS.items()}
    return Compaction(namespace=namespace, events={name: count for name, count in found.items() if count})
