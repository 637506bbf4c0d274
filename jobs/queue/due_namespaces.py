"""Due namespaces: finds the namespaces in which a scheduled job has work, without opening the others.

One page of heads and one of recorded states are compared at a time: 100,000 idle namespaces take about a second.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from recollect.events.envelope import Head
from recollect.events.storage.namespace_folder import folder_name
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.queue.registry import scheduled_jobs
from recollect.jobs.queue.run_store import Finished, RunStore

#: Namespaces in one batch of a scheduled run. A kill costs at most one batch, which is processed again.
BATCH_NAMESPACES = 20
#: Heads compared at a time.
_PAGE_HEADS = 1_000
#: Heads that one message compares: 50 ms, after which other messages of the queue are served.
_SCAN_HEADS_MAX = 10_000


class Batch(Struct, frozen=True, kw_only=True):
    """The next namespaces of a scheduled run."""

    #: The heads of the namespaces with work.
    due: Sequence[Head]
    #: The last namespace that was compared; None when there is none after the given one.
    last: str | None


def next_batch(context: JobContext, run_store: RunStore, job: str, at_us: int, after: str) -> Batch:
    """Return the namespaces after `after` in which `job` has work at `at_us`, at most `BATCH_NAMESPACES`.

    Raises:
        StorageError: the log cannot be read.
    """
    scheduled = scheduled_jobs()[job]
    basis = scheduled.basis(context)
    due: list[Head] = []
    last: str | None = None
    for _ in range(_SCAN_HEADS_MAX // _PAGE_HEADS):
        page = context.log.heads(after=last or after, limit=_PAGE_HEADS)
        concerned = [head for head in page if scheduled.concerns(context, head)]
        keys = {head.namespace: folder_name(head.namespace) for head in concerned}
        finished = run_store.finished(job, list(keys.values()))
        for head in concerned:
            state = finished.get(keys[head.namespace])
            if state is None or not state.is_idle(head.version, basis, at_us):
                due.append(head)
                if len(due) == BATCH_NAMESPACES:
                    return Batch(due=due, last=head.namespace)
        last = page[-1].namespace if page else last
        if len(page) < _PAGE_HEADS:
            break
    return Batch(due=due, last=last)


def finished_state(context: JobContext, job: str, head: Head, events: int, at_us: int) -> Finished | None:
    """Return the state of a namespace after `job` has run in it; None when it has to run again in the next run.

    Parameters:
        head: of the namespace before the job.
        events: number of events that the job appended. With others, there are events that it may not have read.
    """
    scheduled = scheduled_jobs()[job]
    version = context.log.head(head.namespace).version
    if version != head.version + events or context.stop.is_set():
        return None
    due_us = scheduled.due_us(context, head.namespace, at_us)
    key = folder_name(head.namespace)
    return Finished(namespace_key=key, version=version, basis=scheduled.basis(context), due_us=due_us)
