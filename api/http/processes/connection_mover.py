"""Connection mover: gives a connection, at the beginning of a request, to the process of the request's namespace.

The process gets the connection itself with the bytes that were read, and not a copy of the request: it sees the address
of the client, applies all limits and answers directly. A connection for one namespace moves once; one that changes
between namespaces moves when the next one has another process.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from typing import Any

from recollect.api.http.bounded_protocol import BoundedProtocol
from recollect.api.http.processes.channels import CONNECTION, PACKET_BYTES_MAX, Channels, Packet
from recollect.api.http.processes.namespace_routing import NamespaceRouting
from recollect.api.http.processes.process_table import ProcessTable
from recollect.events.instruments import Counter

_MOVED = Counter("recollect_http_connections_moved", "Connections given to the process of their next request")


class ConnectionMover:
    """Sends connections to other processes, and takes those that they send.

    Parameters:
        number: the number of this process.
    """

    def __init__(self, number: int, table: ProcessTable, channels: Channels, routing: NamespaceRouting) -> None:
        self._number, self._table, self._channels, self._routing = number, table, channels, routing
        self._tasks = set[asyncio.Task[Any]]()

    def move(self, transport: asyncio.Transport, data: bytes) -> bool:
        """Give a connection whose next request begins with `data` to the process of the request.

        Returns:
            False when it stays: the request is this process's, or the other process takes no more.
        """
        owner = self._routing.process(data)
        if owner is None or owner == self._number or not self._table.is_serving(owner):
            return False
        # Bytes of the answer before this request that were not sent yet would be lost.
        if len(data) >= PACKET_BYTES_MAX or transport.is_closing() or transport.get_write_buffer_size():
            return False
        # No byte is read here after the other process reads.
        transport.pause_reading()
        descriptor: int = transport.get_extra_info("socket").fileno()
        if not self._channels.send(owner, CONNECTION, data, descriptor):
            transport.resume_reading()
            return False
        # It closes the descriptor of this process; the connection stays open in the other one.
        transport.abort()
        _MOVED.add()
        return True

    def take(self, packet: Packet, protocol: Callable[[], BoundedProtocol]) -> None:
        """Serve a connection that another process gave to this one."""
        if packet.descriptor is None:
            return
        loop = asyncio.get_running_loop()
        try:
            connection = socket.socket(fileno=packet.descriptor)
            connection.setblocking(False)
        except OSError:
            os.close(packet.descriptor)
            return

        def begin() -> BoundedProtocol:
            made = protocol()
            made.first_bytes = packet.content
            return made

        task = loop.create_task(_accept(loop, connection, begin))
        # The loop keeps no reference to its tasks.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _accept(
    loop: asyncio.AbstractEventLoop, connection: socket.socket, protocol: Callable[[], BoundedProtocol]
) -> None:
    try:
        await loop.connect_accepted_socket(protocol, connection)
    except OSError:
        # The client has hung up.
        connection.close()
