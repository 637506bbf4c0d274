"""Many read models rebuilt side by side: a process for each core, a namespace at a time in each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

from recollect.events.envelope import Head
from recollect.events.errors import RecollectError
from recollect.events.progress import OnProgress
from recollect.events.storage.process_pool import SPAWN, process_pool
from recollect.projections.read_models.read_models import ReadModels, ReplayCheck

#: How often progress is reported.
_REPORT_SECONDS = 0.2

RebuildMode = Literal["replay", "check"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildResult:
    """What became of one namespace."""

    namespace: str
    #: The version that the new read model is at; 0 when it failed.
    version: int
    #: The comparison, when that was the work.
    check: ReplayCheck | None = None
    #: Why it failed; the live read model goes on serving.
    error: str | None = None


def rebuild_all(
    heads: Sequence[Head],
    read_models: ReadModels,
    *,
    open_models: Callable[[], ReadModels],
    work: RebuildMode = "replay",
    processes: int = 1,
    on_progress: OnProgress | None = None,
) -> Iterator[RebuildResult]:
    """Replay or check the namespaces of `heads` and yield what became of each as it is done.

    One that fails keeps no other from being rebuilt.

    Parameters:
        models: the read models in this process.
        open_models: opens them, and the log under them, in another process; it must be picklable.
        processes: how many at once; 1 works in this one.
    """
    total = sum(head.version for head in heads)
    # The largest first: otherwise it may begin last and be waited for alone.
    names = [head.namespace for head in sorted(heads, key=lambda head: -head.version)]
    if processes == 1 or len(names) < 2:
        yield from _one_after_the_other(names, read_models, work, total, on_progress)
        return
    folded: Any = SPAWN.Value("q", 0)
    with process_pool(min(processes, len(names)), partial(_begin, open_models, folded), _end) as pool:
        pending = {pool.submit(_work_in_process, (name, work)) for name in names}
        while pending:
            done, pending = wait(pending, _REPORT_SECONDS, FIRST_COMPLETED)
            if on_progress is not None:
                on_progress(min(folded.value, total), total)
            for future in done:
                yield future.result()


def _one_after_the_other(
    names: Sequence[str], read_models: ReadModels, work: RebuildMode, total: int, on_progress: OnProgress | None
) -> Iterator[RebuildResult]:
    folded = 0

    def count(events: int) -> None:
        nonlocal folded
        folded += events
        if on_progress is not None:
            on_progress(min(folded, total), total)

    for name in names:
        yield _worked(read_models, name, work, count)


class _Process(NamedTuple):
    """What a worker process works with."""

    models: ReadModels
    #: Called with the events folded since the last call.
    add_folded: Callable[[int], None]


def _begin(open_models: Callable[[], ReadModels], folded: Any) -> _Process:
    def count(events: int) -> None:
        with folded.get_lock():
            folded.value += events

    return _Process(open_models(), count)


def _end(process: _Process) -> None:
    process.models.close()
    process.models.log.close()


def _work_in_process(process: _Process, task: tuple[str, RebuildMode]) -> RebuildResult:
    namespace, work = task
    return _worked(process.models, namespace, work, process.add_folded)


def _worked(read_models: ReadModels, namespace: str, work: RebuildMode, count: Callable[[int], None]) -> RebuildResult:
    """Do the work on one namespace."""
    before = 0
    reported = time.monotonic()

    def on_progress(done: int, total: int) -> None:
        nonlocal before, reported
        if done == total or time.monotonic() > reported + _REPORT_SECONDS:
            count(done - before)
            before, reported = done, time.monotonic()

    try:
        if work == "replay":
            return RebuildResult(namespace=namespace, version=read_models.replay(namespace, on_progress=on_progress))
        check = read_models.check(namespace, on_progress=on_progress)
        return RebuildResult(namespace=namespace, version=check.version, check=check)
    except RecollectError as error:
        return RebuildResult(namespace=namespace, version=0, error=str(error))
