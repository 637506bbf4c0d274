"""Stdio server: serves one session over the standard streams, as desktop clients start it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from recollect.api.mcp.mcp_server import create_mcp_server
from recollect.api.mcp.tool_session import ToolSession

#: Seconds between the list of the tools and `on_listed`: the answer is written first.
_PAUSE_SECONDS = 0.1


def serve_stdio(session: ToolSession, *, on_listed: Callable[[], object]) -> None:
    """Serve until the client closes the streams. Standard output has the protocol alone.

    Parameters:
        on_listed: called after the client has the list of the tools; it must return at once.
    """
    import anyio  # noqa: PLC0415
    from mcp.server.stdio import stdio_server  # noqa: PLC0415

    async def run() -> None:
        async with stdio_server() as (reader, writer):
            call = asyncio.get_running_loop().call_later
            server = create_mcp_server(session, on_listed=lambda: call(_PAUSE_SECONDS, on_listed))
            await server.run(reader, writer, server.create_initialization_options())

    anyio.run(run)
