"""Event stream: the events of a namespace, or what changes in its knowledge, as server-sent events.

The id of an event is its position, so a browser or a client that connects again goes on where it was: it sends the last
id as `Last-Event-ID`. https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import orjson
from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from recollect.api.http.bounded_protocol import STOPPING
from recollect.api.http.request_observer import ROUTE
from recollect.api.http.routes.rights import is_still_admitted
from recollect.api.http_contract import problem_fields
from recollect.api.memory.recollect import Recollect
from recollect.events.errors import InvalidInput, RecollectError, TooManyRequests, public_text
from recollect.jobs.following.feed import POLL_SECONDS, Feed
from recollect.jobs.following.follower import Follower

#: Followers of a process at a time: each looks for new events four times a second; 256 looks take some 5 % of a core.
FOLLOWERS_MAX = 64
#: Seconds after which a comment keeps the connection open; proxies close one that is silent for a minute. The rights of
#: the token are checked as often, so that one that was revoked ends.
HEARTBEAT_SECONDS = 15.0
#: Seconds in which a follower has to take what is sent.
_SEND_SECONDS_MAX = 60.0
#: Seconds after which a client may be connected, when there were too many.
_RETRY_SECONDS = 30
#: Parameters of a page that a stream does not have.
_PAGE_PARAMETERS = ("limit", "as_of")


async def event_stream(
    request: Request, memory: Recollect, namespace: str, *, after: int, types: Sequence[str], knowledge: bool
) -> StreamingResponse:
    """Return the events of a namespace after a position, and those that are added, as a response without an end.

    Parameters:
        after: the position before the first event, unless the header `Last-Event-ID` names a later one.

    Raises:
        InvalidInput: a parameter is wrong, or the log ends before the position.
    """
    for name in _PAGE_PARAMETERS:
        if name in request.query_params:
            raise InvalidInput("is for a page of the list; leave it out with follow=true", field=name)
    feed = Feed(memory.parts.log, memory.parts.read_models, namespace, types=types, knowledge=knowledge)
    position = _last_position(request, after)
    follower = await run_in_threadpool(Follower, feed, memory.parts.run_store, cursor=None, after=position)
    # Its duration is no latency: metrics show it as a route of its own.
    request.scope[ROUTE] = f"{request.scope[ROUTE]}?follow=true"
    return _EventStream(_frames(request, memory, follower), headers={"cache-control": "no-store"})


class _EventStream(StreamingResponse):
    """A response to one of at most `FOLLOWERS_MAX` followers."""

    media_type = "text/event-stream"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream, unless too many others are open."""
        state = scope["app"].state
        if state.followers >= FOLLOWERS_MAX:
            raise TooManyRequests(
                f"{FOLLOWERS_MAX} followers are connected, as many as a server process has; close one of them, or "
                "connect again later",
                retry_seconds=_RETRY_SECONDS,
            )

        async def send_in_time(message: Any) -> None:
            await asyncio.wait_for(send(message), _SEND_SECONDS_MAX)

        state.followers += 1
        try:
            await super().__call__(scope, receive, send_in_time)
        finally:
            state.followers -= 1


async def _frames(request: Request, memory: Recollect, follower: Follower) -> AsyncGenerator[bytes]:
    """Yield the events of the stream until the server stops or the caller may not read them any more."""
    stop = memory.parts.job_context.stop
    heartbeat_at = 0.0
    while not stop.is_set() and STOPPING not in request.scope:
        if time.monotonic() >= heartbeat_at:
            if not is_still_admitted(request):
                return
            heartbeat_at = time.monotonic() + HEARTBEAT_SECONDS
            yield b":\n\n"
        try:
            batch = await run_in_threadpool(follower.batch)
        except RecollectError as error:
            yield (
                b"event: error\ndata: "
                + orjson.dumps({"detail": public_text(error), **problem_fields(error)})
                + b"\n\n"
            )
            return
        if batch:
            yield b"".join(_frame(position, item) for position, item in batch)
            follower.move(batch[-1][0])
        else:
            await asyncio.sleep(POLL_SECONDS)


def _frame(position: int | None, item: dict[str, Any]) -> bytes:
    """Return an event of the stream; without a position it belongs to that of the next one."""
    id = b"" if position is None else b"id: %d\n" % position
    return id + b"data: " + orjson.dumps(item) + b"\n\n"


def _last_position(request: Request, after: int) -> int:
    """Return the position after which the stream begins."""
    last = request.headers.get("last-event-id")
    if last is None:
        return after
    if not last.isdecimal() or not last.isascii() or len(last) > 12:
        raise InvalidInput("is not the id of an event of this stream; leave it out", field="Last-Event-ID")
    return max(after, int(last))
