"""MCP command: serves the tools over the standard streams, for clients that start it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from recollect.api.cli.process_log import configure_process_log
from recollect.api.cli.server_client import ServerGone, running_server
from recollect.api.cli.session import load_cli_settings

ClientNamespace = Annotated[
    str, typer.Option("--namespace", envvar="RECOLLECT_NAMESPACE", help="The namespace; the model cannot choose one.")
]


def mcp(
    context: typer.Context,
    namespace: ClientNamespace,
    connector: Annotated[
        bool, typer.Option("--connector", help="Also offer the tools search and fetch, for connectors of ChatGPT.")
    ] = False,
) -> None:
    """Serve the tools of a namespace to an MCP client, which starts this command and speaks over its streams.

    The running server of the data folder answers retrievals, if there is one. Otherwise this process loads the model.
    """
    from recollect.api.access.callers import LOCAL_CALLER  # noqa: PLC0415
    from recollect.api.mcp.mcp_server import require_sdk  # noqa: PLC0415
    from recollect.api.mcp.stdio_server import serve_stdio  # noqa: PLC0415
    from recollect.api.mcp.tool_session import ToolSession, record_nothing, retrieve_here  # noqa: PLC0415
    from recollect.api.memory.recollect import Recollect  # noqa: PLC0415
    from recollect.api.retrieval.contract.request import RetrieveRequest  # noqa: PLC0415
    from recollect.events.limits import check_namespace  # noqa: PLC0415

    require_sdk()
    check_namespace(namespace)
    settings = load_cli_settings(context.obj)
    data = settings.storage.data
    configure_process_log(data)
    # A server extracts and embeds what this process appends; without one, this process does.
    with Recollect(settings=settings, workers=running_server(data) is None) as memory:
        here = retrieve_here(memory, namespace)

        def retrieve(request: RetrieveRequest) -> dict[str, Any]:
            server = running_server(data)
            if server is None:
                return here(request)
            body = request.model_dump(mode="json", exclude_unset=True)
            try:
                return server.post("v1", "namespaces", namespace, "retrieve", body=body, wait="true")
            except ServerGone:
                return here(request)

        serve_stdio(
            ToolSession(
                memory=memory,
                namespace=namespace,
                caller=LOCAL_CALLER,
                retrieve=retrieve,
                record=record_nothing,
                has_connector_tools=connector or settings.server.mcp_connector_tools,
            )
        )
