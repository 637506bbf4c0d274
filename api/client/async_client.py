"""Asynchronous client: the methods of `Client` for asyncio."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from typing import Any, Self, TypeVar

import httpx2

from recollect.api.client import page_calls
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
from recollect.api.client.followed_items import PAUSE_SECONDS, FollowedItems, is_stream, stream_options
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

    async def follow(
        self,
        namespace: str,
        *,
        after: int | None = None,
        types: Sequence[str] = (),
        knowledge: bool = False,
    ) -> AsyncGenerator[dict[str, Any]]:
        """Yield what `Client.follow` yields; errors come with the first item."""
        start = await self._send(page_calls.head(namespace)) if after is None else after
        followed = FollowedItems(namespace, start, types, knowledge=knowledge)
        while True:
            async with aclosing(await self._opened(followed.call())) as response:
                with suppress(httpx2.TransportError):
                    async for part in response.aiter_raw():
                        for item in followed.add(part):
                            yield item
            if self._http.is_closed:
                return
            await asyncio.sleep(PAUSE_SECONDS)

    async def _opened(self, call: Call[None]) -> httpx2.Response:
        """Send the request for a stream until the server accepts it; return the open response."""
        steps = exchange(call, self.url, self._limits)
        reply: Reply = None
        while True:
            step = steps.send(reply)
            if isinstance(step, RetryPause):
                await asyncio.sleep(step.seconds)
                reply = None
                continue
            self._check_open()
            try:
                request = self._http.build_request(**stream_options(step, self.url))
                response = await self._http.send(request, stream=True)
                if is_stream(response):
                    return response
                async with aclosing(response):
                    reply = await _read(step, response) if response.is_error else Body(step).answer(response)
            except httpx2.HTTPError as error:
                reply = error

    def _check_open(self) -> None:
        if self._http.is_closed:
            raise MemoryClosed("this client is closed; open another with recollect.AsyncClient")

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
        self._check_open()
        try:
            async with (
                asyncio.timeout(attempt.deadline - time.monotonic()),
                self._http.stream(**sent_options(attempt, self.url)) as response,
            ):
                return await _read(attempt, response)
        except httpx2.HTTPError as error:
            return error
        except TimeoutError:
            return httpx2.ReadTimeout("out of time")


async def _read(attempt: Attempt, response: httpx2.Response) -> HttpAnswer:
    """Return the answer of a response, within the limit of size."""
    body = Body(attempt)
    async for part in response.aiter_raw():
        body.add(part)
    return body.answer(response)
