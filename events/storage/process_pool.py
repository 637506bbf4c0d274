"""Process pools: work on several cores, with one state in each process, opened once."""

from __future__ import annotations

import atexit
import multiprocessing
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

State = TypeVar("State")
Item = TypeVar("Item")
Result = TypeVar("Result")

#: How processes start: spawned, not forked, since a fork of a process with threads may hang.
SPAWN = multiprocessing.get_context("spawn")

#: The state of this process, when it is one of a pool.
_states: list[Any] = []


class ProcessPool(Generic[State]):
    """Processes that work on items, each with its own state; see `process_pool`."""

    def __init__(self, executor: ProcessPoolExecutor) -> None:
        self._executor = executor

    def submit(self, work: Callable[[State, Item], Result], item: Item) -> Future[Result]:
        """Start `work(state, item)` in the next free process. Function, item and result must be picklable."""
        return self._executor.submit(_run_work, work, item)

    def map(self, work: Callable[[State, Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yield what `work(state, item)` returns for each of `items`, in their order."""
        for future in [self.submit(work, item) for item in items]:
            yield future.result()


@contextmanager
def process_pool(
    processes: int, open_state: Callable[[], State], close_state: Callable[[State], None]
) -> Generator[ProcessPool[State]]:
    """Lend a pool of `processes`, which end with the context.

    Parameters:
        open_state: called once in each process before its first item; it must be picklable.
        close_state: called with the state when the process ends; it must be picklable.
    """
    with ProcessPoolExecutor(
        processes, mp_context=SPAWN, initializer=_initialise, initargs=(open_state, close_state)
    ) as executor:
        yield ProcessPool(executor)


def _initialise(open_state: Callable[[], Any], close_state: Callable[[Any], None]) -> None:
    state = open_state()
    _states.append(state)
    atexit.register(close_state, state)


def _run_work(work: Callable[[Any, Any], Result], item: Any) -> Result:
    return work(_states[0], item)
