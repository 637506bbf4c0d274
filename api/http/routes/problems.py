"""Problems: errors over HTTP as problem details (RFC 9457)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from recollect.api.http.routes.route_hints import unknown_path
from recollect.api.http_contract import problem_fields
from recollect.events.errors import (
    AccessDenied,
    Conflict,
    DiskFull,
    Erased,
    ForeignHost,
    InvalidInput,
    NotFound,
    NotSupported,
    RecollectError,
    StorageError,
    TooLarge,
    TooManyBuilds,
    TooManyRequests,
    Unauthenticated,
    public_text,
    short_text,
)

_logger = logging.getLogger(__name__)

#: The status of each error class, subclasses before their bases.
_STATUS: tuple[tuple[type[RecollectError], int], ...] = (
    (TooLarge, 413),
    (NotFound, 404),
    (NotSupported, 501),
    (InvalidInput, 422),
    (Erased, 410),
    (Conflict, 409),
    (Unauthenticated, 401),
    (ForeignHost, 421),
    (TooManyRequests, 429),
    (AccessDenied, 403),
    (TooManyBuilds, 429),
    (DiskFull, 507),
    (StorageError, 503),
    (RecollectError, 500),
)


def problem(status: int, detail: str, /, **extra: Any) -> Response:
    """Return a problem response: `detail` tells the user what to do, `extra` are further fields."""
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail, **extra}
    return Response(orjson.dumps(body), status_code=status, media_type="application/problem+json")


def answer_errors(app: FastAPI) -> None:
    """Register handlers that answer every error with a problem."""
    for kind, handler in _HANDLERS:
        app.add_exception_handler(kind, handler)
    app.add_exception_handler(Exception, _internal_error)


async def expected_error_response(request: Request, error: Exception) -> Response | None:
    """Return the response of an error of a request; None for one that is the server's own."""
    handler = next((handler for kind, handler in _HANDLERS if isinstance(error, kind)), None)
    return None if handler is None else await handler(request, error)


def status_of(error: RecollectError) -> int:
    """Return the HTTP status of an error."""
    return next(status for kind, status in _STATUS if isinstance(error, kind))


def error_response(error: RecollectError) -> Response:
    """Return the problem response of an error. Errors of the disk are without their paths, which are the operator's."""
    response = problem(status_of(error), public_text(error), **problem_fields(error))
    if isinstance(error, Unauthenticated):
        response.headers["www-authenticate"] = "Bearer"
    if isinstance(error, TooManyRequests | TooManyBuilds):
        response.headers["retry-after"] = str(error.retry_seconds)
    return response


async def _recollect_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, RecollectError)
    if isinstance(error, StorageError):
        _logger.warning("a request failed: %s", short_text(error))
    return error_response(error)


async def _invalid_parameter(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first: dict[str, Any] = error.errors()[0]
    field = str(first["loc"][-1])
    return problem(422, f"{field}: {first['msg']}", error="InvalidInput", field=field)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail, headers = str(error.detail), {**(error.headers or {})}
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        # The methods of all routes of the path; the router names those of the first one.
        headers["allow"] = ", ".join(sorted(request.app.state.methods_of(request.scope)))
        detail = f"this path has no {request.method}; it has {headers['allow']}"
    elif error.status_code == HTTPStatus.NOT_FOUND:
        detail = unknown_path(request.url.path, request.app.state.described_routes)
    response = problem(error.status_code, detail)
    response.headers.update(headers)
    return response


async def _client_gone(_request: Request, _error: Exception) -> Response:
    # Clients hang up while they send; no answer reaches them, and the log needs no line.
    return problem(400, "the client hung up")


#: The handlers of errors that a request may have; of all others, `_internal_error`.
_HANDLERS: tuple[tuple[type[Exception], Callable[[Request, Exception], Awaitable[Response]]], ...] = (
    (RecollectError, _recollect_error),
    (RequestValidationError, _invalid_parameter),
    (HTTPException, _http_error),
    (ClientDisconnect, _client_gone),
)


async def _internal_error(request: Request, error: Exception) -> Response:
    # The template of the path: the path itself names the namespace.
    route = getattr(request.scope.get("route"), "path", "the request")
    _logger.error("%s %s failed", request.method, route, exc_info=error)
    return problem(500, "Internal error; the server's log has the details")
