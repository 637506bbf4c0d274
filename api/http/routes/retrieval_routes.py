"""Retrieval routes: retrieve, the traces of retrievals, and the window of a conversation."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, ConfigDict
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from recollect.api.http.routes.dependencies import After, Limit, Memory
from recollect.api.http.routes.json_bodies import body_reference, json_response, parse_body
from recollect.api.http.routes.query_parameters import refuse_unknown
from recollect.api.memory.recollect import Recollect
from recollect.api.pages.list_pages import PAGE_ITEMS
from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.events.limits import check_namespace

router = APIRouter(tags=["retrieval"], dependencies=[Depends(refuse_unknown)])

Wait = Annotated[bool, Query(description="wait for the embedding model while it loads, and embed new messages first")]


class WindowRequest(BaseModel):
    """The budget that a conversation is fitted to."""

    model_config = ConfigDict(extra="forbid")

    #: Tokens of all messages together.
    budget_tokens: int


@router.post("/v1/namespaces/{namespace}/retrieve", openapi_extra=body_reference("RetrieveRequest"))
async def retrieve(memory: Memory, namespace: str, request: Request, wait: Wait = False) -> Response:
    """Return the memories for a query: items, best first, and a context to put into the prompt."""
    check_namespace(namespace)
    body = await parse_body(RetrieveRequest, request)
    result = await run_in_threadpool(memory.retrieve, namespace, body, wait=wait)
    return json_response(result.as_json())


@router.post("/v1/namespaces/{namespace}/settle", name="settle")
async def settle(memory: Memory, namespace: str) -> Response:
    """Complete the background work on a namespace: catch up, extract, observe, embed. The answer comes after it."""
    return json_response({"version": await run_in_threadpool(_settled_version, memory, namespace)})


@router.get("/v1/namespaces/{namespace}/traces", name="traces")
async def list_traces(memory: Memory, namespace: str, after: After = "", limit: Limit = PAGE_ITEMS) -> Response:
    """List the latest retrievals, newest first."""
    return json_response(await run_in_threadpool(memory.traces, namespace, after=after, limit=limit))


@router.get("/v1/namespaces/{namespace}/traces/{trace_id}", name="trace")
async def read_trace(memory: Memory, namespace: str, trace_id: str) -> Response:
    """Explain a retrieval: what was understood, candidates, features, gate, budget, what was dropped and why."""
    return json_response(await run_in_threadpool(memory.trace, namespace, trace_id))


@router.post(
    "/v1/namespaces/{namespace}/sessions/{session_id:path}/window",
    name="window",
    openapi_extra=body_reference("WindowRequest"),
)
async def fit_window(memory: Memory, namespace: str, session_id: str, request: Request) -> Response:
    """Fit a running conversation to a token budget; when it is nearly full its oldest turns are summarised."""
    check_namespace(namespace)
    budget_tokens = (await parse_body(WindowRequest, request)).budget_tokens
    window = await run_in_threadpool(memory.window, namespace, session_id, budget_tokens=budget_tokens)
    return json_response(window._asdict() | {"budget_tokens": budget_tokens})


def _settled_version(memory: Recollect, namespace: str) -> int:
    """Settle the namespace and return the version of its head."""
    memory.settle(namespace)
    return memory.parts.log.head(namespace).version
