"""MCP command: serves the tools over the standard streams, for clients that start it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.api.cli.running_server import running_server
from recollect.api.cli.session import load_cli_settings, open_audit
from recollect.events.errors import AppendUnknown, RecollectError, ServerUnavailable

if TYPE_CHECKING:
    from recollect.api.mcp.tool_session import AppendedNote, ToolSession
    from recollect.api.memory.recollect import Recollect
    from recollect.api.retrieval.contract.request import RetrieveRequest
    from recollect.api.retrieval.contract.result_json import RetrievalJson
    from recollect.api.settings import Settings

ClientNamespace = Annotated[
    str, typer.Option("--namespace", envvar="RECOLLECT_NAMESPACE", help="The namespace; the model cannot choose one.")
]


def mcp(
    context: typer.Context,
    namespace: ClientNamespace,
    connector: Annotated[
        bool, typer.Option("--connector", help="Also offer the tools search and fetch, for connectors of ChatGPT.")
    ] = False,
    speaker: Annotated[
        str | None,
        typer.Option(help="Who asks, where several people share the namespace.", show_default=False),
    ] = None,
) -> None:
    """Serve the tools of a namespace to an MCP client, which starts this command and speaks over its streams.

    The running server of the data folder answers retrievals, if there is one. Otherwise this process loads the model.
    """
    from recollect.api.cli.process_log import configure_process_log  # noqa: PLC0415
    from recollect.api.mcp.mcp_server import require_sdk, serve_stdio  # noqa: PLC0415
    from recollect.events.limits import check_namespace  # noqa: PLC0415

    require_sdk()
    check_namespace(namespace)
    settings = load_cli_settings(context.obj)
    data = settings.storage.data
    configure_process_log(data)
    memory = _LateMemory(settings)
    try:
        has_connector_tools = connector or settings.server.mcp_connector_tools
        session = command_session(memory.get, data, namespace, has_connector_tools=has_connector_tools, speaker=speaker)
        serve_stdio(session, on_listed=memory.open_in_thread)
    finally:
        memory.close()


class _LateMemory:
    """The memory of the folder, which is opened at the first use: that takes a second, and clients list tools first."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._memory: Recollect | None = None

    def get(self) -> Recollect:
        """Return the memory; errors of opening it are raised, and the next call tries again."""
        with self._lock:
            if self._memory is None:
                from recollect.api.memory.recollect import Recollect  # noqa: PLC0415

                # A server extracts and embeds what this process appends; without one, this process does.
                self._memory = Recollect(settings=self._settings, workers=not _has_server(self._settings.storage.data))
            return self._memory

    def open_in_thread(self) -> None:
        """Begin to open the memory, so that the first call finds it open."""
        threading.Thread(target=self._open, daemon=True).start()

    def _open(self) -> None:
        # The call of a tool gets the error, too.
        try:
            self.get()
        except RecollectError as error:
            logging.getLogger(__name__).error("the memory cannot be opened: %s", error)

    def close(self) -> None:
        """Close the memory, if it was opened."""
        with self._lock:
            if self._memory is not None:
                self._memory.close()


def _has_server(data: Path) -> bool:
    """Return whether a server of the data folder answers."""
    server = running_server(data)
    if server is not None:
        server.close()
    return server is not None


def command_session(
    open_memory: Callable[[], Recollect],
    data: Path,
    namespace: str,
    *,
    has_connector_tools: bool = False,
    speaker: str | None = None,
) -> ToolSession:
    """Return the session of a command, which asks the running server of the folder and else its own memory."""
    from recollect.api.access.callers import LOCAL_CALLER  # noqa: PLC0415
    from recollect.api.mcp.tool_session import ToolSession, audited  # noqa: PLC0415

    door = _ServerOrMemory(open_memory, data, namespace)
    return ToolSession(
        open_memory=open_memory,
        namespace=namespace,
        caller=LOCAL_CALLER,
        retrieve=door.retrieve,
        append=door.append,
        record=audited(open_audit(data), LOCAL_CALLER, namespace),
        has_connector_tools=has_connector_tools,
        speaker=speaker,
    )


class _ServerOrMemory:
    """Retrieves and appends by the running server, and by the memory of this process when none answers.

    The same process does both, since it recognises notes that repeat what it has just recalled.
    """

    def __init__(self, open_memory: Callable[[], Recollect], data: Path, namespace: str) -> None:
        self._open_memory, self._data, self._namespace = open_memory, data, namespace

    def retrieve(self, request: RetrieveRequest) -> RetrievalJson:
        """Return the result of a retrieval as JSON."""
        from recollect.api.mcp.tool_session import retrieve_here  # noqa: PLC0415

        server = running_server(self._data)
        if server is not None:
            with server, suppress(ServerUnavailable):
                return server.retrieve(self._namespace, request, wait=True).as_json()
        return retrieve_here(self._open_memory(), self._namespace)(request)

    def append(self, events: list[dict[str, Any]]) -> AppendedNote:
        """Append the event of a note and those of its statements; all have ids, so they can be sent again."""
        from recollect.api.mcp.tool_session import AppendedNote, append_here  # noqa: PLC0415

        server = running_server(self._data)
        if server is not None:
            with server, suppress(ServerUnavailable, AppendUnknown):
                note = server.append(self._namespace, events)[0]
                return AppendedNote(note.id, note.version, note.duplicate)
        return append_here(self._open_memory(), self._namespace)(events)
