"""Event routes: append to the log of a namespace, and list it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from recollect.api.http.routes.dependencies import AsOfText, Limit, Memory, memory_of, require_also
from recollect.api.http.routes.json_bodies import json_response, read_body
from recollect.api.http.routes.query_parameters import METADATA_PREFIX, read_metadata, refuse_unknown
from recollect.api.http.routes.rights import GuardedRouter, allow, caller_of
from recollect.api.importers.formats.jsonl_import import import_jsonl
from recollect.api.memory.async_recollect import AsyncRecollect, screened_off_loop
from recollect.api.memory.recollect import Recollect
from recollect.api.pages.list_pages import PAGE_ITEMS
from recollect.api.retrieval.append_retrieval import turn_request
from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.events.envelope import Appended, EventDraft, rfc3339
from recollect.events.errors import InvalidInput
from recollect.events.limits import check_namespace
from recollect.events.validation import drafts_from_json

EVENTS_PATH = "/v1/namespaces/{namespace}/events"

IMPORT_PATH = "/v1/namespaces/{namespace}/import"
#: The body of an import.
_LINES: dict[str, Any] = {
    "requestBody": {"required": False, "content": {"application/x-ndjson": {"schema": {"type": "string"}}}}
}

router = GuardedRouter(dependencies=[Depends(refuse_unknown)])


@allow("write", live=True)
async def append(request: Request) -> Response:
    """Append one event or a batch; with ``?retrieve=true`` return the memories for its last message too."""
    namespace = check_namespace(request.path_params["namespace"])
    drafts, expected_version = drafts_from_json(await read_body(request))
    return await append_response(request, await memory_of(request), namespace, drafts, expected_version)


async def append_response(
    request: Request, synchronous: Recollect, namespace: str, drafts: Sequence[EventDraft], expected_version: int | None
) -> Response:
    """Append `drafts`, and retrieve for the last message when the query of the request asks for it.

    Raises:
        InvalidInput: a query parameter is wrong. ScopeMissing: the caller may not read. Nothing is appended then.
    """
    memory = AsyncRecollect.over(synchronous)
    if not request.scope["query_string"]:
        recorded = await memory.append_drafts(namespace, drafts, expected_version=expected_version)
        return _appended_response(_answer(recorded), recorded)
    # The query of a retrieval is the text of the last message. The append screens all of them again.
    drafts = await screened_off_loop(synchronous.parts.screened, namespace, drafts)
    is_retrieval_wanted, is_waiting, retrieve_request = _parse_retrieval(request, drafts)
    if is_retrieval_wanted:
        caller = caller_of(request)
        caller.require_scopes({"read"})
        require_also(caller, retrieve_request)
    if is_waiting and retrieve_request is not None:
        # Before the append, as in `Recollect.append_and_retrieve`.
        await run_in_threadpool(synchronous.embedding_wait.wait, (namespace, *retrieve_request.also))
    # `_parse_retrieval` refuses any other value, with or without a message.
    no_store = request.query_params.get("no_store", "false") == "true"
    recorded: Sequence[Appended] = (
        () if no_store else await memory.append_drafts(namespace, drafts, expected_version=expected_version)
    )
    answer = _answer(recorded)
    if is_retrieval_wanted:
        answer["retrieval"] = None
    if retrieve_request is not None:
        result = await memory.retrieve_for(namespace, retrieve_request, recorded)
        answer["retrieval"] = result.as_json()
    return _appended_response(answer, recorded)


# A plain route: bots call it for every message, and without FastAPI's parameter handling it serves a third more
# requests. `openapi.describe` adds its description.
router.add_plain_route(EVENTS_PATH, append, "POST")


@router.get(EVENTS_PATH, tags=["lists"], name="events")
@allow("export", audited=True)
async def list_events(
    memory: Memory,
    namespace: str,
    after: Annotated[int, Query(ge=0, lt=1 << 36)] = 0,
    limit: Limit = PAGE_ITEMS,
    as_of: AsOfText = None,
) -> Response:
    """List the log: events with versions over `after`."""
    return json_response(await run_in_threadpool(memory.events, namespace, after=after, limit=limit, as_of=as_of))


@router.post(IMPORT_PATH, name="import", tags=["events"], openapi_extra=_LINES)
@allow("admin", cost=10)
async def import_events(memory: Memory, namespace: str, request: Request) -> Response:
    """Append an export of Recollect, lines of JSON, with the events that jobs derive; the same lines add nothing."""
    lines = (await read_body(request)).splitlines()
    imported = await run_in_threadpool(
        import_jsonl,
        memory.parts.log,
        lines,
        namespace=namespace,
        on_progress=lambda _: None,
        privacy=memory.parts.settings.privacy,
    )
    return json_response({"added": imported.added, "duplicates": imported.duplicates})


def _parse_retrieval(request: Request, drafts: Sequence[EventDraft]) -> tuple[bool, bool, RetrieveRequest | None]:
    """Return whether the query has ``retrieve=true`` and ``wait=true``, and the retrieval's request.

    The request is None when no event is a message. Other query parameters are its fields.

    Raises:
        InvalidInput: a parameter is wrong.
    """
    options: dict[str, Any] = dict(request.query_params)
    wanted = options.pop("retrieve", "false").lower()
    if wanted not in ("true", "false"):
        raise InvalidInput("give true or false", field="retrieve")
    if wanted == "false":
        if options:
            raise InvalidInput(
                "without retrieve=true, retrieve is the only parameter; with it, the fields of a retrieval are, too",
                field=next(iter(options)),
            )
        return False, False, None
    wait = options.pop("wait", "false").lower()
    if wait not in ("true", "false"):
        raise InvalidInput("give true or false", field="wait")
    metadata = read_metadata(request)
    if metadata:
        options = {name: value for name, value in options.items() if not name.startswith(METADATA_PREFIX)}
        options["metadata"] = metadata
    if options.get("no_store", "true") not in ("true", "false"):
        raise InvalidInput("give true or false", field="no_store")
    for name in ("also", "kinds"):
        if name in options:
            options[name] = request.query_params.getlist(name)
    return True, wait == "true", turn_request(drafts, options)


def _answer(recorded: Sequence[Appended]) -> dict[str, Any]:
    """Return the answer to an append, without memories."""
    # The events of a batch have one time, or few.
    times = {us: rfc3339(us) for us in {event.recorded_at_us for event in recorded}}
    return {
        "events": [_appended_json(event, times[event.recorded_at_us]) for event in recorded],
        "version": max((event.version for event in recorded), default=None),
    }


def _appended_response(answer: dict[str, Any], recorded: Sequence[Appended]) -> Response:
    return json_response(answer, status=200 if all(event.duplicate for event in recorded) else 201)


def _appended_json(event: Appended, recorded_at: str) -> dict[str, Any]:
    forgotten = {"forgotten": [*event.forgotten]} if event.forgotten else {}
    return {
        "id": event.id,
        "version": event.version,
        "recorded_at": recorded_at,
        "hash": event.hash.hex(),
        "duplicate": event.duplicate,
    } | forgotten
