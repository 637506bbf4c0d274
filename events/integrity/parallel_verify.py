"""Parallel verification: verifies all namespaces of a log in several processes, since hashing is bound by the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from recollect.events.backends.log import EventLog
from recollect.events.envelope import Head
from recollect.events.integrity.anchor import Anchor
from recollect.events.integrity.verify import PROBLEMS_MAX, VerifyResult, verify
from recollect.events.progress import OnProgress
from recollect.events.storage.process_pool import process_pool

#: Events in one task: about 0.3 s of work, so that progress is reported often and processes finish together.
TASK_EVENTS = 50_000


class _Span(NamedTuple):
    """A part of a chain: the versions over `after` up to `until`."""

    namespace: str
    after: int
    #: None for the last part, which ends at the head.
    until: int | None
    #: Number of events in the part.
    events: int


_Task = list[_Span]


def verify_all(
    log: EventLog,
    heads: Iterable[Head],
    *,
    open_log: Callable[[], EventLog],
    processes: int = 1,
    anchor: Anchor | None = None,
    task_events: int = TASK_EVENTS,
    on_progress: OnProgress | None = None,
) -> Iterator[VerifyResult]:
    """Yield the result for the namespace of each of `heads`, in their order; parts of a long chain run in parallel.

    Parameters:
        open_log: opens the log in another process; it must be picklable.
        processes: number of processes; 1 verifies in this process.
        anchor: an anchor of the log to compare with. A namespace that only the anchor has gets a result too.
        task_events: events in one task.
        on_progress: called with (events checked, total events).
    """
    all_heads = list(heads)
    total = sum(head.version for head in all_heads)
    tasks = list(_tasks(all_heads, task_events))
    events_done = 0
    parts: list[VerifyResult] = []
    for task, results in zip(tasks, _run(log, tasks, open_log, processes), strict=True):
        for span, result in zip(task, results, strict=True):
            events_done += span.events
            parts.append(result)
            if span.until is None:
                yield _joined_result(parts, log, anchor)
                parts = []
        if on_progress is not None:
            on_progress(events_done, total)
    listed = {head.namespace for head in all_heads}
    for name in sorted(anchor.heads.keys() - listed) if anchor else ():
        yield _joined_result([verify(log, name)], log, anchor)


def _tasks(heads: list[Head], task_events: int) -> Iterator[_Task]:
    """Yield tasks of about `task_events`: a long chain is split, short chains are combined."""
    task: _Task = []
    events = 0
    for head in heads:
        for after in range(0, max(head.version, 1), task_events):
            last = after + task_events >= head.version
            span = _Span(
                head.namespace, after, None if last else after + task_events, min(task_events, head.version - after)
            )
            task.append(span)
            events += span.events
            if events >= task_events:
                yield task
                task, events = [], 0
    if task:
        yield task


def _run(
    log: EventLog, tasks: list[_Task], open_log: Callable[[], EventLog], processes: int
) -> Iterator[list[VerifyResult]]:
    """Yield the results of each task, computed in this process or in a pool."""
    if processes == 1 or len(tasks) < 2:
        yield from (_verify_task(log, task) for task in tasks)
        return
    with process_pool(min(processes, len(tasks)), open_log, _close) as pool:
        yield from pool.map(_verify_task, tasks)


def _close(log: EventLog) -> None:
    """Close the log of a process; a function of the module, so that it is picklable."""
    log.close()


def _verify_task(log: EventLog, task: _Task) -> list[VerifyResult]:
    """Return the result for each span of `task`."""
    return [verify(log, span.namespace, after=span.after, until=span.until) for span in task]


def _joined_result(parts: list[VerifyResult], log: EventLog, anchor: Anchor | None) -> VerifyResult:
    """Return the result for a whole chain, joined from its `parts` and compared with the anchor."""
    problems = [problem for part in parts for problem in part.problems]
    end = parts[-1]
    anchor_problem = None if anchor is None else anchor.find_problem(log, end.namespace)
    if anchor_problem is not None:
        problems.append(anchor_problem)
    return VerifyResult(
        namespace=end.namespace, version=end.version, hash=end.hash, problems=tuple(problems[:PROBLEMS_MAX])
    )
