"""Rights: which scopes each route needs, declared at the route, and checked before the route reads anything.

A router of the application is a `GuardedRouter`. It refuses, at import, a route without `@allow`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from recollect.api.access import callers
from recollect.api.access.access_control import AccessControl, Arrival
from recollect.api.access.callers import Caller, Extent, Right
from recollect.api.http.request_observer import ROUTE
from recollect.api.http.routes.problems import status_of
from recollect.events.errors import RecollectError, TooManyRequests, Unauthenticated
from recollect.jobs.derivation.request_activity import RequestActivity

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
#: The content type of a response without an end.
_STREAM = b"text/event-stream; charset=utf-8"
PlainEndpoint = Callable[[Request], Awaitable[Response]]

#: The keys of a request's scope: its caller, the number of items in its answer, whether it returns memories by way of
#: exception, and the right of its route.
_CALLER = "recollect.caller"
_COUNT = "recollect.count"
_IS_READ = "recollect.is_read"
_ROUTE_RIGHT = "recollect.right"
_RIGHT = "__recollect_right__"


def allow(
    *scopes: callers.Scope, extent: Extent = "namespace", cost: int = 1, audited: bool = True, live: bool = False
) -> Callable[[Endpoint], Endpoint]:
    """Declare the right that a route needs; the decorator goes below the router's.

    Parameters:
        scopes: the scopes that the caller must have, all of them.
        extent: what the route is about; see `callers.Extent`.
        cost: how many requests it counts as in the rate of the caller.
        audited: whether each call is a line of the audit log. Calls that return no memories, and those that come with
            every message, are not: they would push the others out.
        live: whether a user waits for the answer; see `jobs.derivation.request_activity`.
    """
    right = Right(scopes=frozenset(scopes), extent=extent, cost=cost, is_audited=audited, is_live=live)

    def declare(endpoint: Endpoint) -> Endpoint:
        setattr(endpoint, _RIGHT, right)
        return endpoint

    return declare


def caller_of(request: HTTPConnection) -> Caller:
    """Return the caller that was admitted.

    Raises:
        Unauthenticated: the request came past the rights of its route, which is an error of the program.
    """
    caller: Caller | None = request.scope.get(_CALLER)
    if caller is None:
        raise Unauthenticated("this route has no declared right, so it answers no request")
    return caller


def is_still_admitted(request: HTTPConnection) -> bool:
    """Return whether the caller of a request that takes long would be admitted again."""
    access: AccessControl = request.app.state.access
    right: Right = request.scope[_ROUTE_RIGHT]
    arrival = _arrival(request.scope)
    try:
        access.check_scopes(access.authenticate(arrival, right), arrival, right)
    except RecollectError:
        return False
    return True


def note_read(request: HTTPConnection, items: int) -> None:
    """Have a line of the audit log about this request: it returns memories, as not every call of its route does."""
    request.scope[_COUNT], request.scope[_IS_READ] = items, True


class CountedResponse(Response):
    """A response that says how many items it holds, for the audit log.

    Parameters:
        count: the number of items; None where nothing is counted.
    """

    def __init__(self, content: bytes, *, status_code: int, media_type: str, count: int | None) -> None:
        super().__init__(content, status_code=status_code, media_type=media_type)
        self._count = count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        scope[_COUNT] = self._count
        await super().__call__(scope, receive, send)


class GuardedRoute(APIRoute):
    """A route that admits a request before its parameters are read."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        self.right = right_of(endpoint)
        super().__init__(path, endpoint, **options)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Admit the request, answer it, and audit it. Other methods than the route's are refused by the router."""
        if scope["method"] not in self.methods:
            await super().handle(scope, receive, send)
            return
        async with _Guard(self.right, self.path_format, scope, send) as guard:
            await super().handle(scope, receive, guard.send)


