"""Operation routes: health, metrics and readiness of the server."""

from __future__ import annotations

from fastapi import Request
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse, Response

from recollect.api.http.routes.dependencies import Memory
from recollect.api.http.routes.json_bodies import json_response
from recollect.api.http.routes.problems import error_response
from recollect.api.http.routes.rights import GuardedRouter, allow
from recollect.api.operations.health import health_report
from recollect.api.operations.metrics import prometheus_metrics
from recollect.events.errors import StorageError

router = GuardedRouter(tags=["operations"])


@router.get("/health")
@allow("read", extent="server")
async def health(memory: Memory, request: Request) -> Response:
    """Return the state of every part and its problems; 200 as long as the process answers."""
    report = await run_in_threadpool(health_report, memory.parts)
    return json_response({"version": request.app.version} | report)


@router.get("/metrics", response_class=PlainTextResponse)
@allow("read", extent="server")
async def metrics(memory: Memory) -> Response:
    """Return the state of the background work as gauges, in the text format of Prometheus."""
    return Response(await run_in_threadpool(prometheus_metrics, memory.parts), media_type=CONTENT_TYPE_LATEST)


@router.get("/ready")
@allow(extent="public")
async def ready(memory: Memory) -> Response:
    """Return whether requests can be served: 200, or 503 when the log cannot be read."""
    try:
        await run_in_threadpool(memory.parts.log.heads, limit=1)
    except StorageError as error:
        return error_response(error)
    parts = memory.parts
    return json_response({"ready": True, "embedding": parts.vectors.embedder.state, "log": parts.log.log_id})
