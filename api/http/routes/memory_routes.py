"""Memory routes: add chat messages; read, update, pin, end and forget one memory by its id, and undo that."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Query, Request
from pydantic import BaseModel, ConfigDict
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from recollect.api.http.routes.dependencies import AsOfText, Memory, memory_of
from recollect.api.http.routes.event_routes import append_response
from recollect.api.http.routes.json_bodies import body_reference, json_response, parse_body, read_body
from recollect.api.http.routes.query_parameters import refuse_unknown
from recollect.api.http.routes.rights import GuardedRouter, allow
from recollect.api.memory.chat_messages import parse_batch
from recollect.api.memory.memory_editing import chat_drafts
from recollect.api.memory.recollect import Recollect
from recollect.api.result_types import MemoryItem
from recollect.events.catalogue import Name, Text
from recollect.events.errors import InvalidInput
from recollect.events.limits import check_namespace
from recollect.events.validation import json_object

MESSAGES_PATH = "/v1/namespaces/{namespace}/messages"
_MEMORY_PATH = "/v1/namespaces/{namespace}/memories/{memory_id:path}"

router = GuardedRouter(tags=["memories"], dependencies=[Depends(refuse_unknown)])

Reason = Annotated[str | None, Query(min_length=1, description="why; it is recorded with the event")]


class ReasonBody(BaseModel):
    """The reason of a change, recorded with its event. The body may be empty."""

    model_config = ConfigDict(extra="forbid")

    reason: Text | None = None


class EndBody(ReasonBody):
    """The end of a memory, and the reason. The body may be empty."""

    #: An RFC 3339 time; the present when absent.
    ended_at: str | None = None


class SeparateBody(ReasonBody):
    """The name that is another entity's, and the reason."""

    #: One of the `aliases` of the entity.
    alias: Name


class UndoBody(ReasonBody):
    """The edit to undo, and the reason."""

    #: The id of the event that changed a memory, or of an undo, which makes the edit again.
    event_id: Name


@allow("write", audited=False, live=True)
async def add_messages(request: Request) -> Response:
    """Append the messages of a chat; with ``?retrieve=true`` return the memories for the last one too."""
    namespace = check_namespace(request.path_params["namespace"])
    drafts = chat_drafts(parse_batch(await read_body(request)).events())
    return await append_response(request, await memory_of(request), namespace, drafts, None)


# A plain route, as the append of events is. `openapi.describe` adds its description.
router.add_plain_route(MESSAGES_PATH, add_messages, "POST")


@router.post(f"{_MEMORY_PATH}/pin", name="pin", openapi_extra=body_reference("ReasonBody", required=False))
@allow("read", "write")
async def pin(memory: Memory, namespace: str, memory_id: str, request: Request) -> Response:
    """Pin a memory, which exempts it from ageing and retention limits; return it."""
    body = await parse_body(ReasonBody, request, optional=True)
    return json_response(await run_in_threadpool(memory.pin, namespace, memory_id, reason=body.reason))


@router.post(f"{_MEMORY_PATH}/unpin", name="unpin", openapi_extra=body_reference("ReasonBody", required=False))
@allow("read", "write")
async def unpin(memory: Memory, namespace: str, memory_id: str, request: Request) -> Response:
    """Remove the pin of a memory; return it."""
    body = await parse_body(ReasonBody, request, optional=True)
    return json_response(await run_in_threadpool(memory.unpin, namespace, memory_id, reason=body.reason))


@router.post(f"{_MEMORY_PATH}/end", name="end", openapi_extra=body_reference("EndBody", required=False))
@allow("read", "write")
async def end(memory: Memory, namespace: str, memory_id: str, request: Request) -> Response:
    """End a fact, a task, a preference, a procedure or a relationship, which was true until then; return it."""
    body = await parse_body(EndBody, request, optional=True)
    ended = run_in_threadpool(memory.end, namespace, memory_id, ended_at=body.ended_at, reason=body.reason)
    return json_response(await ended)


@router.post(f"{_MEMORY_PATH}/separate", name="separate", openapi_extra=body_reference("SeparateBody"))
@allow("read", "write")
async def separate(memory: Memory, namespace: str, memory_id: str, request: Request) -> Response:
    """Undo a merge of entities: the alias names another one, which has its own facts again; return it."""
    body = await parse_body(SeparateBody, request)
    separated = run_in_threadpool(memory.separate, namespace, memory_id, body.alias, reason=body.reason)
    return json_response(await separated)


@router.get(_MEMORY_PATH, name="memory")
@allow("read")
async def read_memory(memory: Memory, namespace: str, memory_id: str, as_of: AsOfText = None) -> Response:
    """Return a memory of any kind by the id that a list or a retrieval gives it."""
    return json_response(await run_in_threadpool(memory.get, namespace, memory_id, as_of=as_of))


@router.patch(_MEMORY_PATH, name="update", openapi_extra=body_reference("UpdateBody"))
@allow("read", "write")
async def update_memory(memory: Memory, namespace: str, memory_id: str, request: Request) -> Response:
    """Correct a memory: `text`, or other fields of its kind; return it as it is afterwards, maybe with a new id."""
    changes = json_object(await read_body(request))
    for name in changes:
        if not name.isidentifier() or name in ("namespace", "memory_id"):
            raise InvalidInput("no memory has a field of this name", field=name)
    if not isinstance(changes.get("text", ""), str):
        raise InvalidInput("give text", field="text")
    return json_response(await run_in_threadpool(_updated, memory, namespace, memory_id, changes))


@router.delete(_MEMORY_PATH, name="forget")
@allow("write")
async def forget_memory(memory: Memory, namespace: str, memory_id: str, reason: Reason = None) -> Response:
    """Forget a memory and what was derived from it: no list and no retrieval returns it. The log keeps the bytes."""
    return json_response(await run_in_threadpool(memory.forget, namespace, memory_id, reason=reason))


@router.post("/v1/namespaces/{namespace}/undo", name="undo", openapi_extra=body_reference("UndoBody"))
@allow("read", "write")
async def undo(memory: Memory, namespace: str, request: Request) -> Response:
    """Undo the event that corrected, updated, ended, pinned, unpinned or forgot a memory."""
    body = await parse_body(UndoBody, request)
    return json_response(await run_in_threadpool(memory.undo, namespace, body.event_id, reason=body.reason))


def _updated(memory: Recollect, namespace: str, memory_id: str, changes: dict[str, Any]) -> MemoryItem:
    return memory.update(namespace, memory_id, **changes)
