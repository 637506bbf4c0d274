"""Flaky proxy: a real socket before a server, which loses, delays or replaces answers as a test says."""

from __future__ import annotations

import socket
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from urllib.parse import urlsplit

from msgspec import Struct, field

#: What happens to a request: ``pass``; ``lose``: the server answers and the answer is lost; ``hang``: it has none;
#: or these bytes are the answer, and the server is not asked. A number: the connection is cut after so many
#: bytes of the answer.
Fate = str | bytes | int


def answer(status: str, body: bytes = b"{}", *headers: str) -> bytes:
    """Return an HTTP answer, such as one of ``503 Service Unavailable``."""
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Proxy(Struct):
    """A running proxy."""

    base: str
    #: The fates of the next requests; requests after the last one pass.
    fates: list[Fate] = field(default_factory=list[Fate])
    #: The requests that arrived, each with its head and its body.
    requests: list[bytes] = field(default_factory=list[bytes])
    closing: threading.Event = field(default_factory=threading.Event)


@contextmanager
def flaky_proxy(target: str, fates: Sequence[Fate] = ()) -> Generator[Proxy]:
    """Run a proxy before the server at `target`."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy = Proxy(f"http://127.0.0.1:{listener.getsockname()[1]}", list(fates))
        thread = threading.Thread(target=_accept, args=(listener, target, proxy), daemon=True)
        thread.start()
        yield proxy
        proxy.closing.set()
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def _accept(listener: socket.socket, target: str, proxy: Proxy) -> None:
    while not proxy.closing.is_set():
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_serve, args=(connection, target, proxy), daemon=True).start()


def _serve(connection: socket.socket, target: str, proxy: Proxy) -> None:
    """Answer one request, and close the connection."""
    with connection:
        request = _message(connection)
        if not request:
            return
        proxy.requests.append(request)
        fate = proxy.fates.pop(0) if proxy.fates else "pass"
        if isinstance(fate, bytes):
            connection.sendall(_closing(fate))
            return
        if fate == "hang":
            proxy.closing.wait()
            return
        url = urlsplit(target)
        with socket.create_connection((url.hostname or "", url.port or 80)) as server:
            server.sendall(request)
            if isinstance(fate, int):
                _relay(server, connection, fate)
                return
            answered = _message(server)
        if fate == "pass":
            connection.sendall(_closing(answered))


def _relay(server: socket.socket, connection: socket.socket, left: int) -> None:
    """Send on what comes, at most `left` bytes."""
    while left > 0 and (part := server.recv(min(left, 65_536))):
        connection.sendall(part)
        left -= len(part)


def _closing(answered: bytes) -> bytes:
    """Return an answer that ends its connection, on which a client may send its next request else."""
    return answered.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n", 1)


def _message(connection: socket.socket) -> bytes:
    """Return one HTTP message with a content length; what has come when the other end closes before."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65_536)
        if not part:
            return data
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    left = int(lengths[0].partition(b":")[2]) - len(body) if lengths else 0
    while left > 0:
        part = connection.recv(65_536)
        if not part:
            break
        data += part
        left -= len(part)
    return data
