"""Failure routes: list what the background work could not do; requeue dead letters, retry or skip a parked event."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from recollect.api.http.routes.dependencies import Memory
from recollect.api.http.routes.json_bodies import body_reference, json_response, parse_body
from recollect.api.http.routes.problems import problem
from recollect.api.http.routes.query_parameters import refuse_unknown
from recollect.api.http.routes.rights import GuardedRouter, allow
from recollect.api.operations.dead_letters import list_dead_letters, requeue_dead_letters
from recollect.api.operations.failures import list_failures, retry_parked, skip_parked
from recollect.api.operations.state_monitor import StateMonitor
from recollect.events.catalogue import Text

router = GuardedRouter(tags=["operations"], dependencies=[Depends(refuse_unknown)])


class SkipBody(BaseModel):
    """The event to leave out, and why."""

    model_config = ConfigDict(extra="forbid")

    #: The version at which the namespace is parked.
    version: Annotated[int, Field(ge=1)]
    #: It is recorded in the log.
    reason: Text


@router.get("/v1/failures", name="failures")
@allow("read", extent="server")
async def read_failures(memory: Memory, request: Request) -> Response:
    """Return the namespaces that are parked, with the event and its error, the dead letters, and the lag."""
    monitor: StateMonitor = request.app.state.monitor
    state = await monitor.latest()
    if state is None:
        return problem(503, "the first check of the parts is not done yet; ask again in a second")
    return json_response(await run_in_threadpool(list_failures, memory.parts, state.background))


@router.post("/v1/namespaces/{namespace}/retry", name="retry")
@allow("admin", cost=10)
async def retry(memory: Memory, namespace: str) -> Response:
    """Project a parked namespace again from the event at which it is parked; return how far it is."""
    return json_response(await run_in_threadpool(retry_parked, memory.parts, namespace))


@router.post("/v1/namespaces/{namespace}/skip", name="skip", openapi_extra=body_reference("SkipBody"))
@allow("admin", cost=10)
async def skip(memory: Memory, namespace: str, request: Request) -> Response:
    """Leave out the event at which a namespace is parked, with a reason in the log, and go on after it."""
    body = await parse_body(SkipBody, request)
    return json_response(await run_in_threadpool(skip_parked, memory.parts, namespace, body.version, body.reason))


@router.get("/v1/dead-letters", name="dead letters")
@allow("read", extent="server")
async def read_dead_letters(memory: Memory) -> Response:
    """List the messages of the background work that failed at every attempt, oldest first."""
    return json_response(await run_in_threadpool(list_dead_letters, memory.parts))


@router.post("/v1/dead-letters/requeue", name="requeue all")
@allow("admin", extent="server", cost=10)
async def requeue_all(memory: Memory) -> Response:
    """Requeue all dead letters; return how many, and which ones failed again."""
    return json_response(await run_in_threadpool(requeue_dead_letters, memory.parts, None))


@router.post("/v1/dead-letters/{letter_id}/requeue", name="requeue")
@allow("admin", extent="server", cost=10)
async def requeue_one(memory: Memory, letter_id: str) -> Response:
    """Requeue a dead letter; return how many, and whether it failed again."""
    return json_response(await run_in_threadpool(requeue_dead_letters, memory.parts, letter_id))
