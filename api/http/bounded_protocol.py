"""Bounded protocol: uvicorn's HTTP protocol with limits on the headers' size and on the time a request takes to arrive.

Without them, a header of 300 MB is kept in memory, and connections that send nothing stay open.
"""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from recollect.api.settings import ServerSettings

_TOO_LARGE = (431, "Request Header Fields Too Large", "the headers are over the limit; send fewer")
_TOO_SLOW = (408, "Request Timeout", "the request did not arrive in time; send it again")
#: The key of a request's scope that is there when the server stops while the request is answered.
STOPPING = "recollect.stopping"
#: Bytes of the request line and the headers of a request. Servers behind proxies get some 8 KiB, with cookies 16 KiB.
_HEADER_BYTES_MAX = 64 << 10
#: Seconds by which a timer is late when the event loop was busy.
_LATE_SECONDS = 0.05
#: Seconds in which an event loop that was busy reads what waits.
_GRACE_SECONDS = 0.5


class Mover(Protocol):
    """Gives connections to other processes; see `processes/connection_mover.py`."""

    def move(self, transport: asyncio.Transport, data: bytes) -> bool:
        """Give away a connection whose next request begins with `data`; return whether it was."""
        ...


def bounded_protocol(settings: ServerSettings, connection_mover: Mover | None = None) -> type[BoundedProtocol]:
    """Return the protocol with the time limits of `settings`.

    Parameters:
        connection_mover: asked at the beginning of each request; None: all connections stay.
    """

    class Configured(BoundedProtocol):
        limits = settings
        mover = connection_mover

    return Configured


class BoundedProtocol(HttpToolsProtocol):
    """One connection."""

    limits: ServerSettings
    mover: Mover | None = None
    #: What another process has read of the connection, and gave to this one with it.
    first_bytes: bytes = b""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._deadline: asyncio.TimerHandle | None = None
        self._in_headers = True
        self._header_bytes = 0
        #: Whether the last request has arrived and the next one has not begun.
        self._between_requests = False
        #: Whether what arrives now begins a request.
        self._has_begun = False
        #: The request that is being answered, or was last.
        self._running: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for headers, also of a client that sends nothing."""
        super().connection_made(transport)
        self._wait(self.limits.header_seconds_max)
        if self.first_bytes:
            self._receive(self.first_bytes)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._wait(None)
        self._disconnect()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Let a request that is being answered end by itself, also one whose answer has no end."""
        super().shutdown()
        if self._running is not None and not self._running.response_complete:
            scope: Any = self._running.scope
            scope[STOPPING] = True

    def data_received(self, data: bytes) -> None:
        """Give the connection away if another process answers the request that begins; otherwise parse what arrived."""
        if self.mover is None or not self._is_at_request() or not self.mover.move(self.transport, data):
            self._receive(data)

    def _is_at_request(self) -> bool:
        """Return whether a request begins with the next byte, and all before it were answered."""
        if self._running is None:
            return self._in_headers and not self._header_bytes and not self._has_begun
        return self._between_requests and self._running.response_complete and not self.pipeline

    def _receive(self, data: bytes) -> None:
        """Parse what arrived; refuse headers that are over the limit and not complete."""
        is_idle = self._between_requests
        self._has_begun = False
        super().data_received(data)
        if is_idle and not self._has_begun and self._deadline is None:
            # Such as empty lines, which begin no request.
            self._wait(self.limits.header_seconds_max)
        if self._in_headers:
            self._header_bytes += len(data)
            if self._header_bytes > _HEADER_BYTES_MAX:
                self._refuse(*_TOO_LARGE)

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are not a request, unless an answer is in progress, and close the connection."""
        if self._running is None or self._running.response_complete:
            super().send_400_response(msg)
        self._close()

    def on_message_begin(self) -> None:
        """Begin to wait for the headers of a request."""
        super().on_message_begin()
        self._in_headers, self._header_bytes, self._between_requests = True, 0, False
        self._has_begun = True
        self._wait(self.limits.header_seconds_max)

    def on_headers_complete(self) -> None:
        """Begin to wait for the body, unless the headers are over the limit."""
        self._in_headers = False
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > _HEADER_BYTES_MAX:
            # The parser stops, and the request is answered with 400.
            raise ValueError("headers over the limit")
        self._wait(self.limits.body_seconds_max)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Stop waiting: the request has arrived."""
        self._between_requests = True
        self._wait(None)
        super().on_message_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def _close(self) -> None:
        """Close the connection."""
        self._disconnect()
        self.transport.close()

    def _disconnect(self) -> None:
        """Let no answer be written to the connection; uvicorn does it for the last of several requests alone."""
        for cycle in (self._running, *(cycle for cycle, _ in self.pipeline)):
            if cycle is not None:
                cycle.disconnected = True
                cycle.message_event.set()

    def _wait(self, seconds: float | None) -> None:
        """Set the time in which the next part has to arrive; None: there is none."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self._later(seconds)

    def _later(self, seconds: float) -> asyncio.TimerHandle:
        return self.loop.call_later(seconds, self._expire, self.loop.time() + seconds)

    def _expire(self, due: float) -> None:
        """Refuse a request that did not arrive in time; wait on while the server answers the one before.

        A timer that fires late means that the server was busy, and that the rest of the request may wait to be read.
        """
        cycle = self._running
        in_body = not self._in_headers and not self._between_requests
        is_answering = cycle is not None and not cycle.response_complete and not in_body
        if self.flow.read_paused or is_answering or self.loop.time() - due > _LATE_SECONDS:
            self._wait(_GRACE_SECONDS)
        else:
            self._refuse(*_TOO_SLOW)

    def _refuse(self, status: int, title: str, detail: str) -> None:
        """Answer with a problem, unless an answer has begun, and close the connection."""
        if self.transport.is_closing():
            return
        cycle = self._running
        is_silent = cycle is None or (cycle.response_complete if self._in_headers else not cycle.response_started)
        if is_silent:
            body = f'{{"type":"about:blank","title":"{title}","status":{status},"detail":"{detail}"}}'.encode()
            self.transport.write(
                f"HTTP/1.1 {status} {title}\r\ncontent-type: application/problem+json\r\n"
                f"content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode()
                + body
            )
        self._close()
