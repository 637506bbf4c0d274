"""Raw fuzz: bytes on a socket that no client of HTTP would send."""

from __future__ import annotations

import random
import socket
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice

from fuzz_server import FuzzServer

#: Seconds after which a case counts as hung: the server's own limits are 1 s, and a busy machine delays it.
_HANG_SECONDS = 30.0
#: Cases that are sent at a time, and between two lines of progress. Half a request waits for the server's limit.
_THREADS = 24
_BATCH = 1_000
_PATHS = (
    "/v1/namespaces/raw/events",
    "/v1/namespaces/raw/messages",
    "/v1/namespaces/raw/retrieve",
    "/v1/namespaces/raw/sessions/s/window",
    "/v1/namespaces/raw/memories/m/pin",
    "/v1/namespaces/raw/facts",
    "/v1/namespaces/raw/graph",
    "/v1/namespaces/raw/traces/t",
    "/v1/namespaces",
    "/health",
)
_METHODS = ("GET", "POST", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS", "TRACE", "get", "BREW")
_BODIES = (
    b'{"type":"message.added","payload":{"role":"user","text":"hello"}}',
    b'{"query":"hello"}',
    b'{"messages":[{"role":"user","content":"hi"}]}',
    b'{"budget_tokens":100}',
    b"{}",
    b"[" * 100_000,
    b'{"a":' * 5_000,
    b'{"query":"\\ud800"}',
    b'{"query":"\\u0000"}',
    b"\xff\xfe{}",
    b'{"query":1e400}',
    b'{"query":"x","limit":' + b"9" * 5_000 + b"}",
    b"\x00" * 100,
)
_NAMES = ("..", "%2e%2e", "%00", "a%0d%0aX: y", "%ff", "a" * 300, "a%2fb", "\u202e", "*", "con", "a;b", "%u0041")
_HEADERS = (
    b"Content-Length: -5",
    b"Content-Length: 99999999999999999999",
    b"Content-Length: 5\r\nContent-Length: 50",
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: chunked\r\nContent-Length: 4",
    b"Transfer-Encoding: identity, chunked",
    b"Expect: 100-continue",
    b"Connection: Upgrade\r\nUpgrade: websocket",
    b"Host: localhost\r\nHost: evil.example",
    b"Authorization: Bearer \xff\xfe",
    b"Authorization: Bearer rcl_",
    b"Origin: http://\xe4",
    b"X: a\r\n b",
    b": empty",
    b"X-Forwarded-For: \x1b[31m",
    b"Range: bytes=0-",
    b"Content-Encoding: gzip",
)
_INSERTED = (b"\0", b"\r", b"\n", b"\xff", b"%00", b" ", b"\t", b"{", b'"', b"\r\n\r\n", b"0\r\n\r\n")


def fuzz_raw(server: FuzzServer, cases: int, seed: int) -> bool:
    """Send `cases` byte strings; return whether each was answered without a 5xx, or its connection closed."""
    chance, statuses, failures = random.Random(seed), Counter[str](), list[str]()
    token = server.token("raw").encode()
    contents = (chance.choice(_GENERATORS)(chance, token) for _ in range(cases))
    with ThreadPoolExecutor(_THREADS) as threads:
        while batch := list(islice(contents, _BATCH)):
            for content, status in zip(batch, threads.map(partial(_status, server), batch), strict=True):
                statuses[status] += 1
                if status.startswith("5") or status == "hung":
                    failures.append(f"{status}: {content[:300]!r}")
            print(f"{statuses.total()} of {cases}: {dict(statuses.most_common())}", flush=True)
    failures += server.logged_errors()
    print(f"{cases} cases: {dict(statuses.most_common())}")
    for failure in failures[:20]:
        print(failure)
    return not failures


def _status(server: FuzzServer, content: bytes) -> str:
    """Return the status of the first answer to `content`, `closed` without one, `hung` when nothing comes."""
    received = b""
    try:
        with socket.create_connection(server.address, timeout=_HANG_SECONDS) as connection:
            connection.sendall(content)
            while len(received) < 12 and (part := connection.recv(4_096)):
                received += part
    except TimeoutError:
        return "hung"
    except OSError:
        return "closed"
    return received[9:12].decode("latin-1") if received.startswith(b"HTTP/") else "closed"


def _request(chance: random.Random, token: bytes) -> bytes:
    """Return a request with a body, which the server would accept."""
    body = chance.choice(_BODIES[:5])
    lines = [
        f"{chance.choice(_METHODS[:4])} {chance.choice(_PATHS)} HTTP/1.1".encode(),
        b"Host: localhost",
        b"Authorization: Bearer " + token,
        b"Content-Length: %d" % len(body),
    ]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def _noise(chance: random.Random, _token: bytes) -> bytes:
    return chance.randbytes(chance.choice((1, 10, 200, 5_000))) + chance.choice((b"", b"\r\n\r\n"))


def _mutated(chance: random.Random, token: bytes) -> bytes:
    content = bytearray(_request(chance, token))
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(content))
        match chance.randrange(3):
            case 0:
                content[at] = chance.randrange(256)
            case 1:
                del content[at : at + chance.choice((1, 1, 1, 40))]
            case _:
                content[at:at] = chance.choice(_INSERTED)
    return bytes(content)


def _odd(chance: random.Random, token: bytes) -> bytes:
    """Return a request with an odd method, header and body."""
    body = chance.choice(_BODIES)
    line = f"{chance.choice(_METHODS)} {chance.choice(_PATHS)} HTTP/{chance.choice(('1.1', '1.0', '0.9', '9.9'))}"
    headers = [b"Host: localhost", b"Authorization: Bearer " + token, chance.choice(_HEADERS)]
    if chance.random() < 0.5:
        headers.append(b"Content-Length: %d" % (len(body) + chance.choice((0, 0, -3, 300))))
    chance.shuffle(headers)
    return b"\r\n".join([line.encode(), *headers]) + b"\r\n\r\n" + body


def _named(chance: random.Random, token: bytes) -> bytes:
    """Return a request with hostile text in its path and its query."""
    path = chance.choice(_PATHS).replace("raw", chance.choice((*_NAMES, "raw")), 1)
    query = f"?{chance.choice(('after', 'limit', 'as_of', 'entity', 'metadata.a', 'retrieve'))}={chance.choice(_NAMES)}"
    line = f"{chance.choice(_METHODS[:4])} {path}{query} HTTP/1.1\r\n".encode()
    return line + b"Host: localhost\r\nAuthorization: Bearer " + token + b"\r\nContent-Length: 2\r\n\r\n{}"


def _pipelined(chance: random.Random, token: bytes) -> bytes:
    return b"".join(_request(chance, token) for _ in range(chance.randint(2, 5)))


_GENERATORS: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    _noise,
    _mutated,
    _mutated,
    _request,
    _odd,
    _named,
    _pipelined,
)
