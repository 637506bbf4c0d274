"""The HTTP application: routes over one memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Annotated, Any, TypeVar

import orjson
from fastapi import FastAPI, Query, Request
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from recollect.api.http.problems import answer_errors, problem
from recollect.api.memory.async_recollect import AsyncRecollect
from recollect.api.memory.recollect import Recollect
from recollect.api.operations.health import health as health_of
from recollect.api.operations.health import metrics as metrics_of
from recollect.api.pages.list_pages import PAGE_ITEMS, PAGE_ITEMS_MAX
from recollect.api.retrieval.append_retrieval import turn_request
from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.events.catalogue import NewEvent
from recollect.events.envelope import Appended, EventDraft, rfc3339
from recollect.events.errors import InvalidInput, StorageError, TooLarge, first_problem
from recollect.events.limits import BATCH_EVENTS_MAX, REQUEST_BYTES_MAX, check_namespace
from recollect.events.validation import drafts_from_json
from recollect.projections.queries.page_queries import LISTS

_After = Annotated[str, Query(max_length=200, description="`next` of the previous page")]
_Limit = Annotated[int, Query(ge=1, le=PAGE_ITEMS_MAX)]
_AsOf = Annotated[
    str | None,
    Query(max_length=200, description="a version, or a time (RFC 3339): the list as it was when that was recorded"),
]
_Body = dict[str, Any]


class _WindowRequest(BaseModel):
    """What a conversation is fitted to."""

    model_config = ConfigDict(extra="forbid")

    #: Tokens of all messages together.
    budget_tokens: int


Model = TypeVar("Model", bound=BaseModel)
_EVENTS = "/v1/namespaces/{namespace}/events"


def create_app(memory: Recollect) -> FastAPI:
    """Return the application over `memory`, which is closed when the server stops."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        yield
        await run_in_threadpool(memory.close)

    app = FastAPI(
        title="Recollect",
        description="Long-term memory for chat bots and agents. Errors are problem details (RFC 9457).",
        version=version("recollect"),
        lifespan=lifespan,
    )
    answer_errors(app)
    _add_append(app, memory)
    _add_retrieve(app, memory)
    _add_traces(app, memory)
    _add_window(app, memory)
    _add_lists(app, memory)
    _add_health(app, memory)
    _describe(app)
    return app


def _add_append(app: FastAPI, memory: Recollect) -> None:
    awaited = AsyncRecollect.over(memory)

    async def append(request: Request) -> Response:
        namespace = check_namespace(request.path_params["namespace"])
        drafts, expected_version = drafts_from_json(await _body(request))
        retrieves, asked = _turn(request, drafts)
        recorded = await awaited.append_drafts(namespace, drafts, expected_version=expected_version)
        answer: _Body = {
            "events": [_appended(one) for one in recorded],
            "version": max(one.version for one in recorded),
        }
        if retrieves:
            answer["retrieval"] = None
        if asked is not None:
            result = await awaited.retrieve_for(namespace, asked, recorded)
            answer["retrieval"] = result.as_json()
        return _json(answer, status=200 if all(one.duplicate for one in recorded) else 201)

    # The one route that is called for every message: without FastAPI's machinery it answers a third more of them.
    # Its description is put into OpenAPI by `_describe`.
    app.add_route(_EVENTS, append, methods=["POST"])


def _turn(request: Request, drafts: Sequence[EventDraft]) -> tuple[bool, RetrieveRequest | None]:
    """Return whether ``retrieve=true`` is there, and what to ask for; other parameters are fields of the request."""
    options: _Body = dict(request.query_params)
    wanted = options.pop("retrieve", "false").lower()
    if wanted not in ("true", "false"):
        raise InvalidInput("say true or false", field="retrieve")
    if wanted == "false":
        return False, None
    for several in ("also", "kinds"):
        if several in options:
            options[several] = request.query_params.getlist(several)
    return True, turn_request(drafts, options)


def _add_retrieve(app: FastAPI, memory: Recollect) -> None:
    @app.post("/v1/namespaces/{namespace}/retrieve", tags=["retrieval"], openapi_extra=_body_of("RetrieveRequest"))
    async def retrieve(namespace: str, request: Request) -> Response:  # pyright: ignore[reportUnusedFunction]
        """Return what the memory has for a query: items, best first, and a context to put into the prompt."""
        check_namespace(namespace)
        wanted = _parsed(RetrieveRequest, await _body(request))
        result = await run_in_threadpool(memory.retrieve, namespace, wanted)
        return _json(result.as_json())


