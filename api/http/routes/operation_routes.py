"""Operation routes: health, liveness, readiness and metrics of the server.

They answer in 100 ms from the last check of the state monitor, also while the log or the broker hangs.
"""

from __future__ import annotations

import time

from fastapi import Request
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse, Response

from recollect.api.http.processes.process_metrics import ProcessMetrics
from recollect.api.http.processes.process_table import ProcessTable
from recollect.api.http.routes.dependencies import Limit, Memory
from recollect.api.http.routes.json_bodies import json_response
from recollect.api.http.routes.problems import problem
from recollect.api.http.routes.rights import GuardedRouter, allow
from recollect.api.operations.metrics import prometheus_metrics
from recollect.api.operations.readiness import readiness
from recollect.api.operations.state_monitor import StateMonitor
from recollect.api.pages.list_pages import PAGE_ITEMS
from recollect.events.envelope import now_us
from recollect.jobs.queue.backlog import backlog_report

router = GuardedRouter(tags=["operations"])


def _monitor(request: Request) -> StateMonitor:
    monitor: StateMonitor = request.app.state.monitor
    return monitor


@router.get("/health")
@allow("read", extent="server", audited=False)
async def health(request: Request) -> Response:
    """Return the state of every part and its problems; 200 as long as the process answers."""
    monitor = _monitor(request)
    state = await monitor.latest()
    if state is None:
        return problem(503, "the first check of the parts is not done yet; ask again in a second")
    report = state.report
    overdue = monitor.overdue()
    if overdue is not None:
        waits = f"the {overdue[0]} has not answered for {overdue[1]:.0f} s, and this is the state before"
        report = report | {"status": "degraded", "problems": [waits, *report["problems"]]}
    processes: ProcessTable | None = request.app.state.processes
    if processes is not None:
        problems = [*report["problems"], *processes.problems()]
        report = report | {
            "status": "degraded" if problems else "ok",
            "problems": problems,
            "servers": processes.as_json(),
        }
    age_seconds = round(time.monotonic() - state.checked_at, 3)
    return json_response({"version": request.app.version} | report | {"age_seconds": age_seconds})


@router.get("/v1/health/lag", name="lag")
@allow("read", extent="server", audited=False)
async def lag(request: Request, limit: Limit = PAGE_ITEMS) -> Response:
    """List the namespaces whose read models, vectors or extraction are behind the log, the oldest first."""
    state = await _monitor(request).latest()
    if state is None:
        return problem(503, "the first check of the parts is not done yet; ask again in a second")
    return json_response(backlog_report(state.background.scan, now_us(), limit))


@router.get("/health/live")
@allow(extent="public", audited=False)
async def live(memory: Memory) -> Response:
    """Return 200 as long as the process answers; nothing is read."""
    return json_response({"live": True, "log": memory.parts.log.log_id})


@router.get("/health/ready")
@allow(extent="public", audited=False)
async def ready(memory: Memory, request: Request) -> Response:
    """Return whether requests can be served: 200, or 503 with the reasons why not."""
    monitor = _monitor(request)
    await monitor.first()
    answer = readiness(memory.parts, monitor)
    return json_response(answer, status=200 if answer["ready"] else 503)


@router.get("/metrics", response_class=PlainTextResponse)
@allow("read", extent="server", audited=False)
async def metrics(memory: Memory, request: Request) -> Response:
    """Return the metrics of the server, and the state of the background work, in the text format of Prometheus.

    Those of several server processes have the label `process`.
    """
    state = await _monitor(request).latest()
    processes: ProcessMetrics | None = request.app.state.process_metrics
    counted = None if processes is None else await run_in_threadpool(lambda: [*processes.collect()])
    return Response(prometheus_metrics(memory.parts, state, counted), media_type=CONTENT_TYPE_LATEST)
