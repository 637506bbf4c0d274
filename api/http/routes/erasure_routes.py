"""Erasure routes: erase a namespace, a subject, a session or events; list the receipts."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from recollect.api.http.routes.dependencies import Memory
from recollect.api.http.routes.json_bodies import body_reference, json_response, parse_body
from recollect.api.http.routes.query_parameters import refuse_unknown
from recollect.api.http.routes.rights import GuardedRouter, allow
from recollect.events.catalogue import Name, Text
from recollect.events.errors import InvalidInput
from recollect.events.limits import BATCH_EVENTS_MAX, check_namespace

_NAMESPACE_PATH = "/v1/namespaces/{namespace}"

router = GuardedRouter(tags=["erasure"], dependencies=[Depends(refuse_unknown)])

Reason = Annotated[
    str | None, Query(min_length=1, max_length=200, description="why; stored unencrypted, so it must not name anybody")
]
Confirm = Annotated[str | None, Query(description="the name of the namespace again; required without `dry_run`")]
DryRun = Annotated[bool, Query(description="erase nothing, and return what would be erased")]


class EraseBody(BaseModel):
    """What to erase: exactly one of the first four fields."""

    model_config = ConfigDict(extra="forbid", strict=True)

    #: All events of the namespace.
    everything: bool = False
    #: All events of a person in a shared namespace, by the name in `name`, `user_id`, `actor` or of a fact's subject.
    subject: Name | None = None
    #: All events of a session.
    session_id: Name | None = None
    #: Single events, such as messages, by their ids.
    event_ids: Annotated[list[Name], Field(min_length=1, max_length=BATCH_EVENTS_MAX)] | None = None
    #: Erase nothing, and return the numbers of events that would be erased.
    dry_run: bool = False
    #: The reason, stored unencrypted in the log and the receipt; it must not name anybody.
    reason: Annotated[Text, Field(max_length=200)] | None = None
    #: Who asked for it, for the receipt; it must not name the subject.
    requested_by: Annotated[Text, Field(max_length=200)] | None = None


class ReadmitBody(BaseModel):
    """The erased subject, or nothing for an erased namespace. The body may be empty."""

    model_config = ConfigDict(extra="forbid", strict=True)

    subject: Name | None = None


@router.delete(_NAMESPACE_PATH, name="erase_namespace")
@allow("erase")
async def erase_namespace(
    memory: Memory, namespace: str, confirm: Confirm = None, reason: Reason = None, dry_run: DryRun = False
) -> Response:
    """Erase all events of a namespace and all that was derived from them, for good; return the signed receipt."""
    check_namespace(namespace)
    if not dry_run and confirm != namespace:
        raise InvalidInput(
            f"every event of {namespace} would be erased for good; add ?confirm={namespace}, or ?dry_run=true to see "
            "what it would be",
            field="confirm",
        )
    erased = run_in_threadpool(memory.erase, namespace, everything=True, dry_run=dry_run, reason=reason)
    return json_response(await erased)


@router.post(f"{_NAMESPACE_PATH}/erase", name="erase", openapi_extra=body_reference("EraseBody"))
@allow("erase")
async def erase(memory: Memory, namespace: str, request: Request) -> Response:
    """Erase a subject, a session or events, with all that was derived from them, for good; return the receipt."""
    check_namespace(namespace)
    body = await parse_body(EraseBody, request)
    return json_response(await run_in_threadpool(memory.erase, namespace, **dict(body)))


@router.post(f"{_NAMESPACE_PATH}/readmit", name="readmit", openapi_extra=body_reference("ReadmitBody", required=False))
@allow("erase")
async def readmit(memory: Memory, namespace: str, request: Request) -> Response:
    """Accept new events of an erased namespace or subject again. Nothing that was erased comes back."""
    check_namespace(namespace)
    body = await parse_body(ReadmitBody, request, optional=True)
    return json_response({"readmitted": await run_in_threadpool(memory.readmit, namespace, subject=body.subject)})


@router.get(f"{_NAMESPACE_PATH}/receipts", name="receipts")
@allow("read")
async def receipts(memory: Memory, namespace: str) -> Response:
    """Return the receipts of the erasures of a namespace, in their order."""
    check_namespace(namespace)
    return json_response({"items": await run_in_threadpool(memory.receipts, namespace)})


@router.get("/v1/receipts", name="all_receipts")
@allow("read", extent="server")
async def all_receipts(memory: Memory) -> Response:
    """Return the receipts of the erasures of all namespaces, in their order."""
    return json_response({"items": await run_in_threadpool(memory.receipts)})
