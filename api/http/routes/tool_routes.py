"""Tool routes: the tools of `api/mcp` as plain HTTP with an OpenAPI description, for hosts such as Open WebUI."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from recollect.api.http.routes.dependencies import memory_of
from recollect.api.http.routes.json_bodies import json_response, read_body
from recollect.api.http.routes.mcp_routes import own_namespace, tool_session
from recollect.api.http.routes.rights import GuardedRouter, allow
from recollect.api.mcp.tool_catalogue import TOOLS, ToolDefinition, run_tool
from recollect.events.validation import json_object

_PREFIX = "/tools"

router = GuardedRouter(include_in_schema=False)


@router.get(f"{_PREFIX}/openapi.json")
@allow(extent="any", audited=False)
async def read_tools() -> Response:
    """Return the OpenAPI description of the tools alone: a host makes a tool of each operation."""
    return json_response(tools_description())


def tools_description() -> dict[str, Any]:
    """Return the OpenAPI description of the tools. Their namespace is that of the token or the header."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Recollect",
            "description": "Long-term memory of past conversations: recall, remember, correct, forget.",
            "version": version("recollect"),
        },
        "servers": [{"url": _PREFIX}],
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "paths": {f"/{tool.name}": {"post": _operation(tool)} for tool in TOOLS},
    }


def _operation(tool: ToolDefinition) -> dict[str, Any]:
    """Return the description of one tool. Its schemas have no references, which some hosts do not resolve."""
    return {
        "operationId": tool.name,
        "summary": tool.title,
        "description": tool.description,
        "security": [{"token": sorted(tool.scopes)}],
        "requestBody": {"required": True, "content": {"application/json": {"schema": tool.input_schema}}},
        "responses": {
            "200": {"description": "The result", "content": {"application/json": {"schema": tool.output_schema}}},
            "422": {"description": "An argument is wrong; `detail` says what to do"},
        },
    }


def _add_route(tool: ToolDefinition) -> None:
    """Add the route of one tool."""

    @allow(*sorted(tool.scopes), extent="own", audited=False)
    async def answer(request: Request) -> Response:
        session = tool_session(request, await memory_of(request), own_namespace(request))
        arguments = json_object(await read_body(request))
        result = await run_in_threadpool(run_tool, session, tool, arguments)
        session.record(tool.name, tool.scopes, result)
        return json_response(result.data or {})

    router.add_plain_route(f"{_PREFIX}/{tool.name}", answer, "POST")


for _tool in TOOLS:
    _add_route(_tool)
