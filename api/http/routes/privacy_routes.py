"""Privacy routes: the quarantine with its reviews, the judgement of answers, the export about a subject."""

from __future__ import annotations

from io import BytesIO
from typing import Annotated, Any, Literal

from fastapi import Depends, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse, Response

from recollect.api.exporters.bundle_files import write_archive
from recollect.api.http.routes.dependencies import Limit, Memory
from recollect.api.http.routes.json_bodies import body_reference, json_response, parse_body
from recollect.api.http.routes.query_parameters import refuse_unknown
from recollect.api.http.routes.rights import GuardedRouter, allow
from recollect.api.memory.file_export import export_files
from recollect.api.memory.memory_review import Decision
from recollect.api.memory.recollect import Recollect
from recollect.api.memory.subject_export import as_markdown
from recollect.api.pages.list_pages import PAGE_ITEMS
from recollect.events.catalogue import Name, Text
from recollect.events.errors import InvalidInput
from recollect.events.limits import check_namespace
from recollect.events.storage.namespace_folder import folder_name

#: The other content types of an export; OpenAPI has JSON from the route itself.
_EXPORTED: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            "text/markdown": {"schema": {"type": "string"}},
            "application/zip": {"schema": {"type": "string", "format": "binary"}},
        }
    }
}

router = GuardedRouter(tags=["privacy"], dependencies=[Depends(refuse_unknown)])


class ReviewBody(BaseModel):
    """The decision on a memory in quarantine, and the reason."""

    model_config = ConfigDict(extra="forbid")

    decision: Decision
    reason: Text | None = None


@router.get("/v1/namespaces/{namespace}/quarantine", name="quarantine")
@allow("review")
async def list_quarantine(
    memory: Memory,
    namespace: str,
    status: Literal["waiting", "approve", "reject", "redact", "all"] = "waiting",
    after: Annotated[int, Query(ge=0, lt=1 << 36)] = 0,
    limit: Limit = PAGE_ITEMS,
) -> Response:
    """List the memories that look like instructions by others than the user, oldest first."""
    chosen = None if status == "all" else status
    page = await run_in_threadpool(memory.quarantine, namespace, status=chosen, after=after, limit=limit)
    return json_response(page)


@router.post(
    "/v1/namespaces/{namespace}/quarantine/{memory_id:path}/review",
    name="review",
    openapi_extra=body_reference("ReviewBody"),
)
@allow("review")
async def review(memory: Memory, namespace: str, memory_id: str, request: Request) -> Response:
    """Approve, reject or redact a memory in quarantine."""
    check_namespace(namespace)
    body = await parse_body(ReviewBody, request)
    reviewed = await run_in_threadpool(memory.review, namespace, memory_id, body.decision, reason=body.reason)
    return json_response(reviewed)


class AnswerBody(BaseModel):
    """What an agent answered, and the memories that it cited."""

    model_config = ConfigDict(extra="forbid")

    text: Text
    cited: Annotated[list[Name], Field(max_length=100)]
    trace_id: Name | None = None


@router.post("/v1/namespaces/{namespace}/answers", name="record_answer", openapi_extra=body_reference("AnswerBody"))
@allow("read", "write")
async def record_answer(memory: Memory, namespace: str, request: Request) -> Response:
    """Record what an agent answered, and check it against the memories that it cites."""
    check_namespace(namespace)
    body = await parse_body(AnswerBody, request)
    judged = await run_in_threadpool(memory.record_answer, namespace, body.text, body.cited, trace_id=body.trace_id)
    return json_response(judged)


@router.get("/v1/namespaces/{namespace}/export", name="export", responses=_EXPORTED)
@allow("export")
async def export(
    memory: Memory,
    namespace: str,
    subject: Annotated[
        str | None, Query(min_length=1, max_length=200, description="a person's name; everything when absent")
    ] = None,
    form: Annotated[Literal["json", "markdown", "okf", "memory-md"], Query(alias="format")] = "json",
) -> Response:
    """Export everything about a subject: messages, facts and other memories, sessions, traces; or a zip of Markdown."""
    if form in ("okf", "memory-md"):
        if subject is not None:
            raise InvalidInput(f"{form} is an export of the whole namespace; give json or markdown", field="subject")
        return await run_in_threadpool(_archive, memory, check_namespace(namespace), form)
    exported = await run_in_threadpool(memory.export_subject, namespace, subject)
    if form == "markdown":
        return PlainTextResponse(as_markdown(exported), media_type="text/markdown")
    return json_response(exported)


def _archive(memory: Recollect, namespace: str, form: str) -> Response:
    """Return a namespace as the files of a format, in a zip archive."""
    content = BytesIO()
    write_archive(content, export_files(memory, namespace, form))
    disposition = f'attachment; filename="{folder_name(namespace)}-{form}.zip"'
    return Response(content.getvalue(), media_type="application/zip", headers={"Content-Disposition": disposition})
