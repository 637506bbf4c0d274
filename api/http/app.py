"""HTTP application: the routers over one memory, with errors as problem details and an OpenAPI description."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool

from recollect.api.http.openapi import describe
from recollect.api.http.routes import (
    erasure_routes,
    event_routes,
    memory_routes,
    operation_routes,
    page_routes,
    privacy_routes,
    retrieval_routes,
)
from recollect.api.http.routes.problems import answer_errors
from recollect.api.memory.recollect import Recollect


def create_app(memory: Recollect) -> FastAPI:
    """Return the application over `memory`. It closes the memory when the server stops."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        yield
        await run_in_threadpool(memory.close)

    app = FastAPI(
        title="Recollect",
        description="Long-term memory for chat bots and agents. Errors are problem details (RFC 9457).",
        version=version("recollect"),
        lifespan=lifespan,
    )
    app.state.memory = memory
    answer_errors(app)
    for routes in (
        event_routes,
        memory_routes,
        erasure_routes,
        retrieval_routes,
        page_routes,
        privacy_routes,
        operation_routes,
    ):
        app.include_router(routes.router)
    describe(app)
    return app
