"""A server that stops: what uvicorn cancels is answered as a request to send again, and not as a fault."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest
from starlette.types import Message, Receive, Scope, Send

from recollect.api.http.request_observer import RequestObserver

_SCOPE: Scope = {"type": "http", "method": "POST", "path": "/v1/namespaces/a/erase", "headers": []}


def _cancelled(begun: bool) -> list[Message]:
    """Return what a request sends that is cancelled while it waits, before or after its answer begins."""
    sent: list[Message] = []

    async def app(_: Scope, __: Receive, send: Send) -> None:
        if begun:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.sleep(60)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    async def stop() -> None:
        task = asyncio.create_task(RequestObserver(app)(_SCOPE, receive, send))
        await asyncio.sleep(0)
        task.cancel()
        await task

    if begun:
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(stop())
    else:
        asyncio.run(stop())
    return sent


def test_a_request_that_the_stop_cancels_is_answered_with_503() -> None:
    start, body = _cancelled(begun=False)
    assert start["status"] == 503
    assert "send it again" in orjson.loads(body["body"])["detail"]


def test_an_answer_that_has_begun_is_broken_off() -> None:
    assert [message["type"] for message in _cancelled(begun=True)] == ["http.response.start"]
