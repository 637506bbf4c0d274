"""MCP routes: the tools of `api/mcp` over streamable HTTP, for one namespace, that of the URL or of the token."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from recollect.api.access import callers
from recollect.api.access.audit_log import AuditEntry
from recollect.api.access.callers import Caller
from recollect.api.http.routes.dependencies import memory_of
from recollect.api.http.routes.rights import GuardedRouter, allow, caller_of
from recollect.api.mcp.mcp_server import create_mcp_server
from recollect.api.mcp.tool_results import ToolAnswer
from recollect.api.mcp.tool_session import ToolSession, retrieve_here
from recollect.api.memory.recollect import Recollect
from recollect.events.errors import InvalidInput
from recollect.events.limits import REQUEST_BYTES_MAX, check_namespace

router = GuardedRouter(include_in_schema=False)


@allow("read")
async def serve_namespace(request: Request) -> Response:
    """Answer a message of an MCP client for the namespace of the path."""
    return await _response(request, request.path_params["namespace"])


@allow("read", extent="own")
async def serve_own_namespace(request: Request) -> Response:
    """Answer a message of an MCP client for the only namespace of its token."""
    return await _response(request, sole_namespace(caller_of(request)))


# Clients name the URL with and without a slash, and not all of them follow a redirect of a POST.
for _end in ("", "/"):
    router.add_plain_route(f"/mcp{_end}", serve_own_namespace, "POST")
    router.add_plain_route(f"/mcp/{{namespace}}{_end}", serve_namespace, "POST")


def sole_namespace(caller: Caller) -> str:
    """Return the namespace of a token for one namespace.

    Raises:
        InvalidInput: the caller reaches several namespaces.
    """
    if len(caller.patterns) != 1 or caller.patterns[0].endswith("*"):
        raise InvalidInput(
            "this caller reaches several namespaces; add the name to the URL, such as /mcp/ann, or use a token of one",
            field="namespace",
        )
    return caller.patterns[0]


def tool_session(request: Request, memory: Recollect, namespace: str) -> ToolSession:
    """Return the session of one request, whose calls are lines of the audit log."""
    caller = caller_of(request)

    def record(tool: str, scopes: frozenset[callers.Scope], answer: ToolAnswer) -> None:
        entry = AuditEntry(
            token_id=caller.id,
            namespace=namespace,
            route=f"MCP {tool}",
            scopes=tuple(sorted(scopes)),
            status=answer.status,
            count=answer.count,
        )
        request.app.state.access.audit.record(entry)

    return ToolSession(
        memory=memory,
        namespace=check_namespace(namespace),
        caller=caller,
        retrieve=retrieve_here(memory, namespace),
        record=record,
        has_connector_tools=memory.parts.settings.server.mcp_connector_tools,
    )


async def _response(request: Request, namespace: str) -> Response:
    """Return the response of the SDK; raise `NotSupported` when the SDK is not installed."""
    server = create_mcp_server(tool_session(request, await memory_of(request), namespace))
    return _McpResponse(server)


class _McpResponse(Response):
    """The response of an MCP server to the message in the request.

    It keeps no state between messages, so each message has a server and a transport of its own.
    """

    def __init__(self, server: Any) -> None:
        super().__init__()
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the message, and send the answer as JSON."""
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager  # noqa: PLC0415
        from mcp.server.transport_security import TransportSecuritySettings  # noqa: PLC0415

        manager = StreamableHTTPSessionManager(
            self._server,
            json_response=True,
            stateless=True,
            # `OriginGuard` has compared Host and Origin with the names of this server.
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
            max_request_body_size=REQUEST_BYTES_MAX,
        )
        async with manager.run():
            await manager.handle_request(scope, receive, send)
