"""Client: the memory of a remote server, as a Python object."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from typing import Any, Self, TypeVar

import httpx2

from recollect.api.client import page_calls
from recollect.api.client.call import Call
from recollect.api.client.client_lists import ClientLists
from recollect.api.client.client_methods import ClientMethods
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
from recollect.api.memory.turn import Turns
from recollect.events.errors import MemoryClosed

Result = TypeVar("Result")


class Client(ClientLists, ClientMethods, Turns):
    """The memory of a remote server. Safe to use from many threads; use it with ``with``, or call `close`.

    It has the methods of `Recollect`, with the same parameters, results and errors. After a failure that may pass, a
    call is sent again, with pauses that grow; appended events have their ids before, so that none is recorded twice.

    >>> with Client("http://127.0.0.1:8787", token) as memory:
    ...     memory.add("ann", "I love tea")
    ...     print(memory.retrieve("ann", "what does she drink?").context)

    Parameters:
        url: the address of the server, such as ``https://memory.example.org``.
        token: a token of `recollect token create`; None for a server of this machine without tokens.
        timeout_seconds: the time of a call with all its attempts.
        work_timeout_seconds: the time of a call that works on a whole namespace: `compact`, `settle`, `erase`,
            `export_subject`, `replay`, `check`, `verify`, and lists of the past.
        fails_open: whether a retrieval without an answer in time has an empty result, with the reason in `degraded`.
            False: it raises `ServerUnavailable`.

    Raises:
        InvalidInput: the address, the token or a time is wrong. No connection is made before the first call.
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
        self._http = httpx2.Client(**pool_options(self.url, token))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def follow(
        self,
        namespace: str,
        *,
        after: int | None = None,
        types: Sequence[str] = (),
        knowledge: bool = False,
    ) -> Iterator[dict[str, Any]]:
        """Yield what `Recollect.follow` yields, from the server, until the client is closed.

        A connection that breaks is made again after the last item that was handled; so each item comes at least once,
        in order. The server stores no position: keep `version` of the last event, or `position` of the last change,
        and give it as `after`; of changes with `knowledge` several may have one position, so give `position - 1`.

        Raises:
            ServerUnavailable: the server is not reached again within the time of a call. The other errors are those of
            `Recollect.follow`.
        """
        start = self._send(page_calls.head(namespace)) if after is None else after
        return self._followed(FollowedItems(namespace, start, types, knowledge=knowledge))

    def _followed(self, followed: FollowedItems) -> Iterator[dict[str, Any]]:
        while True:
            with closing(self._opened(followed.call())) as response, suppress(httpx2.TransportError):
                for part in response.iter_raw():
                    yield from followed.add(part)
            if self._http.is_closed:
                return
            time.sleep(PAUSE_SECONDS)

    def _opened(self, call: Call[None]) -> httpx2.Response:
        """Send the request for a stream until the server accepts it; return the open response."""
        steps = exchange(call, self.url, self._limits)
        reply: Reply = None
        while True:
            step = steps.send(reply)
            if isinstance(step, RetryPause):
                time.sleep(step.seconds)
                reply = None
                continue
            self._check_open()
            try:
                request = self._http.build_request(**stream_options(step, self.url))
                response = self._http.send(request, stream=True)
                if is_stream(response):
                    return response
                with closing(response):
                    reply = _read(step, response) if response.is_error else Body(step).answer(response)
            except httpx2.HTTPError as error:
                reply = error

    def _check_open(self) -> None:
        if self._http.is_closed:
            raise MemoryClosed("this client is closed; open another with recollect.Client")

    def _send(self, call: Call[Result]) -> Result:
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
                time.sleep(step.seconds)
                reply = None
            else:
                reply = self._attempt(step)

    def _attempt(self, attempt: Attempt) -> HttpAnswer | httpx2.HTTPError:
        """Send a request; return its answer, or the error of the transport."""
        self._check_open()
        try:
            with self._http.stream(**sent_options(attempt, self.url)) as response:
                return _read(attempt, response)
        except httpx2.HTTPError as error:
            return error


def _read(attempt: Attempt, response: httpx2.Response) -> HttpAnswer:
    """Return the answer of a response, within the limits of time and size."""
    body = Body(attempt)
    for part in response.iter_raw():
        body.add(part)
    return body.answer(response)
