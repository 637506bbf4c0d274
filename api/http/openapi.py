"""OpenAPI: the schemas and the operation that FastAPI cannot derive from the routes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic import TypeAdapter

from recollect.api.http.answer_schemas import add_answers
from recollect.api.http.routes.erasure_routes import EraseBody, ReadmitBody
from recollect.api.http.routes.event_routes import EVENTS_PATH
from recollect.api.http.routes.failure_routes import SkipBody
from recollect.api.http.routes.json_bodies import body_reference
from recollect.api.http.routes.memory_routes import MESSAGES_PATH, EndBody, ReasonBody, SeparateBody, UndoBody
from recollect.api.http.routes.privacy_routes import AnswerBody, ReviewBody
from recollect.api.http.routes.retrieval_routes import WindowRequest
from recollect.api.http.routes.rights import GuardedRouter, declared_rights
from recollect.api.http.routes.work_routes import CompactBody, SettleBody
from recollect.api.memory.chat_messages import ChatBatch
from recollect.api.memory.memory_edits import UPDATABLE
from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.events.catalogue import NewEvent
from recollect.events.limits import BATCH_EVENTS_MAX, NAMESPACE_SCHEMA

_TEMPLATE = "#/components/schemas/{model}"
#: The bodies that the routes validate themselves, besides those of events and retrievals.
_BODIES = (
    ChatBatch,
    ReasonBody,
    EndBody,
    SeparateBody,
    UndoBody,
    AnswerBody,
    ReviewBody,
    SettleBody,
    CompactBody,
    EraseBody,
    SkipBody,
    ReadmitBody,
)


def operation_id(route: APIRoute) -> str:
    """Return the name of an operation: short, since hosts make tools of operations, with 64 letters at most."""
    name = route.endpoint.__name__
    return f"list_{route.name}" if name == "list_rows" else name


def describe(app: FastAPI, routers: Sequence[GuardedRouter]) -> None:
    """Add the event catalogue, the bodies that the routes validate themselves, the append and the rights to OpenAPI."""
    derive = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            description = derive()
            event: dict[str, Any] = TypeAdapter[Any](NewEvent).json_schema(ref_template=_TEMPLATE)
            request = RetrieveRequest.model_json_schema(ref_template=_TEMPLATE)
            schemas = description.setdefault("components", {}).setdefault("schemas", {})
            schemas |= event.pop("$defs") | {"NewEvent": event, "RetrieveRequest": request}
            for form in schemas["RetrieveRequest"]["properties"]["kinds"]["anyOf"]:
                # A kind may be named twice.
                form.pop("uniqueItems", None)
            schemas["WindowRequest"] = WindowRequest.model_json_schema(ref_template=_TEMPLATE)
            for model in _BODIES:
                schema = model.model_json_schema(ref_template=_TEMPLATE)
                schemas |= schema.pop("$defs", {}) | {model.__name__: schema}
            schemas["UpdateBody"] = _UPDATE
            schemas["EventsBody"] = _events_body({"$ref": _TEMPLATE.format(model="NewEvent")})
            description["paths"][EVENTS_PATH]["post"] = _APPEND
            description["paths"].setdefault(MESSAGES_PATH, {})["post"] = _ADD
            add_answers(description)
            _add_rights(description, routers)
        return app.openapi_schema or {}

    app.openapi = openapi


def _events_body(event: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an append's body: one event, or a batch."""
    batch: dict[str, Any] = {
        "type": "object",
        "required": ["events"],
        "properties": {
            "events": {"type": "array", "items": event, "minItems": 1, "maxItems": BATCH_EVENTS_MAX},
            "expected_version": {"type": "integer", "minimum": 0},
        },
    }
    return {"anyOf": [event, batch]}


