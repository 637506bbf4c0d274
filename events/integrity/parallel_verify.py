"""Verify all namespaces of a log, in several processes: a walk is nothing but arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from recollect.events.backends.log import EventLog
from recollect.events.envelope import Head
from recollect.events.integrity.anchor import Anchor
from recollect.events.integrity.verify import PROBLEMS_MAX, VerifyResult, verify
from recollect.events.progress import OnProgress
from recollect.events.storage.process_pool import process_pool

#: Events in one task: about a third of a second, so that progress moves and processes end together.
TASK_EVENTS = 50_000


class _Span(NamedTuple):
    """A part of a chain: versions over `after` up to `until`; the last part has no end but the head."""

    namespace: str
    after: int
    until: int | None
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
    """Yield the verdict on each of `heads`' namespaces, in their order; a long chain is walked in parts side by side.

    Parameters:
        open_log: opens the log in another process; it must be picklable.
        processes: how many at once; 1 works in this one.
        anchor: heads kept elsewhere, compared as well. A namespace that only the anchor knows gets a verdict too.
        task_events: events in one task.
        on_progress: called with (events checked, events in all).
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
    """Cut the chains into tasks of about `task_events`: long chains into parts, short ones together."""
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
    if processes == 1 or len(tasks) < 2:
        yield from (_verify_task(log, task) for task in tasks)
        return
    with process_pool(min(processes, len(tasks)), open_log, _close) as pool:
        yield from pool.map(_verify_task, tasks)


def _close(log: EventLog) -> None:
    log.close()


def _verify_task(log: EventLog, task: _Task) -> list[VerifyResult]:
    return [verify(log, span.namespace, after=span.after, until=span.until) for span in task]


def _joined_result(parts: list[VerifyResult], log: EventLog, anchor: Anchor | None) -> VerifyResult:
    """Return the verdict on a whole chain."""
    problems = [problem for part in parts for problem in part.problems]
    end = parts[-1]
    anchor_problem = None if anchor is None else anchor.find_problem(log, end.namespace)
    if anchor_problem is not None:
        problems.append(anchor_problem)
    return VerifyResult(
        namespace=end.namespace, version=end.version, hash=end.hash, problems=tuple(problems[:PROBLEMS_MAX])
    )
