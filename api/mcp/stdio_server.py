"""Stdio server: serves one session over the standard streams, as desktop clients start it."""

from __future__ import annotations

from recollect.api.mcp.mcp_server import create_mcp_server
from recollect.api.mcp.tool_session import ToolSession


def serve_stdio(session: ToolSession) -> None:
    """Serve until the client closes the streams. Standard output has the protocol alone."""
    server = create_mcp_server(session)
    import anyio  # noqa: PLC0415
    from mcp.server.stdio import stdio_server  # noqa: PLC0415

    async def run() -> None:
        async with stdio_server() as (reader, writer):
            await server.run(reader, writer, server.create_initialization_options())

    anyio.run(run)
