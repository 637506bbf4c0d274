"""Dependencies: the objects that FastAPI passes to routes: the memory, and query parameters of several routes."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query, Request

from recollect.api.access.callers import Caller
from recollect.api.http.routes.rights import caller_of
from recollect.api.memory.recollect import Recollect
from recollect.api.pages.list_pages import PAGE_ITEMS_MAX
from recollect.api.retrieval.contract.request import RetrieveRequest


async def memory_of(request: Request) -> Recollect:
    """Return the memory that the application serves. It is a coroutine because FastAPI runs others in a thread.

    Raises:
        Unauthenticated: the request was not admitted by the right of its route.
    """
    caller_of(request)
    memory: Recollect = request.app.state.memory
    return memory


async def admitted_caller(request: Request) -> Caller:
    """Return the caller of the request."""
    return caller_of(request)


def require_also(caller: Caller, request: RetrieveRequest | None) -> None:
    """Refuse a retrieval from a namespace that the caller does not reach; raise `NotFound`, existing or not."""
    for namespace in () if request is None else request.also:
        caller.require_namespace(namespace, field="also")


AdmittedCaller = Annotated[Caller, Depends(admitted_caller)]
Memory = Annotated[Recollect, Depends(memory_of)]
After = Annotated[str, Query(max_length=200, description="`next` of the previous page")]
Limit = Annotated[int, Query(ge=1, le=PAGE_ITEMS_MAX)]
AsOfText = Annotated[
    str | None,
    Query(
        max_length=200,
        description="a version, or a time (RFC 3339): the list as it was when that was recorded",
        json_schema_extra={"anyOf": [{"type": "string", "pattern": "^[0-9]{1,9}$"}, {"format": "date-time"}]},
    ),
]
