"""HTTP application: the routers over one memory, with errors as problem details and an OpenAPI description."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.routing import Match, Route
from starlette.types import Scope

from recollect.api.access.access_control import AccessControl, new_local_secret
from recollect.api.access.audit_log import AuditLog
from recollect.api.access.rate_limits import RateLimits, RateMemory
from recollect.api.access.token_store import TokenStore
from recollect.api.http.direct_routes import DirectRoutes
from recollect.api.http.openapi import describe, operation_id
from recollect.api.http.origin_guard import OriginGuard
from recollect.api.http.request_observer import RequestObserver
from recollect.api.http.routes import (
    description_routes,
    erasure_routes,
    event_routes,
    failure_routes,
    mcp_routes,
    memory_routes,
    operation_routes,
    overview_routes,
    page_routes,
    privacy_routes,
    retrieval_routes,
    tool_routes,
    viewer_routes,
    work_routes,
)
from recollect.api.http.routes.problems import answer_errors
from recollect.api.http.routes.rights import GuardedRouter
from recollect.api.memory.recollect import Recollect
from recollect.api.operations.state_monitor import StateMonitor
from recollect.api.settings import Settings

#: The routers of the application, in the order in which they are asked for a path.
ROUTERS: tuple[GuardedRouter, ...] = tuple(
    routes.router
    for routes in (
        event_routes,
        # Before the memory routes, whose path of an id includes `/sources`.
        overview_routes,
        memory_routes,
        erasure_routes,
        retrieval_routes,
        page_routes,
        privacy_routes,
        work_routes,
        operation_routes,
        mcp_routes,
        tool_routes,
        failure_routes,
        description_routes,
        viewer_routes,
    )
)


def create_app(
    memory: Recollect, *, rates: RateMemory | None = None, local_secret: str | None = None, scans: bool = True
) -> FastAPI:
    """Return the application over `memory`. It closes the memory when the server stops.

    Parameters:
        rates: where several processes of a server count requests; None: this process is the only one.
        local_secret: the secret of the commands of the data folder; a new one when None.
        scans: whether this process compares all namespaces with the log, for /health and /metrics.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        app.state.monitor.start()
        yield
        await run_in_threadpool(app.state.monitor.stop)
        await run_in_threadpool(memory.close)

    app = FastAPI(
        title="Recollect",
        description="Long-term memory for chat bots and agents. Errors are problem details (RFC 9457).",
        version=version("recollect"),
        lifespan=lifespan,
        # `description_routes` has these routes, with a right.
        openapi_url=None,
        # A path with a slash too many, or without an id, is answered with the routes that are meant.
        redirect_slashes=False,
        generate_unique_id_function=operation_id,
        # Its spans have paths, and so the names of namespaces, and the texts of errors; ours have neither.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    settings = memory.parts.settings
    app.state.memory = memory
    app.state.request_activity = memory.parts.job_context.request_activity
    app.state.monitor = StateMonitor(memory.parts, scans=scans)
    app.state.access = open_access(settings, rates=rates, local_secret=local_secret)
    #: The open event streams.
    app.state.followers = 0
    #: Of several processes of a server; see `processes/server_process.py`.
    app.state.processes = app.state.process_metrics = None
    app.state.methods_of = _methods_of
    app.state.described_routes = [key for router in ROUTERS if router.include_in_schema for key in router.rights]
    # The last one that is added is the first one to get a request.
    app.add_middleware(DirectRoutes, routers=ROUTERS)
    app.add_middleware(OriginGuard, host=settings.server.host, allowed_hosts=settings.access.host_names)
    app.add_middleware(RequestObserver)
    answer_errors(app)
    for router in ROUTERS:
        app.include_router(router)
    describe(app, ROUTERS)
    return app


def _methods_of(scope: Scope) -> set[str]:
    """Return the methods that the path of a request has."""
    routes = [route for router in ROUTERS for route in router.routes if isinstance(route, Route)]
    path = next((route.path for route in routes if route.matches(scope)[0] != Match.NONE), None)
    return {method for route in routes if route.path == path for method in route.methods or ()}


def open_access(
    settings: Settings, *, rates: RateMemory | None = None, local_secret: str | None = None
) -> AccessControl:
    """Return the access control of a server with `settings`; see `create_app`."""
    access = settings.access
    return AccessControl(
        tokens=TokenStore(settings.tokens_path),
        rates=RateLimits(access.requests_per_minute, access.denials_per_minute, memory=rates),
        audit=AuditLog(settings.storage.data / "audit", settings.storage.key_options, bytes_max=access.audit_bytes_max),
        local_secret=local_secret or new_local_secret(),
    )
