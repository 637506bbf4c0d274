"""Overview routes: profile, map, moments, timeline and sizes of a namespace, and the messages behind a memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from fastapi import Depends, Query
from pydantic import AwareDatetime
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from recollect.api.assembly.read_model_access import reading
from recollect.api.http.routes.dependencies import AsOfText, Memory
from recollect.api.http.routes.json_bodies import json_response
from recollect.api.http.routes.query_parameters import refuse_unknown
from recollect.api.http.routes.rights import GuardedRouter, allow
from recollect.api.memory.recollect import Recollect
from recollect.api.pages.entity_map import ENTITIES_MAX, entity_map
from recollect.api.pages.message_sources import message_sources
from recollect.api.pages.moments import MOMENTS_MAX, PERIODS_MAX, list_moments, timeline
from recollect.api.pages.namespace_stats import namespace_stats
from recollect.api.pages.profile_page import STATEMENTS, STATEMENTS_MAX, profile_page
from recollect.events.envelope import microseconds, now_us
from recollect.events.limits import check_namespace
from recollect.projections.queries.snapshot import Snapshot

router = GuardedRouter(tags=["overview"], dependencies=[Depends(refuse_unknown)])


@router.get("/v1/namespaces/{namespace}/map", name="map")
@allow("read", cost=5)
async def read_map(
    memory: Memory,
    namespace: str,
    limit: Annotated[int, Query(ge=1, le=ENTITIES_MAX, description="entities, those that matter most")] = 1_000,
    as_of: AsOfText = None,
) -> Response:
    """Return the entities, and the relationships, facts and common messages that connect them."""
    return await _answer(memory, namespace, as_of, lambda snapshot: entity_map(snapshot, limit))


@router.get("/v1/namespaces/{namespace}/profile", name="profile")
@allow("read", cost=5)
async def read_profile(
    memory: Memory,
    namespace: str,
    limit: Annotated[int, Query(ge=1, le=STATEMENTS_MAX, description="statements, the newest ones")] = STATEMENTS,
    true_at: Annotated[AwareDatetime | None, Query(description="what was true then; now when absent")] = None,
    as_of: AsOfText = None,
) -> Response:
    """Return what is known about each person as sentences by topic, and the values that changed last."""
    true_at_us = None if true_at is None else microseconds(true_at)
    return await _answer(
        memory, namespace, as_of, lambda snapshot: profile_page(snapshot, limit, now_us=now_us(), true_at_us=true_at_us)
    )


@router.get("/v1/namespaces/{namespace}/timeline", name="timeline")
@allow("read")
async def read_timeline(
    memory: Memory,
    namespace: str,
    periods: Annotated[int, Query(ge=1, le=PERIODS_MAX)] = 60,
    as_of: AsOfText = None,
) -> Response:
    """Return the number of episodes of each tier in periods of equal length."""
    return await _answer(memory, namespace, as_of, lambda snapshot: timeline(snapshot, periods))


@router.get("/v1/namespaces/{namespace}/stats", name="stats")
@allow("read", audited=False)
async def read_stats(memory: Memory, namespace: str, as_of: AsOfText = None) -> Response:
    """Return how many episodes and memories the namespace holds, and the bytes of its files."""
    data = memory.parts.settings.storage.data
    return await _answer(memory, namespace, as_of, lambda snapshot: namespace_stats(snapshot, data, namespace))


@router.get("/v1/namespaces/{namespace}/memories/{memory_id:path}/sources", name="memory sources")
@allow("read")
async def list_memory_sources(memory: Memory, namespace: str, memory_id: str, as_of: AsOfText = None) -> Response:
    """List the messages that a memory was derived from, expired or not."""
    log = memory.parts.log
    return await _answer(
        memory, namespace, as_of, lambda snapshot: message_sources(snapshot, log, namespace, memory_id)
    )


@router.get("/v1/namespaces/{namespace}/moments", name="moments")
@allow("read", audited=False)
async def read_moments(
    memory: Memory, namespace: str, limit: Annotated[int, Query(ge=2, le=MOMENTS_MAX)] = 60
) -> Response:
    """List versions from the first to the last, with their times, to choose an `as_of` from."""
    log = memory.parts.log
    return json_response(await run_in_threadpool(list_moments, log, check_namespace(namespace), limit))


async def _answer(
    memory: Recollect, namespace: str, as_of: str | None, answer: Callable[[Snapshot], Mapping[str, Any]]
) -> Response:
    """Return what `answer` reads from the read model of the namespace."""

    def read() -> Mapping[str, Any]:
        with reading(memory.parts, namespace, as_of) as snapshot:
            return answer(snapshot)

    return json_response(await run_in_threadpool(read))
