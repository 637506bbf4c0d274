"""Process pools: run functions in several processes, each with a state that is opened once.

The processes end with the process that began them, also when it is killed: each waits for the end of a pipe that the
parent holds open. `PR_SET_PDEATHSIG` of Linux is not used, because it is sent when the parent's *thread* ends.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import wait
from typing import Any, Generic, TypeVar

State = TypeVar("State")
Item = TypeVar("Item")
Result = TypeVar("Result")

#: Processes are spawned, not forked, since a fork of a process with threads may hang.
SPAWN = multiprocessing.get_context("spawn")

#: The state of this process, when it belongs to a pool.
_states: list[Any] = []


class ProcessPool(Generic[State]):
    """A pool of processes, each with its own state; see `process_pool`."""

    def __init__(self, executor: ProcessPoolExecutor) -> None:
        self._executor = executor

    def submit(self, work: Callable[[State, Item], Result], item: Item) -> Future[Result]:
        """Run `work(state, item)` in the next free process. The function, the item and the result must be picklable."""
        return self._executor.submit(_run_work, work, item)

    def map(self, work: Callable[[State, Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yield the result of `work(state, item)` for each of `items`, in their order."""
        for future in [self.submit(work, item) for item in items]:
            yield future.result()


@contextmanager
def process_pool(
    processes: int, open_state: Callable[[], State], close_state: Callable[[State], None]
) -> Generator[ProcessPool[State]]:
    """Lend a pool of `processes`, which end when the context exits.

    Parameters:
        open_state: called once in each process before its first item; it must be picklable.
        close_state: called with the state when the process ends; it must be picklable.
    """
    with ProcessPoolExecutor(
        processes, mp_context=SPAWN, initializer=_initialise, initargs=(open_state, close_state)
    ) as executor:
        yield ProcessPool(executor)


def _initialise(open_state: Callable[[], Any], close_state: Callable[[Any], None]) -> None:
    """Open the state of this process and register its closing at exit; end with the parent process."""
    threading.Thread(target=_end_with_parent, name="recollect-parent-watch", daemon=True).start()
    state = open_state()
    _states.append(state)
    atexit.register(close_state, state)


def _end_with_parent() -> None:
    """Wait for the end of the parent process, then end this one at once: nothing waits for its results any more."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    # The files are safe against a kill, and a normal exit would wait for the work in progress.
    os._exit(1)


def _run_work(work: Callable[[Any, Any], Result], item: Any) -> Result:
    """Return `work(state, item)` with the state of this process."""
    return work(_states[0], item)
