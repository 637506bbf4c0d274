"""How a job appends: what it decides holds for the read model that it has seen, or it decides again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from recollect.events.envelope import Appended, EventDraft
from recollect.events.errors import EventIdConflict, VersionConflict
from recollect.events.limits import BATCH_EVENTS_MAX
from recollect.jobs.derivation.job_context import JobContext
from recollect.projections.queries.snapshot import Snapshot

#: Told by producers, and of no effect on what jobs decide: what jobs work on is older.
_HARMLESS = frozenset({"session.started", "message.added", "action.recorded", "observation.recorded"})
#: Decisions until a namespace is left to the next run: each was overtaken by another job or a correction.
_DECISIONS_MAX = 5
#: Appends of one decision, each overtaken by messages.
_APPENDS_MAX = 50

#: Parts of one job; the next run goes on.
_ROUNDS_MAX = 10_000

#: What a job decides from a read model: events with deterministic ids.
Plan = Callable[[Snapshot], Sequence[EventDraft]]


def append_derived(context: JobContext, namespace: str, decide: Plan) -> int:
    """Append what `decide` makes of the caught-up read model; return how many events are new.

    The append expects the version that was decided from. When messages came meanwhile it is tried again as it is; when
    anything else came, such as a correction or another worker's events, it is decided again. So of two workers on the
    same job one appends, and the other finds nothing left to do.
    """
    for _ in range(_DECISIONS_MAX):
        context.read_models.catch_up(namespace)
        with context.read_models.reading(namespace) as snapshot:
            version = snapshot.version
            drafts = decide(snapshot)
        try:
            return _append(context, namespace, drafts, version)
        except (VersionConflict, EventIdConflict):
            continue
    return 0


def append_all_derived(context: JobContext, namespace: str, decide: Plan) -> int:
    """Call `derive` until there is nothing left to do, or the process ends; return how many events are new.

    A decision does a bounded part of the work, so that no read model is held for long.
    """
    total = 0
    for _ in range(_ROUNDS_MAX):
        if context.stop.is_set():
            break
        new = append_derived(context, namespace, decide)
        if not new:
            break
        total += new
    return total


def _append(context: JobContext, namespace: str, drafts: Sequence[EventDraft], version: int) -> int:
    """Append in batches, each behind the one before; raise the conflict when it cannot be left aside."""
    new = 0
    for first in range(0, len(drafts), BATCH_EVENTS_MAX):
        recorded = _append_behind(context, namespace, drafts[first : first + BATCH_EVENTS_MAX], version)
        new += sum(not one.duplicate for one in recorded)
        version = max(version, *(one.version for one in recorded))
    return new


def _append_behind(
    context: JobContext, namespace: str, batch: Sequence[EventDraft], version: int
) -> Sequence[Appended]:
    """Append a batch behind `version` and the messages that came since."""
    for _ in range(_APPENDS_MAX):
        try:
            return context.log.append(namespace, batch, expected_version=version)
        except VersionConflict:
            came = context.log.read(namespace, after=version, limit=BATCH_EVENTS_MAX)
            if not came or any(event.type not in _HARMLESS for event in came):
                raise
            version = came[-1].version
    return context.log.append(namespace, batch, expected_version=version)
