"""Server process: one of the processes on the port, from its start to its end.

The processes that own namespaces accept connections. The background process, which runs worker and scheduler, gets the
connections of operators from them.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from functools import partial
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from types import FrameType

import uvicorn

from recollect.api.http.app import create_app
from recollect.api.http.bounded_protocol import BoundedProtocol, bounded_protocol
from recollect.api.http.processes.channels import CONNECTION, METRICS, NEW_EVENTS, Packet
from recollect.api.http.processes.connection_mover import ConnectionMover
from recollect.api.http.processes.namespace_routing import NamespaceRouting, process_of
from recollect.api.http.processes.process_metrics import ProcessMetrics
from recollect.api.http.processes.server_start import ServerShared
from recollect.api.http.uvicorn_config import MemoryServer, prepare_threads, uvicorn_config
from recollect.api.memory.recollect import Recollect
from recollect.events.errors import RecollectError

#: The background process gets a third of the processor time that a process gets which answers requests, while both want
#: it, so that nightly work and long imports do not delay answers.
_BACKGROUND_NICE = 5
#: The signals that stop a process.
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run_server_process(shared: ServerShared, number: int, started: Connection) -> None:
    """Serve until a signal stops the process, or its parent ends.

    Parameters:
        number: the number of the process.
        started: gets an empty text once the process serves, or why it cannot.
    """
    threading.Thread(target=_end_with_parent, name="recollect-parent-watch", daemon=True).start()
    for signal_number in STOP_SIGNALS:
        signal.signal(signal_number, _end)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    shared.configure_log()
    is_background = number == shared.table.servers
    if is_background:
        # On Linux it holds for this thread and for those that it starts, so it comes before the workers.
        os.nice(_BACKGROUND_NICE)
    try:
        server, memory = _open(shared, number, started)
    except RecollectError as error:
        started.send(str(error))
        raise SystemExit(2) from None
    if memory.parts.workers is not None:
        memory.parts.workers.allow_night_processes()
    if not is_background and shared.table.has_background and shared.settings.queue.broker == "memory://":
        memory.parts.log.on_append(partial(_notify, shared))
    # Uvicorn stops gracefully and then raises the signal again, which ends the process with the exit code 0.
    server.run(sockets=[] if is_background else [shared.listener])


def _open(shared: ServerShared, number: int, started: Connection) -> tuple[_Server, Recollect]:
    """Open the memory, and the server over it."""
    table, settings = shared.table, shared.settings
    prepare_threads()
    is_background = number == table.servers
    memory = Recollect(settings=settings, workers=is_background)
    # With workers, the model begins to load with them.
    memory.parts.vectors.embedder.start()
    app = create_app(
        memory, rates=shared.rates, local_secret=shared.local_secret, scans=is_background or not table.has_background
    )
    mover = ConnectionMover(number, table, shared.channels, NamespaceRouting(table, app.state.access.tokens))
    metrics = ProcessMetrics(number, table, shared.channels)
    app.state.processes, app.state.process_metrics = table, metrics
    config = uvicorn_config(app, settings.server, bounded_protocol(settings.server, mover))
    return _Server(config, shared, number, memory, mover, metrics, started), memory


class _Server(MemoryServer):
    """Uvicorn's server, which also serves the connections that other processes give to this one."""

    def __init__(
        self,
        config: uvicorn.Config,
        shared: ServerShared,
        number: int,
        memory: Recollect,
        mover: ConnectionMover,
        metrics: ProcessMetrics,
        started: Connection,
    ) -> None:
        super().__init__(config, memory.parts, partial(_owns, shared.table.servers, number))
        self._shared, self._number = shared, number
        self._mover, self._metrics, self._started = mover, metrics, started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve, and let the other processes know."""
        await super().startup(sockets)
        channels = self._shared.channels
        asyncio.get_running_loop().add_reader(channels.receiver(self._number), self._receive)
        self._shared.table.note_serving(self._number, is_serving=True)
        self._started.send("")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections, answer the running requests, and close the memory."""
        self._shared.table.note_serving(self._number, is_serving=False)
        self._receive()
        asyncio.get_running_loop().remove_reader(self._shared.channels.receiver(self._number))
        # The connections that were received are begun.
        await asyncio.sleep(0)
        await super().shutdown(sockets)

    def _receive(self) -> None:
        self._shared.channels.receive(self._number, self._take)

    def _take(self, packet: Packet) -> None:
        if packet.kind == CONNECTION:
            self._mover.take(packet, self._protocol)
        elif packet.kind == NEW_EVENTS and self.workers is not None:
            self.workers.notify(packet.content.decode())
        elif packet.kind == METRICS:
            self._metrics.answer(packet)
        elif packet.descriptor is not None:
            os.close(packet.descriptor)

    def _protocol(self) -> BoundedProtocol:
        """Return the protocol of a new connection, as uvicorn makes it for those that it accepts."""
        protocol_class: type[BoundedProtocol] = self.config.http_protocol_class  # pyright: ignore[reportAssignmentType]
        return protocol_class(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)


def _owns(servers: int, number: int, namespace: str) -> bool:
    return process_of(namespace.encode(errors="replace"), servers) == number


def _notify(shared: ServerShared, namespace: str) -> None:
    """Notify the background process of new events. A notification that is lost is made up for by its sweep."""
    shared.channels.send(shared.table.operator, NEW_EVENTS, namespace.encode())


def _end(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)


def _end_with_parent() -> None:
    """Wait for the end of the parent process, then end this one at once, so that the port and the folder are free."""
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