def _add_rights(description: dict[str, Any], routers: Sequence[GuardedRouter]) -> None:
    """Add the scopes of each operation, and the answers to callers without them."""
    description["components"]["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "description": "a token of `recollect token create`"}
    }
    for (method, path), right in declared_rights(tuple(routers)).items():
        operation: dict[str, Any] | None = description["paths"].get(path, {}).get(method.lower())
        if operation is None:
            continue
        operation["x-extent"] = right.extent
        operation["summary"] = operation["operationId"].replace("_", " ").capitalize()
        for parameter in operation.get("parameters", ()):
            if parameter["name"] == "namespace" and parameter["in"] == "path":
                parameter["schema"] = {"type": "string", **NAMESPACE_SCHEMA}
        operation["security"] = [] if right.extent == "public" else [{"token": sorted(right.scopes)}]
        responses = operation["responses"] = dict(operation["responses"])
        for status, text in _DENIALS.items():
            if right.extent != "public" or status in ("408", "421"):
                responses.setdefault(status, {"description": text})
        for status, response in responses.items():
            if status >= "400":
                responses[status] = {"description": response["description"], "content": _PROBLEM}


#: The content of every error.
_PROBLEM: dict[str, Any] = {
    "application/problem+json": {
        "schema": {
            "type": "object",
            "required": ["type", "title", "status", "detail"],
            "properties": {
                "type": {"type": "string"},
                "title": {"type": "string"},
                "status": {"type": "integer"},
                "detail": {"type": "string"},
                "error": {"type": "string"},
                "field": {"type": "string"},
            },
        }
    }
}
#: The answers to callers without a right.
_DENIALS = {
    "401": "No token, or one that is wrong or has ended",
    "403": "The token lacks a scope, or a page of another site sent the request",
    "408": "The request did not arrive in time",
    "404": "The token does not reach the namespace, or an object does not exist",
    "421": "The request names another host",
    "429": "Over the rate of the token",
}
#: The body of an update.
_UPDATE: dict[str, Any] = {
    "type": "object",
    "minProperties": 1,
    "description": "The fields to change, by name. Each kind of memory has its own: "
    + "; ".join(f"{kind}: {', '.join(names)}" for kind, names in UPDATABLE.items() if names),
    "properties": {"text": {"type": "string", "minLength": 1}},
    "additionalProperties": True,
}

#: The OpenAPI operation of the append, which is a plain route (see `event_routes`).
_APPEND: dict[str, Any] = {
    "tags": ["events"],
    "operationId": "append",
    "description": "Record one event, or a batch all or none. The events are on disk when the answer comes. Sending "
    "the same ids again is always safe.",
    "parameters": [
        {"name": "namespace", "in": "path", "required": True, "schema": {"type": "string"}},
        {
            "name": "retrieve",
            "in": "query",
            "schema": {"type": "boolean"},
            "description": "answer with the memories for the user's message too, as `retrieval`: a passive retrieval, "
            "whose other fields can be given as parameters",
        },
        {
            "name": "wait",
            "in": "query",
            "schema": {"type": "boolean"},
            "description": "with `retrieve`: wait for the embedding model while it loads, and embed new messages first",
        },
    ],
    **body_reference("EventsBody"),
    "responses": {
        "201": {"description": "Recorded: the events' ids, versions and hashes"},
        "200": {"description": "All had been recorded before"},
        "404": {"description": "A memory that an event names by id does not exist"},
        "409": {"description": "An id is taken by other content, or the head is not the expected version"},
        "413": {"description": "Over a limit"},
        "422": {"description": "Does not fit the catalogue, or only jobs may record it; `field` says where"},
        "410": {"description": "The event, its subject or its namespace was erased"},
        "503": {"description": "The disk failed"},
    },
}
#: The OpenAPI operation that adds chat messages, a plain route, too.
_ADD: dict[str, Any] = _APPEND | {
    "tags": ["memories"],
    "operationId": "add_messages",
    "description": 'Append the messages of a chat, `{"role", "content"}`, as `message.added` events. They are on '
    "disk when the answer comes. Sending the same ids again is always safe.",
    **body_reference("ChatBatch"),
    "responses": {status: text for status, text in _APPEND["responses"].items() if status != "404"},
}