class GuardedRouter(APIRouter):
    """A router whose routes all declare their right."""

    def __init__(self, **options: Any) -> None:
        super().__init__(route_class=GuardedRoute, **options)
        #: The rights of all routes, by method and template of the path.
        self.rights: dict[tuple[str, str], Right] = {}
        #: The plain routes with their rights: path, method and handler.
        self.plain_routes: list[tuple[str, str, PlainEndpoint]] = []

    def add_api_route(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        """Add a route of FastAPI, and its right."""
        super().add_api_route(path, endpoint, **options)
        self._declare(path, options.get("methods") or ("GET",), endpoint)

    def add_plain_route(self, path: str, endpoint: PlainEndpoint, method: str) -> None:
        """Add a route without FastAPI's handling of parameters, and its right."""
        right = self._declare(path, (method,), endpoint)

        async def guarded(request: Request) -> Response:
            # The path's template as in FastAPI's routes: without a convertor.
            async with _Guard(right, path, request.scope, None) as guard:
                response = await endpoint(request)
                guard.status = response.status_code
                return response

        self.add_route(path, guarded, methods=[method])
        self.plain_routes.append((path, method, guarded))

    def _declare(self, path: str, methods: Any, endpoint: Callable[..., Any]) -> Right:
        right = right_of(endpoint)
        for method in methods:
            self.rights[method, path.replace(":path}", "}")] = right
        return right


def right_of(endpoint: Callable[..., Any]) -> Right:
    """Return the right that an endpoint declares; raise `TypeError` when it declares none."""
    right: Right | None = getattr(endpoint, _RIGHT, None)
    if right is None:
        raise TypeError(f"the route {endpoint.__qualname__} declares no right; add @allow(...) under its router")
    return right


class _Guard:
    """The admission of one request; it audits the request at its end."""

    def __init__(self, right: Right, path: str, scope: Scope, send: Send | None) -> None:
        self.status = 200
        self._right, self._path, self._scope, self._send = right, path, scope, send
        self._access: AccessControl = scope["app"].state.access
        self._arrival = _arrival(scope)
        self._caller: Caller | None = None
        self._is_recorded = False
        self._request_activity: RequestActivity | None = scope["app"].state.request_activity if right.is_live else None

    async def __aenter__(self) -> _Guard:
        self._scope[ROUTE] = self._path
        try:
            self._caller = self._access.authenticate(self._arrival, self._right)
            self._access.check(self._caller, self._arrival, self._right)
        except RecollectError as error:
            # Lines about requests over a rate would push all others out of the audit log.
            if not isinstance(error, TooManyRequests):
                self._record(status_of(error))
            raise
        self._scope[_CALLER], self._scope[_ROUTE_RIGHT] = self._caller, self._right
        if self._request_activity is not None:
            self._request_activity.begin()
        return self

    async def __aexit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        if self._request_activity is not None:
            self._request_activity.end()
        if isinstance(error, RecollectError):
            self.status = status_of(error)
        elif error is not None:
            self.status = 500
        is_audited = self._right.is_audited or self._scope.get(_IS_READ) or self.status in (401, 403)
        if is_audited and not self._is_recorded:
            self._record(self.status)

    async def send(self, message: Message) -> None:
        """Send a message of the response, and remember its status."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            if self._right.is_audited and (b"content-type", _STREAM) in message["headers"]:
                # Its end may be days away, or a kill of the server.
                self._record(self.status)
                self._is_recorded = True
        assert self._send is not None
        await self._send(message)

    def _record(self, status: int) -> None:
        route = f"{self._scope['method']} {self._path}"
        count: int | None = self._scope.get(_COUNT)
        self._access.record(self._caller, self._right, self._arrival, route=route, status=status, count=count)


def _arrival(scope: Scope) -> Arrival:
    """Return what the access control has to know of a request."""
    headers = dict(reversed(scope["headers"]))
    authorization: bytes | None = headers.get(b"authorization")
    client: tuple[str, int] | None = scope.get("client")
    namespace: str | None = scope["path_params"].get("namespace")
    return Arrival(
        authorization=None if authorization is None else authorization.decode("latin-1"),
        peer=None if client is None else client[0],
        is_forwarded=b"x-forwarded-for" in headers or b"forwarded" in headers,
        namespace=namespace,
    )


def declared_rights(routers: Iterator[GuardedRouter] | tuple[GuardedRouter, ...]) -> dict[tuple[str, str], Right]:
    """Return the rights of the routes of `routers`, by method and template of the path."""
    return {key: right for router in routers for key, right in router.rights.items()}
