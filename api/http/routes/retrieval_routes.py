"""Retrieval routes: retrieve, the traces of retrievals, and the window of a conversation."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import Depends, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from recollect.api.access.callers import Caller
from recollect.api.http.routes.dependencies import AdmittedCaller, After, Limit, Memory, require_also
from recollect.api.http.routes.json_bodies import body_reference, json_response, parse_body
from recollect.api.http.routes.query_parameters import refuse_unknown
from recollect.api.http.routes.rights import GuardedRouter, allow
from recollect.api.memory.recollect import WINDOW_TOKENS_MAX, WINDOW_TOKENS_MIN, Recollect
from recollect.api.pages.list_pages import PAGE_ITEMS
from recollect.api.result_types import Page
from recollect.api.retrieval.answer.trace_store import list_traces as list_traces_of
from recollect.api.retrieval.answer.trace_store import searched_namespaces, unknown_trace
from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.events.limits import check_namespace

#: Retrievals at a time, as many as anyio has threads for all other requests.
_RETRIEVAL_THREADS = 40

router = GuardedRouter(tags=["retrieval"], dependencies=[Depends(refuse_unknown)])

Wait = Annotated[bool, Query(description="wait for the embedding model while it loads, and embed new messages first")]


class WindowRequest(BaseModel):
    """The budget that a conversation is fitted to."""

    model_config = ConfigDict(extra="forbid")

    #: Tokens of all messages together.
    budget_tokens: Annotated[int, Field(json_schema_extra={"minimum": WINDOW_TOKENS_MIN, "maximum": WINDOW_TOKENS_MAX})]


@router.post("/v1/namespaces/{namespace}/retrieve", openapi_extra=body_reference("RetrieveRequest"))
@allow("read", live=True)
async def retrieve(
    memory: Memory, caller: AdmittedCaller, namespace: str, request: Request, wait: Wait = False
) -> Response:
    """Return the memories for a query: items, best first, and a context to put into the prompt."""
    check_namespace(namespace)
    body = await parse_body(RetrieveRequest, request)
    require_also(caller, body)
    call = partial(memory.retrieve, namespace, body, wait=wait)
    result = await (run_in_threadpool(call) if wait else run_sync(call, limiter=_retrieval_threads(request)))
    return json_response(result.as_json())


@router.get("/v1/namespaces/{namespace}/traces", name="traces")
@allow("read")
async def list_traces(
    memory: Memory, caller: AdmittedCaller, namespace: str, after: After = "", limit: Limit = PAGE_ITEMS
) -> Response:
    """List the latest retrievals, newest first, without those that also searched a namespace out of reach."""
    return json_response(await run_in_threadpool(_traces, memory, caller, namespace, after, limit))


@router.get("/v1/namespaces/{namespace}/traces/{trace_id}", name="trace")
@allow("read")
async def read_trace(memory: Memory, caller: AdmittedCaller, namespace: str, trace_id: str) -> Response:
    """Explain a retrieval: what was understood, candidates, features, gate, budget, what was dropped and why."""
    trace = await run_in_threadpool(memory.trace, namespace, trace_id)
    if not all(caller.covers(name) for name in searched_namespaces(trace)):
        raise unknown_trace()
    return json_response(trace)


@router.post(
    "/v1/namespaces/{namespace}/sessions/{session_id:path}/window",
    name="window",
    openapi_extra=body_reference("WindowRequest"),
)
@allow("read", "write", cost=10)
async def fit_window(memory: Memory, namespace: str, session_id: str, request: Request) -> Response:
    """Fit a running conversation to a token budget; when it is nearly full its oldest turns are summarised."""
    check_namespace(namespace)
    budget_tokens = (await parse_body(WindowRequest, request)).budget_tokens
    window = await run_in_threadpool(memory.window, namespace, session_id, budget_tokens=budget_tokens)
    return json_response(window._asdict() | {"budget_tokens": budget_tokens})


def _retrieval_threads(request: Request) -> CapacityLimiter:
    """Return the threads of retrievals that wait for nothing.

    The others may all be busy: lists while the log does not answer, or `settle`, which may take hours.
    """
    state = request.app.state
    if not hasattr(state, "retrieval_threads"):
        state.retrieval_threads = CapacityLimiter(_RETRIEVAL_THREADS)
    limiter: CapacityLimiter = state.retrieval_threads
    return limiter


def _traces(memory: Recollect, caller: Caller, namespace: str, after: str, limit: int) -> Page:
    """Return a page of the traces that the caller may read."""
    store, folder = memory.parts.trace_store, memory.parts.settings.storage.data / "traces"
    store.flush()
    items = list_traces_of(folder, check_namespace(namespace), after, limit, covers=caller.covers)
    return {"items": items, "next": items[-1]["trace_id"] if len(items) == limit else None}
