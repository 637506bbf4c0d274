"""A real server: what it listens on, what it takes from a connection, and commands next to it."""

from __future__ import annotations

import socket
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from support.access import headers
from support.command_line import recollect
from support.events import message
from support.server import Server, serving

from recollect.api.access.token_store import TokenStore


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Path, Server, str]]:
    """A server with a token, for all machines, that waits half a second for headers."""
    data = tmp_path_factory.mktemp("guarded")
    _, token = TokenStore(data / "tokens.json").create(
        name="bot", scopes=["read", "write"], patterns=["ann"], days=None
    )
    limits = {"HEADER_SECONDS_MAX": "0.5", "BODY_SECONDS_MAX": "0.5", "HOST": "0.0.0.0"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in limits.items():
            patch.setenv(f"RECOLLECT_{name}", value)
        with serving(data) as server:
            server.base = server.base.replace("0.0.0.0", "127.0.0.1")
            yield data, server, token


def answer_to(server: Server, content: bytes) -> bytes:
    """Send bytes and return all that comes until the server closes the connection."""
    address = urlsplit(server.base)
    with socket.create_connection((address.hostname or "", address.port or 0), timeout=20) as connection:
        connection.sendall(content)
        received = b""
        # A server that closes before it has read everything resets the connection.
        with suppress(ConnectionResetError):
            while part := connection.recv(65_536):
                received += part
    return received


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_a_start_for_other_machines_without_a_token_is_refused_with_what_to_do(tmp_path: Path, host: str) -> None:
    refused = recollect("serve", "--host", host, "--port", "0", data=tmp_path)
    assert refused.returncode == 2
    assert "recollect token create" in refused.stderr
    TokenStore(tmp_path / "tokens.json").create(name="old", scopes=["read"], patterns=["*"], days=-1)
    assert recollect("serve", "--host", host, "--port", "0", data=tmp_path).returncode == 2


def test_commands_of_the_folder_need_no_token(guarded: tuple[Path, Server, str]) -> None:
    data, server, token = guarded
    path = f"{server.base}/v1/namespaces/ann/events"
    assert httpx.post(path, json=message("the sofa is red"), headers=headers(token)).status_code == 201
    assert httpx.post(path, json=message("the sofa is red")).status_code == 401
    retrieved = recollect("retrieve", "ann", "which colour has the sofa?", data=data)
    assert "the sofa is red" in retrieved.stdout
    assert retrieved.stderr.count("does not answer") == 0
    assert recollect("settle", "ann", data=data).returncode == 0
    assert recollect("audit", "--namespace", "ann", data=data).stdout.count("\tlocal\t") >= 1


def test_a_connection_that_sends_nothing_or_half_a_request_is_closed(guarded: tuple[Path, Server, str]) -> None:
    _, server, _ = guarded
    assert b" 408 " in answer_to(server, b"")
    assert b" 408 " in answer_to(server, b"GET /health/ready HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
    half = b"POST /v1/namespaces/ann/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n"
    token = f"Authorization: {headers(guarded[2])['Authorization']}\r\n\r\n".encode()
    assert b" 408 " in answer_to(server, half + token + b'{"type"')


def test_headers_over_the_limit_are_refused_before_they_end(guarded: tuple[Path, Server, str]) -> None:
    _, server, _ = guarded
    line = b"GET /health/ready HTTP/1.1\r\nHost: localhost\r\nX-Long: "
    assert answer_to(server, line + b"a" * 400_000)[9:12] in (b"431", b"")
    assert b" 431 " in answer_to(server, line + b"a" * 66_000)
    many = b"".join(b"X-%d: %s\r\n" % (number, b"a" * 100) for number in range(800))
    refused = answer_to(server, b"GET /health/ready HTTP/1.1\r\nHost: localhost\r\n" + many + b"\r\n")
    assert refused[9:12] in (b"400", b"431", b"")
    with httpx.Client(base_url=server.base) as http:
        assert http.get("/health/ready", headers={"X-Long": "a" * 60_000}).status_code == 200
