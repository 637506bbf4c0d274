"""MCP routes: the tools of `api/mcp` over streamable HTTP, for the namespace of the URL, a header or the token."""

from __future__ import annotations

from typing import Any

import orjson
from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from recollect.api.http.routes.dependencies import memory_of
from recollect.api.http.routes.json_bodies import read_body
from recollect.api.http.routes.rights import GuardedRouter, allow, caller_of
from recollect.api.mcp.mcp_server import create_mcp_server, load_sdk
from recollect.api.mcp.tool_session import ToolSession, append_here, audited, retrieve_here
from recollect.api.memory.recollect import Recollect
from recollect.events.errors import InvalidInput, NotSupported
from recollect.events.limits import REQUEST_BYTES_MAX, check_namespace
from recollect.events.validation import json_object

#: The header that names the namespace. Hosts fill it for each of their users: `user-{{USER_ID}}` in Open WebUI.
NAMESPACE_HEADER = "X-Recollect-Namespace"
#: The header that names who asks, where several people share a namespace.
SPEAKER_HEADER = "X-Recollect-Speaker"

#: The code of JSON-RPC for errors of a server.
_SERVER_ERROR = -32000

router = GuardedRouter(include_in_schema=False)


@allow("read", audited=False)
async def serve_namespace(request: Request) -> Response:
    """Answer a message of an MCP client for the namespace of the path."""
    return await _response(request, request.path_params["namespace"])


@allow("read", extent="own", audited=False)
async def serve_own_namespace(request: Request) -> Response:
    """Answer a message of an MCP client for the namespace of its header, or the only one of its token."""
    return await _response(request, own_namespace(request))


# Clients name the URL with and without a slash, and not all of them follow a redirect of a POST.
for _end in ("", "/"):
    router.add_plain_route(f"/mcp{_end}", serve_own_namespace, "POST")
    router.add_plain_route(f"/mcp/{{namespace}}{_end}", serve_namespace, "POST")


def own_namespace(request: Request) -> str:
    """Return the namespace that the operator's configuration of a host names in a header, or the only one of a token.

    Raises:
        NotFound: the header names one that the token does not reach. InvalidNamespace: the header.
        InvalidInput: there is no header, and the caller reaches several namespaces.
    """
    caller, header = caller_of(request), request.headers.get(NAMESPACE_HEADER)
    if header is not None:
        caller.require_namespace(header)
        return check_namespace(header)
    if len(caller.patterns) != 1 or caller.patterns[0].endswith("*"):
        raise InvalidInput(
            f"this caller reaches several namespaces; add the name to the URL, such as /mcp/ann, or the header "
            f"{NAMESPACE_HEADER}, or use a token of one namespace",
            field="namespace",
        )
    return caller.patterns[0]


def tool_session(request: Request, memory: Recollect, namespace: str) -> ToolSession:
    """Return the session of one request, whose calls are lines of the audit log."""
    caller = caller_of(request)

    return ToolSession(
        open_memory=lambda: memory,
        namespace=check_namespace(namespace),
        caller=caller,
        retrieve=retrieve_here(memory, namespace),
        append=append_here(memory, namespace),
        record=audited(request.app.state.access.audit, caller, namespace),
        has_connector_tools=memory.parts.settings.server.mcp_connector_tools,
        speaker=request.headers.get(SPEAKER_HEADER) or None,
    )


async def _response(request: Request, namespace: str) -> Response:
    """Return the response of the SDK; when it is not installed, the error with the install command."""
    session = tool_session(request, await memory_of(request), namespace)
    try:
        # The first request imports the SDK, for which others must not wait.
        await run_in_threadpool(load_sdk)
    except NotSupported as error:
        return _error_response(await read_body(request), error)
    return _McpResponse(create_mcp_server(session))


def _error_response(body: bytes, error: NotSupported) -> Response:
    """Return an error as the answer to a message: clients show it, but not the body of an answer with status 501."""
    answer = {
        "jsonrpc": "2.0",
        "id": json_object(body).get("id"),
        "error": {"code": _SERVER_ERROR, "message": str(error)},
    }
    return Response(orjson.dumps(answer), media_type="application/json")


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
