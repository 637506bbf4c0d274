"""Dependencies: what FastAPI passes to the routes: the memory, and query parameters that several of them have."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query, Request

from recollect.api.memory.recollect import Recollect
from recollect.api.pages.list_pages import PAGE_ITEMS_MAX


async def memory_of(request: Request) -> Recollect:
    """Return the memory that the application serves. It is a coroutine because FastAPI runs others in a thread."""
    memory: Recollect = request.app.state.memory
    return memory


Memory = Annotated[Recollect, Depends(memory_of)]
After = Annotated[str, Query(max_length=200, description="`next` of the previous page")]
Limit = Annotated[int, Query(ge=1, le=PAGE_ITEMS_MAX)]
AsOfText = Annotated[
    str | None,
    Query(max_length=200, description="a version, or a time (RFC 3339): the list as it was when that was recorded"),
]
