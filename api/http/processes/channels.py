"""Channels: how the server processes send each other connections, names of namespaces and questions.

Each process has one channel, a pair of Unix sockets of packets. The first process keeps both ends, so that what was
sent to a process that is killed waits for its successor. Nothing outside reaches them: the sockets have no names.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Callable
from typing import NamedTuple

#: Bytes of one packet: what uvloop reads at once (256,000), and more.
PACKET_BYTES_MAX = 300_000
#: Packets that a process takes before its event loop does other work.
_PACKETS_AT_ONCE = 32
#: macOS has no sockets of packets in order; its datagrams within a machine are not lost either.
_KIND = socket.SOCK_SEQPACKET if sys.platform == "linux" else socket.SOCK_DGRAM
#: Room for one file descriptor next to a packet.
_RIGHTS_BYTES = socket.CMSG_SPACE(4) if hasattr(socket, "CMSG_SPACE") else 0

#: The first byte of a packet: a connection with the first bytes of its request; the name of a namespace that has new
#: events; a question for the metrics, with the socket for the answer.
CONNECTION, NEW_EVENTS, METRICS = b"c", b"n", b"m"


class Packet(NamedTuple):
    """One packet that arrived."""

    kind: bytes
    content: bytes
    #: The file descriptor that came with it, which the receiver closes; None without one.
    descriptor: int | None


class Channels:
    """The channels of all processes. A process that is forked from this one shares them.

    Parameters:
        size: the number of processes.
    """

    def __init__(self, size: int) -> None:
        pairs = [socket.socketpair(socket.AF_UNIX, _KIND) for _ in range(size)]
        self._receivers = [receiver for receiver, _ in pairs]
        self._senders = [sender for _, sender in pairs]
        for end in (*self._receivers, *self._senders):
            end.setblocking(False)
            # The system grants as much as it allows; a packet that is larger than that is not sent.
            for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                end.setsockopt(socket.SOL_SOCKET, option, 4 * PACKET_BYTES_MAX)

    def send(self, number: int, kind: bytes, content: bytes = b"", descriptor: int | None = None) -> bool:
        """Send a packet to a process without waiting.

        Returns:
            False when it cannot be sent: the channel is full, or the packet too large.
        """
        sender = self._senders[number]
        try:
            if descriptor is None:
                sender.send(kind + content)
            else:
                socket.send_fds(sender, [kind, content], [descriptor])
        except OSError:
            return False
        return True

    def receiver(self, number: int) -> int:
        """Return the file descriptor that is readable when a packet for a process waits."""
        return self._receivers[number].fileno()

    def receive(self, number: int, take: Callable[[Packet], None]) -> None:
        """Call `take` with the packets that wait for a process, up to a number."""
        buffer = bytearray(PACKET_BYTES_MAX)
        for _ in range(_PACKETS_AT_ONCE):
            try:
                size, rights, _, _ = self._receivers[number].recvmsg_into([buffer], _RIGHTS_BYTES)
            except (BlockingIOError, InterruptedError):
                return
            if size:
                take(Packet(bytes(buffer[:1]), bytes(buffer[1:size]), _descriptor(rights)))

    def close(self) -> None:
        """Close both ends, and the connections that wait in them."""
        for number, _ in enumerate(self._receivers):
            with contextlib.suppress(OSError):
                self.receive(number, _drop)
        for end in (*self._receivers, *self._senders):
            end.close()


def _descriptor(rights: list[tuple[int, int, bytes]]) -> int | None:
    """Return the file descriptor of a packet."""
    for level, kind, content in rights:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS) and len(content) >= 4:
            return int.from_bytes(content[:4], sys.byteorder)
    return None


def _drop(packet: Packet) -> None:
    if packet.descriptor is not None:
        os.close(packet.descriptor)
