"""Limited calls: calls of a memory that a chat waits for, each for a limited time.

A call that is late goes on by itself, so that a message is recorded once the memory answers.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextvars import copy_context
from typing import Any, TypeVar

from recollect.events.errors import InvalidInput

Result = TypeVar("Result")

#: Seconds that a chat waits for its memory: a retrieval takes under one, and the first one waits for the model, which
#: loads in three.
WAIT_SECONDS = 5.0
#: Seconds of the first call of a memory that was just opened: its model loads in under one, on a busy machine in ten.
FIRST_WAIT_SECONDS = 20.0
#: Calls that are not answered yet. More than the requests that a bot has at once are those of a memory that hangs.
_CALLS_MAX = 256


class LimitedCalls:
    """Calls of a memory with a time limit. Safe to use from many threads.

    Parameters:
        timeout_seconds: seconds that a call is waited for.
        first_seconds: seconds that calls are waited for until one was answered, if these are more.

    Raises:
        InvalidInput: `timeout_seconds` is not over 0.
    """

    def __init__(self, timeout_seconds: float, *, first_seconds: float = 0) -> None:
        if not timeout_seconds > 0:
            raise InvalidInput("give a number of seconds over 0", field="timeout_seconds")
        self._seconds = timeout_seconds
        self._first_seconds = max(first_seconds, timeout_seconds)
        self._free = threading.Semaphore(_CALLS_MAX)
        self._tasks: set[asyncio.Task[Any]] = set()

    def run(self, call: Callable[[], Result]) -> Result:
        """Return the result of a call, which runs in a thread that the end of the process does not wait for.

        Raises:
            TimeoutError: it is not answered in time. The errors of the call.
        """
        self._begin()
        answered: Future[Result] = Future()
        context = copy_context()

        def work() -> None:
            try:
                answered.set_result(context.run(call))
            except BaseException as error:
                answered.set_exception(error)
            finally:
                self._free.release()

        threading.Thread(target=work, name="recollect-memory", daemon=True).start()
        try:
            result = answered.result(self._first_seconds)
        except TimeoutError:
            if answered.done():
                # An error of the memory itself.
                raise
            raise self._late() from None
        self._first_seconds = self._seconds
        return result

    async def run_async(self, call: Coroutine[Any, Any, Result]) -> Result:
        """Return the result of a coroutine, as `run` does; a task that is cancelled leaves it running."""
        try:
            self._begin()
        except TimeoutError:
            call.close()
            raise
        task = asyncio.ensure_future(call)
        self._tasks.add(task)
        task.add_done_callback(self._end)
        done, _ = await asyncio.wait([task], timeout=self._first_seconds)
        if not done:
            raise self._late()
        self._first_seconds = self._seconds
        return task.result()

    def _begin(self) -> None:
        if not self._free.acquire(blocking=False):
            raise TimeoutError(f"the memory has not answered {_CALLS_MAX} earlier calls")

    def _end(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        self._free.release()
        if not task.cancelled():
            # Read, so that asyncio does not log the error of a late call with its texts.
            task.exception()

    def _late(self) -> TimeoutError:
        return TimeoutError(f"the memory did not answer within {self._first_seconds:g} seconds")
