"""Event routes: append to the log of a namespace, and list it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import orjson
from fastapi import Depends, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from recollect.api.http.routes.dependencies import AsOfText, Limit, Memory, memory_of, require_also
from recollect.api.http.routes.event_stream import event_stream
from recollect.api.http.routes.json_bodies import json_response, read_body
from recollect.api.http.routes.query_parameters import METADATA_PREFIX, read_metadata, refuse_unknown
from recollect.api.http.routes.rights import GuardedRouter, allow, caller_of, note_read
from recollect.api.importers.formats.jsonl_import import import_jsonl
from recollect.api.memory.async_recollect import AsyncRecollect, append_screened, off_loop
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


@allow("write", audited=False, live=True)
async def append(request: Request) -> Response:
    """Append one event or a batch; with ``?retrieve=true`` return the memories for its last message too."""
    namespace = check_namespace(request.path_params["namespace"])
    drafts, expected_version = drafts_from_json(await read_body(request))
    return await append_response(request, await memory_of(request), namespace, drafts, expected_version)


async def append_response(
    request: Request, memory: Recollect, namespace: str, drafts: Sequence[EventDraft], expected_version: int | None
) -> Response:
    """Append `drafts`, and retrieve for the last message when the query of the request asks for it.

    Raises:
        InvalidInput: a query parameter is wrong. ScopeMissing: the caller may not read, or not append what one user
            says in the message of another. Nothing is appended then.
    """
    if any(map(_has_foreign_turn, drafts)):
        caller_of(request).require_scopes({"admin"})
    options = _retrieval_options(request)
    screened = await off_loop(memory.parts.screened, namespace, drafts)
    retrieval = None if options is None else await _admitted_retrieval(request, memory, namespace, screened, options)
    is_stored = options is None or not options["no_store"]
    recorded = await append_screened(memory.parts, namespace, screened, expected_version) if is_stored else []
    answer = _answer(recorded)
    if options is not None:
        answer["retrieval"] = None
    if retrieval is not None:
        result = await AsyncRecollect.over(memory).retrieve_for(namespace, retrieval, recorded)
        answer["retrieval"] = result.as_json()
        note_read(request, len(result.items))
    return json_response(answer, status=200 if all(event.duplicate for event in recorded) else 201)


# A plain route: bots call it for every message, and without FastAPI's parameter handling it serves a third more
# requests. `openapi.describe` adds its description.
router.add_plain_route(EVENTS_PATH, append, "POST")


@router.get(EVENTS_PATH, tags=["lists"], name="events")
@allow("export")
async def list_events(
    memory: Memory,
    request: Request,
    namespace: str,
    after: Annotated[int, Query(ge=0, lt=1 << 36)] = 0,
    limit: Limit = PAGE_ITEMS,
    as_of: AsOfText = None,
    follow: Annotated[bool, Query(description="server-sent events, without an end")] = False,
    types: Annotated[list[str] | None, Query(max_length=100, description="with `follow`: only these")] = None,
    knowledge: Annotated[
        bool, Query(description="with `follow`: changes of facts, preferences and tasks, in place of events")
    ] = False,
) -> Response:
    """List the log: events with versions over `after`. With `follow=true` also those that are added from then on."""
    if follow:
        return await event_stream(request, memory, namespace, after=after, types=types or (), knowledge=knowledge)
    if types or knowledge:
        raise InvalidInput("needs follow=true", field="types" if types else "knowledge")
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


def _has_foreign_turn(draft: EventDraft) -> bool:
    """Return whether a message with the name of one user has a turn of another one."""
    if b'"turns"' not in draft.payload:
        return False
    payload: dict[str, Any] = orjson.loads(draft.payload)
    name: str | None = payload.get("name")
    turns: list[dict[str, Any]] = payload.get("turns") or []
    return name is not None and any(turn["role"] == "user" and turn.get("name") not in (None, name) for turn in turns)


def _retrieval_options(request: Request) -> dict[str, Any] | None:
    """Return the fields of the retrieval that the query asks for, and `wait`; None without ``retrieve=true``."""
    if not request.scope["query_string"]:
        return None
    query = request.query_params
    others = [name for name in query if name != "retrieve"]
    if not _flag("retrieve", query.get("retrieve", "false").lower()):
        if others:
            raise InvalidInput(
                "without retrieve=true, retrieve is the only parameter; with it, the fields of a retrieval are, too",
                field=others[0],
            )
        return None
    options: dict[str, Any] = {name: query[name] for name in others if not name.startswith(METADATA_PREFIX)}
    options["wait"] = _flag("wait", query.get("wait", "false").lower())
    options["no_store"] = _flag("no_store", query.get("no_store", "false"))
    options |= {name: query.getlist(name) for name in ("also", "kinds") if name in query}
    metadata = read_metadata(request)
    return options | {"metadata": metadata} if metadata else options


def _flag(name: str, text: str) -> bool:
    """Return the value of a parameter; raise `InvalidInput` when it is neither true nor false."""
    if text not in ("true", "false"):
        raise InvalidInput("give true or false", field=name)
    return text == "true"


async def _admitted_retrieval(
    request: Request, memory: Recollect, namespace: str, screened: Sequence[EventDraft], options: Mapping[str, Any]
) -> RetrieveRequest | None:
    """Return the retrieval for the last message, when the caller may retrieve; None when no event is a message."""
    retrieval = turn_request(screened, {name: value for name, value in options.items() if name != "wait"})
    caller_of(request).require_scopes({"read"})
    require_also(caller_of(request), retrieval)
    if options["wait"] and retrieval is not None:
        # Before the append, as in `Recollect.append_and_retrieve`.
        await run_in_threadpool(memory.embedding_wait.wait, (namespace, *retrieval.also))
    return retrieval


def _answer(recorded: Sequence[Appended]) -> dict[str, Any]:
    """Return the answer to an append, without memories."""
    # The events of a batch have one time, or few.
    times = {us: rfc3339(us) for us in {event.recorded_at_us for event in recorded}}
    return {
        "events": [_appended_json(event, times[event.recorded_at_us]) for event in recorded],
        "version": max((event.version for event in recorded), default=None),
    }


def _appended_json(event: Appended, recorded_at: str) -> dict[str, Any]:
    forgotten = {"forgotten": [*event.forgotten]} if event.forgotten else {}
    return {
        "id": event.id,
        "version": event.version,
        "recorded_at": recorded_at,
        "hash": event.hash.hex(),
        "duplicate": event.duplicate,
    } | forgotten
