"""Page routes: the lists of a namespace, its entity graph, the sources of a summary, and the namespaces."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from recollect.api.http.routes.dependencies import AdmittedCaller, After, AsOfText, Limit, Memory
from recollect.api.http.routes.json_bodies import json_response
from recollect.api.http.routes.query_parameters import filter_parameters, read_filters, refuse_unknown
from recollect.api.http.routes.rights import GuardedRouter, allow
from recollect.api.pages.list_pages import PAGE_ITEMS
from recollect.api.pages.list_pages import list_namespaces as list_namespace_page
from recollect.projections.queries.page_queries import LISTS

router = GuardedRouter(tags=["lists"], dependencies=[Depends(refuse_unknown)])


@router.get("/v1/namespaces", name="namespaces")
@allow("read", extent="own")
async def list_namespaces(
    memory: Memory, caller: AdmittedCaller, after: After = "", limit: Limit = PAGE_ITEMS
) -> Response:
    """List the namespaces that the caller reaches with their heads, by name."""
    patterns = None if caller.covers_all else caller.patterns
    page = run_in_threadpool(list_namespace_page, memory.parts.log, after, limit, patterns)
    return json_response(await page)


@router.get("/v1/namespaces/{namespace}/episodes/{episode_id:path}/sources", name="sources")
@allow("read")
async def list_sources(memory: Memory, namespace: str, episode_id: str) -> Response:
    """List the original messages of a summary, expired or not."""
    sources = await run_in_threadpool(memory.sources, namespace, episode_id)
    return json_response({"items": [source.as_json() for source in sources], "next": None})


@router.get("/v1/namespaces/{namespace}/facts/{fact_id:path}/history", name="fact history")
@allow("read")
async def list_fact_history(memory: Memory, namespace: str, fact_id: str, as_of: AsOfText = None) -> Response:
    """List the values that held in turn with a fact, oldest first, each with its validity and status."""
    return json_response(await run_in_threadpool(memory.fact_history, namespace, fact_id, as_of=as_of))


@router.get("/v1/namespaces/{namespace}/preferences/{preference_id:path}/history", name="preference history")
@allow("read")
async def list_preference_history(
    memory: Memory, namespace: str, preference_id: str, as_of: AsOfText = None
) -> Response:
    """List the values that held in turn of a preference, oldest first, each with its validity and status."""
    return json_response(await run_in_threadpool(memory.preference_history, namespace, preference_id, as_of=as_of))


@router.get("/v1/namespaces/{namespace}/graph", name="graph")
@allow("read")
async def read_graph(
    memory: Memory,
    namespace: str,
    entity: Annotated[str, Query(min_length=1, max_length=200)],
    depth: int = 2,
    as_of: AsOfText = None,
) -> Response:
    """Return the entities and documents related to an entity within `depth` steps (1 to 5)."""
    return json_response(await run_in_threadpool(memory.graph, namespace, entity, depth=depth, as_of=as_of))


def _list_route(name: str) -> Callable[..., Awaitable[Response]]:
    """Return the route of the list `name`."""

    @allow("read")
    async def list_rows(
        memory: Memory,
        namespace: str,
        request: Request,
        after: After = "",
        limit: Limit = PAGE_ITEMS,
        as_of: AsOfText = None,
    ) -> Response:
        filters = read_filters(request)
        page = run_in_threadpool(memory.list, namespace, name, after=after, limit=limit, as_of=as_of, filters=filters)
        return json_response(await page)

    return list_rows


for _name in LISTS:
    router.add_api_route(
        f"/v1/namespaces/{{namespace}}/{_name}",
        _list_route(_name),
        name=_name,
        summary=f"List the {_name}",
        openapi_extra={"parameters": filter_parameters(_name)},
    )
