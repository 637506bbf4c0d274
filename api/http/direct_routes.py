"""Direct routes: answers the routes that bots call for every message, without FastAPI's layers around a route.

They have the same rights, errors and answers. The search through all routers, and what wraps each handler, take as much
processor time as the append itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from starlette.requests import Request
from starlette.routing import compile_path
from starlette.types import ASGIApp, Receive, Scope, Send

from recollect.api.http.routes.problems import expected_error_response
from recollect.api.http.routes.rights import GuardedRouter, PlainEndpoint


class DirectRoutes:
    """ASGI middleware that answers the plain routes of `routers` itself; see `GuardedRouter.add_plain_route`."""

    def __init__(self, app: ASGIApp, *, routers: Sequence[GuardedRouter]) -> None:
        self._app = app
        plain = [route for router in routers for route in router.plain_routes]
        self._routes: list[tuple[str, re.Pattern[str], PlainEndpoint]] = [
            (method, compile_path(path)[0], endpoint) for path, method, endpoint in plain
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of a plain route; pass on all others."""
        if scope["type"] == "http":
            for method, pattern, endpoint in self._routes:
                if method == scope["method"] and (match := pattern.match(scope["path"])) is not None:
                    scope["path_params"] = match.groupdict()
                    await _answer(endpoint, scope, receive, send)
                    return
        await self._app(scope, receive, send)


async def _answer(endpoint: PlainEndpoint, scope: Scope, receive: Receive, send: Send) -> None:
    """Send the answer of an endpoint, or that of its error. Errors that are not expected are the server's."""
    request = Request(scope, receive, send)
    try:
        response = await endpoint(request)
    except Exception as error:
        expected = await expected_error_response(request, error)
        if expected is None:
            raise
        response = expected
    await response(scope, receive, send)
