"""Parallel rebuild: replays or checks many namespaces in worker processes, one namespace at a time in each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from functools import partial
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from recollect.events.envelope import Head
from recollect.events.errors import RecollectError
from recollect.events.progress import OnProgress
from recollect.events.storage.process_pool import SPAWN, process_pool
from recollect.projections.read_models.read_models import ReadModels
from recollect.projections.read_models.replays import ReplayCheck

#: Interval between two reports of progress.
_REPORT_SECONDS = 0.2

RebuildMode = Literal["replay", "park", "check"]


class RebuildResult(Struct, frozen=True, kw_only=True):
    """The result of rebuilding one namespace."""

    namespace: str
    #: Checkpoint of the new read model; 0 when the rebuild failed.
    version: int
    #: The comparison with the live read model, when `work` was ``check``.
    check: ReplayCheck | None = None
    #: The message of the error; the live read model stays in use. None when the rebuild succeeded.
    error: str | None = None


def rebuild_all(
    heads: Sequence[Head],
    read_models: ReadModels,
    *,
    open_read_models: Callable[[], ReadModels],
    mode: RebuildMode = "replay",
    processes: int = 1,
    on_progress: OnProgress | None = None,
) -> Iterator[RebuildResult]:
    """Replay or check the namespaces of `heads`; yield each result when it is complete.

    A namespace that fails does not stop the others.

    Parameters:
        read_models: the read models in this process.
        open_models: opens the read models and their log in another process; it must be picklable.
        work: ``replay`` to replace the live read models, ``park`` to do so up to the first event that cannot be
            projected, ``check`` to compare them with a replay.
        processes: worker processes; 1 rebuilds in this process.
        on_progress: called with (events projected, events in all).
    """
    total = sum(head.version for head in heads)
    # The largest first: if it began last, the other processes would idle until it ends.
    names = [head.namespace for head in sorted(heads, key=lambda head: -head.version)]
    if processes == 1 or len(names) < 2:
        yield from _rebuild_in_sequence(names, read_models, mode, total, on_progress)
        return
    projected: Any = SPAWN.Value("q", 0)
    with process_pool(
        min(processes, len(names)), partial(_start_process, open_read_models, projected), _end_process
    ) as pool:
        pending = {pool.submit(_rebuild_in_process, (name, mode)) for name in names}
        while pending:
            done, pending = wait(pending, _REPORT_SECONDS, FIRST_COMPLETED)
            if on_progress is not None:
                on_progress(min(projected.value, total), total)
            for future in done:
                yield future.result()


def _rebuild_in_sequence(
    names: Sequence[str], read_models: ReadModels, work: RebuildMode, total: int, on_progress: OnProgress | None
) -> Iterator[RebuildResult]:
    projected = 0

    def count(events: int) -> None:
        nonlocal projected
        projected += events
        if on_progress is not None:
            on_progress(min(projected, total), total)

    for name in names:
        yield _rebuild(read_models, name, work, count)


class _WorkerProcess(NamedTuple):
    """The state of a worker process."""

    read_models: ReadModels
    #: Called with the events projected since the last call.
    add_projected: Callable[[int], None]


def _start_process(open_models: Callable[[], ReadModels], projected: Any) -> _WorkerProcess:
    def count(events: int) -> None:
        with projected.get_lock():
            projected.value += events

    return _WorkerProcess(open_models(), count)


def _end_process(process: _WorkerProcess) -> None:
    process.read_models.close()
    process.read_models.log.close()


def _rebuild_in_process(process: _WorkerProcess, task: tuple[str, RebuildMode]) -> RebuildResult:
    namespace, work = task
    return _rebuild(process.read_models, namespace, work, process.add_projected)


def _rebuild(read_models: ReadModels, namespace: str, work: RebuildMode, count: Callable[[int], None]) -> RebuildResult:
    """Replay or check one namespace; an error becomes part of the result."""
    before = 0
    reported = time.monotonic()

    def on_progress(done: int, total: int) -> None:
        nonlocal before, reported
        if done == total or time.monotonic() > reported + _REPORT_SECONDS:
            count(done - before)
            before, reported = done, time.monotonic()

    try:
        if work != "check":
            version = read_models.replay(namespace, parks=work == "park", on_progress=on_progress)
            return RebuildResult(namespace=namespace, version=version)
        check = read_models.check(namespace, on_progress=on_progress)
        return RebuildResult(namespace=namespace, version=check.version, check=check)
    except RecollectError as error:
        return RebuildResult(namespace=namespace, version=0, error=str(error))
