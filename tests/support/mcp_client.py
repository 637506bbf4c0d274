"""The SDK's real MCP client: over a server object in memory, or over the application, without a socket."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Literal

import httpx2
import orjson
from fastapi import FastAPI
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from recollect import Recollect
from recollect.api.access.callers import LOCAL_CALLER, Caller
from recollect.api.mcp.mcp_server import create_mcp_server
from recollect.api.mcp.tool_session import ToolSession, append_here, retrieve_here

#: `legacy` clients begin with the handshake of the protocol before 2026-07-28.
Mode = Literal["auto", "legacy"]


def session_of(
    memory: Recollect, namespace: str = "ann", *, caller: Caller = LOCAL_CALLER, connector: bool = False
) -> ToolSession:
    return ToolSession(
        open_memory=lambda: memory,
        namespace=namespace,
        caller=caller,
        retrieve=retrieve_here(memory, namespace),
        append=append_here(memory, namespace),
        record=lambda _tool, _scopes, _answer: None,
        has_connector_tools=connector,
    )


def client_of(session: ToolSession, mode: Mode = "auto") -> Client:
    return Client(create_mcp_server(session), mode=mode)


@asynccontextmanager
async def http_client_of(
    app: FastAPI, path: str, headers: dict[str, str], mode: Mode = "auto"
) -> AsyncGenerator[Client]:
    """Yield a client of the application's `/mcp`."""
    transport = httpx2.ASGITransport(app=app, client=("127.0.0.1", 50_000))
    async with httpx2.AsyncClient(transport=transport, headers=headers, timeout=30) as http:
        url = f"http://127.0.0.1:8787{path}"
        async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
            yield client


def text_of(result: CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


def data_of(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, text_of(result)
    data: dict[str, Any] = orjson.loads(orjson.dumps(result.structured_content))
    return data
