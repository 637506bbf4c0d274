"""Process entry: where a server process begins. It imports the server late, so that the first process stays small."""

from __future__ import annotations

from multiprocessing.connection import Connection

from recollect.api.http.processes.server_start import ServerShared

#: The module that is imported late. The process that server processes are forked from imports it in advance.
PRELOADED = "recollect.api.http.processes.server_process"


def start_server_process(shared: ServerShared, number: int, started: Connection) -> None:
    """Run a server process; see `server_process.run_server_process`."""
    from recollect.api.http.processes.server_process import run_server_process  # noqa: PLC0415

    run_server_process(shared, number, started)
