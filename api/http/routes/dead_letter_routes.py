"""Dead letter routes: list the failed messages of the background work, and requeue them."""

from __future__ import annotations

from fastapi import Depends
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from recollect.api.http.routes.dependencies import Memory
from recollect.api.http.routes.json_bodies import json_response
from recollect.api.http.routes.query_parameters import refuse_unknown
from recollect.api.http.routes.rights import GuardedRouter, allow
from recollect.api.operations.dead_letters import list_dead_letters, requeue_dead_letters

router = GuardedRouter(tags=["operations"], dependencies=[Depends(refuse_unknown)])


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
