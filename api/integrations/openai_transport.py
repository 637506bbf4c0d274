"""OpenAI transport: HTTP clients that add memories to requests and record replies, in place of the OpenAI client's own.

`create` and the other methods of the client stay as they are. The OpenAI client uses httpx2 from 3.0 on, and httpx
before: the classes of the module that the given client uses are taken.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import lru_cache
from typing import Any

from recollect.api.integrations.limited_calls import LimitedCalls
from recollect.api.integrations.model_exchange import (
    NAMESPACE_HEADER,
    SESSION_HEADER,
    Event,
    ModelExchange,
    ModelExchanges,
    failed,
)
from recollect.api.integrations.model_reply import ModelReply
from recollect.api.integrations.threaded_memory import asynchronous
from recollect.api.memory.memory_protocols import AsyncMemory, Recalled, SyncMemory
from recollect.api.retrieval.contract.options import AppendOptions

_logger = logging.getLogger(__name__)

#: Statuses with which a server refuses the content of a request.
_REFUSALS = (400, 413, 422)
#: The tasks that record replies; the event loop itself keeps no reference to a task.
_recording: set[asyncio.Future[None]] = set()
#: The attribute of a new HTTP client that holds the client it replaces.
_WRAPPED = "recollect_wrapped"


def memory_client(client: Any, memory: Any, exchanges: ModelExchanges, calls: LimitedCalls) -> Any:
    """Return an HTTP client that sends requests with memories through another one.

    Parameters:
        client: a client or an asynchronous client of httpx2 or httpx.
        memory: a `SyncMemory`; for an asynchronous client an `AsyncMemory` too.
        calls: limits the time of the memory's calls.
    """
    original = getattr(client, _WRAPPED, client)
    module = _http_module(original)
    is_async = isinstance(original, module.AsyncClient)
    called = asynchronous(memory) if is_async else memory
    transport = (_AsyncTransport if is_async else _SyncTransport)(module, original, called, exchanges, calls)
    new = (module.AsyncClient if is_async else module.Client)(
        transport=transport,
        headers=original.headers,
        cookies=original.cookies,
        params=original.params,
        timeout=original.timeout,
        trust_env=False,
    )
    setattr(new, _WRAPPED, original)
    return new


def _http_module(client: Any) -> Any:
    """Return the module of a client: httpx2 or httpx."""
    roots = (base.__module__.partition(".")[0] for base in type(client).__mro__)
    return importlib.import_module(next(root for root in roots if root in ("httpx", "httpx2")))


class _Transport:
    """The parts that both transports share. Requests go through the original client, with its proxies and hooks."""

    def __init__(self, module: Any, original: Any, memory: Any, exchanges: ModelExchanges, calls: LimitedCalls) -> None:
        self._module = module
        self._original = original
        self._memory = memory
        self._exchanges = exchanges
        self._calls = calls
        self._streams = _stream_classes(module)

    def _copied(self, request: Any, content: bytes) -> Any:
        """Return a request with another body, for a response that is not compressed, since it is read here."""
        headers = request.headers.copy()
        # The length is computed from the new content.
        headers.pop("content-length", None)
        headers["accept-encoding"] = "identity"
        return self._module.Request(
            request.method, request.url, headers=headers, content=content, extensions=request.extensions
        )

    def _is_for_model(self, request: Any) -> bool:
        return request.method == "POST" and request.url.path.endswith(("/chat/completions", "/responses"))

    def _named(self, request: Any) -> dict[str, str]:
        """Remove the headers for the memory from a request, and return them."""
        headers = {name: request.headers.get(name) for name in (NAMESPACE_HEADER, SESSION_HEADER)}
        for name in headers:
            request.headers.pop(name, None)
        return {name: value for name, value in headers.items() if value}

    def _response(self, response: Any, stream: Any) -> Any:
        return self._module.Response(
            response.status_code, headers=response.headers, stream=stream, extensions=response.extensions
        )


class _SyncTransport(_Transport):
    """The transport of a client."""

    _memory: SyncMemory

    def handle_request(self, request: Any) -> Any:
        """Send a request with its memories; record what was said."""
        headers = self._named(request)
        content = request.read() if self._is_for_model(request) else b""
        exchange = self._exchanges.begin(request.url.path, headers, content) if content else None
        if exchange is None:
            response = self._original.send(request, stream=True)
            return self._response(response, response.stream)
        body = self._exchanges.body(exchange, self._context(exchange))
        response = self._original.send(self._copied(request, body or content), stream=True)
        if body is not None and response.status_code in _REFUSALS:
            response.close()
            _logger.warning("the server refused a request with memories (status %d)", response.status_code)
            response = self._original.send(self._copied(request, content), stream=True)
        if not response.is_success or "content-encoding" in response.headers:
            return self._response(response, response.stream)
        reply = ModelReply(response.headers.get("content-type", ""))
        stream = self._streams[0](response.stream, reply, lambda: self._record(exchange, reply))
        return self._response(response, stream)

    def close(self) -> None:
        """Close the original client."""
        self._original.close()

    def __enter__(self) -> _SyncTransport:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _context(self, exchange: ModelExchange) -> str:
        cached = self._exchanges.cached_context(exchange)
        if cached is not None:
            return cached
        try:
            return self._exchanges.keep(exchange, self._calls.run(lambda: self._recalled(exchange)))
        except Exception as error:
            failed(error)
            return ""

    def _recalled(self, exchange: ModelExchange) -> Recalled | None:
        """Record what the user newly said; return the memories for it."""
        if exchange.events:
            return self._memory.append_and_retrieve(exchange.namespace, exchange.events, **exchange.options)[1]
        return self._memory.retrieve(exchange.namespace, exchange.query, **_passive(exchange.options))

    def _record(self, exchange: ModelExchange, reply: ModelReply) -> None:
        try:
            events = self._exchanges.reply_events(exchange, reply.text())
            if events:
                self._calls.run(lambda: self._memory.append(exchange.namespace, events))
        except Exception as error:
            failed(error)


class _AsyncTransport(_Transport):
    """The transport of an asynchronous client."""

    _memory: AsyncMemory

    async def handle_async_request(self, request: Any) -> Any:
        """Send a request with its memories; record what was said."""
        headers = self._named(request)
        content = await request.aread() if self._is_for_model(request) else b""
        exchange = self._exchanges.begin(request.url.path, headers, content) if content else None
        if exchange is None:
            response = await self._original.send(request, stream=True)
            return self._response(response, response.stream)
        body = self._exchanges.body(exchange, await self._context(exchange))
        response = await self._original.send(self._copied(request, body or content), stream=True)
        if body is not None and response.status_code in _REFUSALS:
            await response.aclose()
            _logger.warning("the server refused a request with memories (status %d)", response.status_code)
            response = await self._original.send(self._copied(request, content), stream=True)
        if not response.is_success or "content-encoding" in response.headers:
            return self._response(response, response.stream)
        reply = ModelReply(response.headers.get("content-type", ""))
        stream = self._streams[1](response.stream, reply, lambda: self._record(exchange, reply))
        return self._response(response, stream)

    async def aclose(self) -> None:
        """Close the original client."""
        await self._original.aclose()

    async def __aenter__(self) -> _AsyncTransport:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _context(self, exchange: ModelExchange) -> str:
        cached = self._exchanges.cached_context(exchange)
        if cached is not None:
            return cached
        try:
            return self._exchanges.keep(exchange, await self._calls.run_async(self._recalled(exchange)))
        except Exception as error:
            failed(error)
            return ""

    async def _recalled(self, exchange: ModelExchange) -> Recalled | None:
        """Record what the user newly said; return the memories for it."""
        if exchange.events:
            return (await self._memory.append_and_retrieve(exchange.namespace, exchange.events, **exchange.options))[1]
        return await self._memory.retrieve(exchange.namespace, exchange.query, **_passive(exchange.options))

    async def _append(self, namespace: str, events: Sequence[Event]) -> None:
        await self._memory.append(namespace, events)

    async def _record(self, exchange: ModelExchange, reply: ModelReply) -> None:
        try:
            events = self._exchanges.reply_events(exchange, reply.text())
            if events:
                await self._calls.run_async(self._append(exchange.namespace, events))
        except Exception as error:
            failed(error)


class _SyncStream:
    """The bytes of a response, which are read on the way.

    The reply is recorded in `close`, which the OpenAI client calls at `[DONE]`, before the last byte, and a bot whose
    user stops the answer calls earlier: then the reply is what was shown.
    """

    def __init__(self, stream: Any, reply: ModelReply, on_close: Any) -> None:
        self._stream = stream
        self._reply = reply
        self._on_close = on_close

    def __iter__(self) -> Iterator[bytes]:
        for data in self._stream:
            self._reply.feed(data)
            yield data

    def close(self) -> None:
        """Close the response and record the reply, once."""
        on_close, self._on_close = self._on_close, None
        try:
            self._stream.close()
        finally:
            if on_close is not None:
                on_close()


class _AsyncStream:
    """As `_SyncStream`, of an asynchronous response."""

    def __init__(self, stream: Any, reply: ModelReply, on_close: Any) -> None:
        self._stream = stream
        self._reply = reply
        self._on_close = on_close

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for data in self._stream:
            self._reply.feed(data)
            yield data

    async def aclose(self) -> None:
        """Close the response and record the reply, once."""
        on_close, self._on_close = self._on_close, None
        try:
            await self._stream.aclose()
        finally:
            if on_close is not None:
                # A task of its own: a server cancels the task of a request whose user goes away.
                task = asyncio.ensure_future(on_close())
                _recording.add(task)
                task.add_done_callback(_recording.discard)
                await asyncio.shield(task)


def _passive(options: AppendOptions) -> AppendOptions:
    """Return the options of a retrieval for a request without a message to record."""
    return AppendOptions(mode="passive") | options


@lru_cache(2)
def _stream_classes(module: Any) -> tuple[Any, Any]:
    """Return the classes of streams; the clients of a module accept only subclasses of its own."""
    return (
        type("RecordedStream", (_SyncStream, module.SyncByteStream), {}),
        type("AsyncRecordedStream", (_AsyncStream, module.AsyncByteStream), {}),
    )
