"""The parts of several server processes: routing, channels, and the table of processes."""

from __future__ import annotations

import os
import socket
from collections.abc import Generator
from pathlib import Path

import pytest

from recollect.api.access.token_store import TokenStore
from recollect.api.http.processes.channels import CONNECTION, NEW_EVENTS, PACKET_BYTES_MAX, Channels, Packet
from recollect.api.http.processes.namespace_routing import NamespaceRouting, process_of
from recollect.api.http.processes.process_table import ProcessTable

SERVERS = 4
ANN = process_of(b"ann", SERVERS)


@pytest.fixture
def channels() -> Generator[Channels]:
    made = Channels(2)
    yield made
    made.close()


def routing(tmp_path: Path, *, has_background: bool = True) -> NamespaceRouting:
    table = ProcessTable(SERVERS, has_background=has_background)
    return NamespaceRouting(table, TokenStore(tmp_path / "tokens.json"))


@pytest.mark.parametrize(
    "target",
    [
        "/v1/namespaces/ann/events",
        "/v1/namespaces/ann/events?retrieve=true",
        "/v1/namespaces/ann",
        "/v1/namespaces/ann?x=1/2",
        "/v1/namespaces/%61n%6E/facts",
        "/mcp/ann",
        "/mcp/ann/",
    ],
)
def test_a_namespace_in_a_path_has_one_process_however_it_is_written(tmp_path: Path, target: str) -> None:
    assert routing(tmp_path).process(f"POST {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode()) == ANN


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GET",
        b"GET  HTTP/1.1\r\n",
        b"GET /v1/namespaces HTTP/1.1\r\n\r\n",
        b"GET /v1/namespaces/ HTTP/1.1\r\n\r\n",
        b"GET /v1/namespaces/" + b"a" * 5_000 + b" HTTP/1.1\r\n\r\n",
        b"GET /v1/namespaces/ann/fac",
        b"GET /health/ready HTTP/1.1\r\n\r\n",
        b"GET /healthy HTTP/1.1\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /tools/recall HTTP/1.1\r\nAuthorization: Bearer rcl_unknown\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
def test_what_names_no_namespace_is_answered_where_it_arrives(tmp_path: Path, data: bytes) -> None:
    assert routing(tmp_path).process(data) is None


def test_the_namespace_of_mcp_and_tools_is_that_of_the_header_or_the_token(tmp_path: Path) -> None:
    store = TokenStore(tmp_path / "tokens.json")
    _, own = store.create(name="ann", scopes=["read"], patterns=["ann"], days=None)
    _, wide = store.create(name="all", scopes=["read"], patterns=["*"], days=None)
    routes = routing(tmp_path)
    for path in ("/mcp", "/mcp/", "/tools/recall"):
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\n"
        assert routes.process(f"{head}x-Recollect-NAMESPACE:  ann \r\n\r\n".encode()) == ANN
        assert routes.process(f"{head}authorization: bearer {own}\r\n\r\n".encode()) == ANN
        assert routes.process(f"{head}Authorization: Bearer {wide}\r\n\r\n".encode()) is None
        # A body is not a header.
        assert routes.process(f"{head}\r\nx\r\nX-Recollect-Namespace: ann\r\n\r\n".encode()) is None


def test_operators_are_answered_by_the_process_that_knows_the_background_work(tmp_path: Path) -> None:
    for has_background, number in ((True, SERVERS), (False, 0)):
        routes = routing(tmp_path, has_background=has_background)
        for path in ("/health", "/metrics?x=1", "/v1/dead-letters", "/v1/dead-letters/requeue"):
            assert routes.process(f"GET {path} HTTP/1.1\r\n\r\n".encode()) == number


def test_a_channel_passes_packets_with_their_connection(channels: Channels) -> None:
    near, far = socket.socketpair()
    received: list[Packet] = []
    with near, far:
        assert channels.send(1, CONNECTION, b"x" * 256_000, near.fileno())
        assert channels.send(1, NEW_EVENTS, b"ann")
        channels.receive(0, received.append)
        assert received == []
        channels.receive(1, received.append)
        connection, news = received
        assert (connection.kind, len(connection.content)) == (CONNECTION, 256_000)
        assert (news.kind, news.content, news.descriptor) == (NEW_EVENTS, b"ann", None)
        assert connection.descriptor is not None
        os.write(connection.descriptor, b"hello")
        os.close(connection.descriptor)
        assert far.recv(10) == b"hello"


def test_a_channel_that_is_full_refuses_and_closes_what_waits_in_it(channels: Channels) -> None:
    near, far = socket.socketpair()
    with far:
        with near:
            sent = 0
            while channels.send(1, CONNECTION, b"x" * 100_000, near.fileno()):
                sent += 1
            assert sent >= 1
            assert not channels.send(1, CONNECTION, b"x" * 100 * PACKET_BYTES_MAX, near.fileno())
        channels.close()
        # All copies of the other end are closed.
        assert far.recv(1) == b""


def test_the_table_says_which_processes_serve_and_what_is_wrong(tmp_path: Path) -> None:
    table = ProcessTable(2, has_background=True)
    for number in range(3):
        table.note_start(number, 100 + number)
        table.note_serving(number, is_serving=True)
    assert table.problems() == []
    table.note_start(1, 200)
    assert [entry["serving"] for entry in table.as_json()] == [True, False, True]
    assert [entry["restarts"] for entry in table.as_json()] == [0, 1, 0]
    assert [text.partition(" does")[0] for text in table.problems()] == ["server process 1"]
    assert table.as_json()[2]["process"] == "background"