def _add_traces(app: FastAPI, memory: Recollect) -> None:
    @app.get("/v1/namespaces/{namespace}/traces", tags=["retrieval"])
    async def traces(  # pyright: ignore[reportUnusedFunction]
        namespace: str, after: _After = "", limit: _Limit = PAGE_ITEMS
    ) -> Response:
        """List the latest retrievals, newest first."""
        return _json(await run_in_threadpool(memory.traces, namespace, after=after, limit=limit))

    @app.get("/v1/namespaces/{namespace}/traces/{trace_id}", tags=["retrieval"])
    async def trace(namespace: str, trace_id: str) -> Response:  # pyright: ignore[reportUnusedFunction]
        """Explain a retrieval: what was understood, candidates, features, gate, budget, what was dropped and why."""
        return _json(await run_in_threadpool(memory.trace, namespace, trace_id))


def _add_window(app: FastAPI, memory: Recollect) -> None:
    @app.post(
        "/v1/namespaces/{namespace}/sessions/{session_id:path}/window",
        tags=["retrieval"],
        openapi_extra=_body_of("WindowRequest"),
    )
    async def window(namespace: str, session_id: str, request: Request) -> Response:  # pyright: ignore[reportUnusedFunction]
        """Fit a running conversation to a token budget; when it is nearly full its oldest turns are summed up."""
        check_namespace(namespace)
        budget_tokens = _parsed(_WindowRequest, await _body(request)).budget_tokens
        found = await run_in_threadpool(memory.window, namespace, session_id, budget_tokens=budget_tokens)
        return _json(found._asdict() | {"budget_tokens": budget_tokens})


def _add_lists(app: FastAPI, memory: Recollect) -> None:
    @app.get("/v1/namespaces", tags=["lists"])
    async def namespaces(after: _After = "", limit: _Limit = PAGE_ITEMS) -> Response:  # pyright: ignore[reportUnusedFunction]
        """List the namespaces with their heads, by name."""
        return _json(await run_in_threadpool(memory.namespaces, after=after, limit=limit))

    @app.get("/v1/namespaces/{namespace}/events", tags=["lists"])
    async def events(  # pyright: ignore[reportUnusedFunction]
        namespace: str,
        after: Annotated[int, Query(ge=0, lt=1 << 36)] = 0,
        limit: _Limit = PAGE_ITEMS,
        as_of: _AsOf = None,
    ) -> Response:
        """List the log: events with versions over `after`."""
        return _json(await run_in_threadpool(memory.events, namespace, after=after, limit=limit, as_of=as_of))

    @app.get("/v1/namespaces/{namespace}/episodes/{episode_id:path}/sources", tags=["lists"])
    async def sources(namespace: str, episode_id: str) -> Response:  # pyright: ignore[reportUnusedFunction]
        """List the exact words behind a summary, expired or not."""
        found = await run_in_threadpool(memory.sources, namespace, episode_id)
        return _json({"items": [source.as_json() for source in found], "next": None})

    @app.get("/v1/namespaces/{namespace}/graph", tags=["lists"])
    async def graph(  # pyright: ignore[reportUnusedFunction]
        namespace: str, entity: Annotated[str, Query(min_length=1, max_length=200)], depth: int = 2, as_of: _AsOf = None
    ) -> Response:
        """Return what is related to an entity within `depth` steps (1 to 5)."""
        return _json(await run_in_threadpool(memory.graph, namespace, entity, depth=depth, as_of=as_of))

    def add(name: str) -> None:
        @app.get(f"/v1/namespaces/{{namespace}}/{name}", tags=["lists"], name=name, summary=f"List the {name}")
        async def rows(  # pyright: ignore[reportUnusedFunction]
            namespace: str, after: _After = "", limit: _Limit = PAGE_ITEMS, as_of: _AsOf = None
        ) -> Response:
            page = run_in_threadpool(memory.list, namespace, name, after=after, limit=limit, as_of=as_of)
            return _json(await page)

    for name in LISTS:
        add(name)


