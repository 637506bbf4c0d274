"""The nightly order of work on one namespace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from recollect.events.envelope import EventDraft
from recollect.jobs.compaction.clusters import cluster
from recollect.jobs.compaction.compress import compress
from recollect.jobs.compaction.daily_digest import digest_days
from recollect.jobs.compaction.distill import distill
from recollect.jobs.compaction.duplicates import merge_duplicates
from recollect.jobs.compaction.expire import expire
from recollect.jobs.compaction.file_size import keep_size
from recollect.jobs.compaction.retention_limit import cap
from recollect.jobs.compaction.staleness import age, decay
from recollect.jobs.derivation.append_derived import derive_all
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.extraction.extraction_job import extract
from recollect.projections.queries.snapshot import Snapshot

#: A step: called with the context, the namespace, the time and the read model; returns what it would append.
Step = Callable[[JobContext, str, int, Snapshot], Sequence[EventDraft]]

#: In this order: a day is told while its words are there, and what was told apart is merged before the cap counts it.
STEPS: dict[str, Step] = {
    "digest": digest_days,
    "compress": compress,
    "distill": distill,
    "expire": expire,
    "age": age,
    "decay": decay,
    "merge": merge_duplicates,
    "cap": cap,
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
        done[name] = derive_all(context, namespace, partial(step, context, namespace, now_us))
    keep_size(context, namespace)
    return Compaction(namespace=namespace, events={name: count for name, count in done.items() if count})


def preview(context: JobContext, namespace: str, now_us: int) -> Compaction:
    """Tell what the next round of each step would append, and append nothing."""
    context.models.catch_up(namespace)
    with context.models.reading(namespace) as snapshot:
        found = {name: len(step(context, namespace, now_us, snapshot)) for name, step in STEPS.items()}
    return Compaction(namespace=namespace, events={name: count for name, count in found.items() if count})
