"""Appending of derived events: optimistic concurrency between a read model and the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from recollect.events.envelope import Appended, EventDraft
from recollect.events.errors import Erased, EventIdConflict, VersionConflict
from recollect.events.intake.quarantine import with_quarantine
from recollect.events.limits import BATCH_EVENTS_MAX
from recollect.jobs.derivation.job_context import JobContext
from recollect.projections.queries.snapshot import Snapshot

#: Event types of producers that do not invalidate a plan: jobs plan over events that are older.
_HARMLESS = frozenset({"session.started", "message.added", "action.recorded", "observation.recorded"})
#: Plans before a namespace is left to the next run: each was invalidated by another job or a correction.
_PLANS_MAX = 5
#: Attempts to append one batch, each after a conflict with new messages.
_APPENDS_MAX = 50
#: Rounds of one job; the next run continues.
_ROUNDS_MAX = 10_000

#: A plan takes a snapshot of a read model and returns the events to append; their ids are deterministic.
Plan = Callable[[Snapshot], Sequence[EventDraft]]


def append_derived(context: JobContext, namespace: str, plan: Plan) -> int:
    """Append the events that `plan` derives from the current read model; return the number of new events.

    The append expects the version that the plan was made from. If only messages were appended in the meantime, the same
    events are appended after them. If other events were appended, such as a correction or the events of another worker,
    a new plan is made. So of two workers on the same job, one appends the events and the other appends none.
    """
    for _ in range(_PLANS_MAX):
        context.catch_up(namespace)
        with context.read_models.reading(namespace) as snapshot:
            version = snapshot.version
            drafts = with_quarantine(plan(snapshot))
        try:
            return _append(context, namespace, drafts, version)
        except (VersionConflict, EventIdConflict):
            continue
    return 0


def append_all_derived(context: JobContext, namespace: str, plan: Plan) -> int:
    """Call `append_derived` until no event is new or the process stops; return the number of new events.

    A plan covers a bounded part of the work, so that no snapshot of a read model stays open for long.
    """
    total = 0
    for _ in range(_ROUNDS_MAX):
        if context.stop.is_set():
            break
        new = append_derived(context, namespace, plan)
        if not new:
            break
        total += new
        context.pause()
    return total


def _append(context: JobContext, namespace: str, drafts: Sequence[EventDraft], version: int) -> int:
    """Append in batches, in order; return the number of new events. Raise a conflict that invalidates the plan."""
    new = 0
    for first in range(0, len(drafts), BATCH_EVENTS_MAX):
        appended = _append_batch(context, namespace, drafts[first : first + BATCH_EVENTS_MAX], version)
        new += sum(not event.duplicate for event in appended)
        version = max(version, *(event.version for event in appended))
    return new


def _append_batch(context: JobContext, namespace: str, batch: Sequence[EventDraft], version: int) -> Sequence[Appended]:
    """Append a batch after `version` and the messages that were appended since."""
    for _ in range(_APPENDS_MAX):
        try:
            return context.log.append(namespace, batch, expected_version=version)
        except Erased:
            # What was derived before an erasure is derived again from what is left, and needs an id of its own.
            suffix = f":{context.log.head(namespace).erasure_version}"
            if batch[0].id is None or batch[0].id.endswith(suffix):
                raise
            batch = [draft._replace(id=f"{draft.id}{suffix}") for draft in batch]
        except VersionConflict:
            newer = context.log.read(namespace, after=version, limit=BATCH_EVENTS_MAX)
            if not newer or any(event.type not in _HARMLESS for event in newer):
                raise
            version = newer[-1].version
    return context.log.append(namespace, batch, expected_version=version)