def _add_health(app: FastAPI, memory: Recollect) -> None:
    @app.get("/health", tags=["operations"])
    async def health() -> Response:  # pyright: ignore[reportUnusedFunction]
        """Tell how the parts are. 200 as long as the process answers."""
        return _json({"version": app.version} | await run_in_threadpool(health_of, memory.parts))

    @app.get("/metrics", tags=["operations"])
    async def metrics() -> Response:  # pyright: ignore[reportUnusedFunction]
        """Tell the same as numbers, in the text format of Prometheus."""
        return Response(await run_in_threadpool(metrics_of, memory.parts), media_type=CONTENT_TYPE_LATEST)

    @app.get("/ready", tags=["operations"])
    async def ready() -> Response:  # pyright: ignore[reportUnusedFunction]
        """Tell whether requests can be served: 200, or 503 when the log cannot be read."""
        try:
            await run_in_threadpool(memory.parts.log.heads, limit=1)
        except StorageError as error:
            return problem(503, str(error))
        return _json({"ready": True, "embedding": memory.parts.vectors.embedder.state})


async def _body(request: Request) -> bytes:
    """Return the body; refuse it as soon as it is over the limit."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > REQUEST_BYTES_MAX:
            raise TooLarge(f"over the {REQUEST_BYTES_MAX:,} bytes of one request; send several", field="body")
        chunks.append(chunk)
    return b"".join(chunks)


def _parsed(model: type[Model], body: bytes) -> Model:
    """Return a body as `model`. It is read as JSON whatever its content type says: `curl -d` calls it a form."""
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise first_problem(error, root="body") from None


def _appended(one: Appended) -> _Body:
    return {
        "id": one.id,
        "version": one.version,
        "recorded_at": rfc3339(one.recorded_at_us),
        "hash": one.hash.hex(),
        "duplicate": one.duplicate,
    }


def _json(body: _Body, *, status: int = 200) -> Response:
    return Response(orjson.dumps(body), status_code=status, media_type="application/json")


def _body_of(schema: str) -> _Body:
    reference = {"$ref": f"#/components/schemas/{schema}"}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": reference}}}}


def _describe(app: FastAPI) -> None:
    """Add to OpenAPI what FastAPI cannot see: the event catalogue, which the log's own door validates; the append."""
    made = app.openapi

    def openapi() -> _Body:
        if app.openapi_schema is None:
            description = made()
            template = "#/components/schemas/{model}"
            event: _Body = TypeAdapter[Any](NewEvent).json_schema(ref_template=template)
            request = RetrieveRequest.model_json_schema(ref_template=template)
            schemas = description.setdefault("components", {}).setdefault("schemas", {})
            schemas |= event.pop("$defs") | {"NewEvent": event, "RetrieveRequest": request}
            schemas["WindowRequest"] = _WindowRequest.model_json_schema(ref_template=template)
            schemas["EventsBody"] = _events_body({"$ref": template.format(model="NewEvent")})
            description["paths"][_EVENTS]["post"] = _APPEND
        return app.openapi_schema or {}

    app.openapi = openapi


def _events_body(one: _Body) -> _Body:
    batch: _Body = {
        "type": "object",
        "required": ["events"],
        "properties": {
            "events": {"type": "array", "items": one, "minItems": 1, "maxItems": BATCH_EVENTS_MAX},
            "expected_version": {"type": "integer", "minimum": 0},
        },
    }
    return {"anyOf": [one, batch]}


_APPEND: _Body = {
    "tags": ["events"],
    "summary": "Append",
    "description": "Record one event, or a batch all or none. They are on disk when the answer comes. Sending the same "
    "ids again is always safe.",
    "parameters": [
        {"name": "namespace", "in": "path", "required": True, "schema": {"type": "string"}},
        {
            "name": "retrieve",
            "in": "query",
            "schema": {"type": "boolean"},
            "description": "answer with what belongs to the user's message too, as `retrieval`: a passive retrieval, "
            "whose other fields can be given as parameters",
        },
    ],
    **_body_of("EventsBody"),
    "responses": {
        "201": {"description": "Recorded: the events' ids, versions and hashes"},
        "200": {"description": "All had been recorded before"},
        "404": {"description": "A memory that an event names by id is not there"},
        "409": {"description": "An id is taken by other content, or the head is not the expected version"},
        "413": {"description": "Over a limit"},
        "422": {"description": "Does not fit the catalogue, or only jobs may record it; `field` says where"},
        "501": {"description": "Nothing acts on an event of this type yet: `namespace.erased`"},
        "503": {"description": "The disk failed"},
    },
}
