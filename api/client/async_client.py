"""Asynchronous client: the methods of `Client` for asyncio."""

from __future__ import annotations

import asyncio
import time
from typing import Self, TypeVar

import httpx2

from recollect.api.client.async_client_lists import AsyncClientLists
from recollect.api.client.async_client_methods import AsyncClientMethods
from recollect.api.client.call import Call
from recollect.api.client.connection import (
    TIMEOUT_SECONDS,
    WORK_TIMEOUT_SECONDS,
    Body,
    checked_url,
    pool_options,
    sent_options,
)
from recollect.api.client.exchange import Attempt, HttpAnswer, Limits, Reply, RetryPause, exchange
from recollect.api.memory.turn import AsyncTurns
from recollect.events.errors import MemoryClosed

Result = TypeVar("Result")


class AsyncClient(AsyncClientLists, AsyncClientMethods, AsyncTurns):
    """The methods of `Client` as coroutines. Use it with ``async with``, or await `close`; within one event loop.

    Parameters are those of `Client`.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
        work_timeout_seconds: float = WORK_TIMEOUT_SECONDS,
        fails_open: bool = True,
    ) -> None:
        #: The address of the server.
        self.url = checked_url(url)
        self._limits = Limits(
            timeout_seconds=timeout_seconds, work_timeout_seconds=work_timeout_seconds, fails_open=fails_open
        )
        self._http = httpx2.AsyncClient(**pool_options(self.url, token))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncClient({self.url!r})"

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _send(self, call: Call[Result]) -> Result:
        """Send a call and return its result."""
        steps = exchange(call, self.url, self._limits)
        reply: Reply = None
        while True:
            try:
                step = steps.send(reply)
            except StopIteration as end:
                result: Result = end.value
                return result
            if isinstance(step, RetryPause):
                await asyncio.sleep(step.seconds)
                reply = None
            else:
                reply = await self._attempt(step)

    async def _attempt(self, attempt: Attempt) -> HttpAnswer | httpx2.HTTPError:
        """Send a request; return its answer, or the error of the transport."""
        if self._http.is_closed:
            raise MemoryClosed("this client is closed; open another with recollect.AsyncClient")
        try:
            async with (
                asyncio.timeout(attempt.deadline - time.monotonic()),
                self._http.stream(**sent_options(attempt, self.url)) as response,
            ):
                body = Body(attempt)
                async for part in response.aiter_raw():
                    body.add(part)
                return body.answer(response)
        except httpx2.HTTPError as error:
            return error
        except TimeoutError:
            return httpx2.ReadTimeout("out of time")
