"""Request observer: gives each request an id, counts and times it, traces it, and logs it when it fails.

The id is that of the header `X-Request-Id` when it is a plain one, and a new one otherwise; the answer repeats it.
Paths are shown by the template of their route, since they name namespaces.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from typing import Any

import uuid_utils
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.api.http.routes.problems import problem
from recollect.events.instruments import Counter, Histogram
from recollect.events.late_pattern import late_pattern
from recollect.events.log_context import Value, log_context
from recollect.events.tracing import current_trace_id, hidden_namespace, is_tracing, span

_logger = logging.getLogger(__name__)

#: The key of a request's scope with the template of its route.
ROUTE = "recollect.route"
#: The route of requests that no route answers.
_UNMATCHED = "unmatched"
#: Methods that are counted by their name; a client may send any word.
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
#: Ids that go into the log and the answer as they are: those of usual proxies and programs have 20 to 36 characters.
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_STOPPING = "the server is stopping, and may or may not have carried this out; send it again"
_TRACE_PARENT = late_pattern(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")

_REQUESTS = Counter("recollect_http_requests", "Requests answered", ("method", "route", "status"))
_SECONDS = Histogram("recollect_http_request_duration_seconds", "Time of a request", ("method", "route"))


class RequestObserver:
    """ASGI middleware around all others."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and observe it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with log_context({"request_id": _request_id(scope)}) as fields:
            if is_tracing():
                await self._traced(scope, receive, send, fields)
            else:
                await self._observed(scope, receive, send, fields)

    async def _traced(self, scope: Scope, receive: Receive, send: Send, fields: dict[str, Value]) -> None:
        """Answer a request within a span, which continues the trace of the caller's `traceparent`."""
        from opentelemetry.trace import SpanKind  # noqa: PLC0415

        with span("request", kind=SpanKind.SERVER, context=_parent(scope)) as current:
            trace_id = current_trace_id()
            if trace_id is not None:
                fields["trace_id"] = trace_id
            status = await self._observed(scope, receive, send, fields)
            current.rename(f"{_method(scope)} {_route(scope)}")
            current.set("http.request.method", _method(scope))
            current.set("http.route", _route(scope))
            current.set("http.response.status_code", status)

    async def _observed(self, scope: Scope, receive: Receive, send: Send, fields: dict[str, Value]) -> int:
        """Answer a request with its id in the answer; return the status."""
        started = time.perf_counter()
        status, is_begun = 500, False
        request_id = str(fields["request_id"]).encode()

        async def send_with_id(message: Message) -> None:
            nonlocal status, is_begun
            if message["type"] == "http.response.start":
                status, is_begun = message["status"], True
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", request_id)]
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except asyncio.CancelledError:
            # A server that stops cancels what it could not answer in time; its threads may go on to their end.
            if is_begun:
                raise
            await problem(503, _STOPPING)(scope, receive, send_with_id)
        finally:
            seconds = time.perf_counter() - started
            method, route = _method(scope), _route(scope)
            _REQUESTS.add(method, route, str(status))
            _SECONDS.observe(seconds, method, route)
            if status >= 500 or _logger.isEnabledFor(logging.DEBUG):
                self._log(scope, fields, status, seconds)
        return status

    def _log(self, scope: Scope, fields: dict[str, Value], status: int, seconds: float) -> None:
        """Write the line of a request."""
        namespace: Any = scope.get("path_params", {}).get("namespace")
        if isinstance(namespace, str):
            fields["namespace"] = hidden_namespace(namespace)
        level = logging.WARNING if status >= 500 else logging.DEBUG
        _logger.log(level, "%s %s: %d in %.1f ms", _method(scope), _route(scope), status, seconds * 1_000)


def _request_id(scope: Scope) -> str:
    """Return the id that the client gave, if it is a plain one, or a new one."""
    given = [value for name, value in scope["headers"] if name == b"x-request-id"]
    if len(given) == 1 and _REQUEST_ID.fullmatch(given[0]):
        return given[0].decode("ascii")
    return uuid_utils.uuid7().hex


def _parent(scope: Scope) -> Any:
    """Return the context of the caller's span; None without a valid header."""
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

    given = [value.decode("latin-1") for name, value in scope["headers"] if name == b"traceparent"]
    if len(given) != 1 or not _TRACE_PARENT.fullmatch(given[0]):
        return None
    return TraceContextTextMapPropagator().extract({"traceparent": given[0]})


def _method(scope: Scope) -> str:
    return scope["method"] if scope["method"] in _METHODS else "other"


def _route(scope: Scope) -> str:
    """Return the template of the path; that of FastAPI where no `GuardedRouter` has set one."""
    return scope.get(ROUTE) or getattr(scope.get("route"), "path", None) or _UNMATCHED
