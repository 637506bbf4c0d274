"""Several server processes on one port: routing by namespace, shared limits, restarts and the end of all."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
import time
from collections.abc import Callable, Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import orjson
import pytest
from support.command_line import recollect
from support.events import message
from support.server import Server, serving

from recollect import Recollect
from recollect.api.http.processes.namespace_routing import process_of
from recollect.api.settings import load_settings
from recollect.events.envelope import DAY_US, now_us, rfc3339
from recollect.jobs.queue.due_namespaces import BATCH_NAMESPACES
from recollect.jobs.queue.registry import SCHEDULED_JOBS

NAMES = [f"user-{number}" for number in range(8)]
#: The namespaces with work for a night.
NIGHT = [f"night-{number:02}" for number in range(BATCH_NAMESPACES)]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Path, Server]]:
    """A server with two processes and the background process, which has missed a night."""
    data = tmp_path_factory.mktemp("processes")
    miss_night(data)
    with serving(data, "--processes", "2", environment={"RECOLLECT_HEADER_SECONDS_MAX": "1"}) as server:
        yield data, server


def miss_night(data: Path) -> None:
    """Append to a full batch of namespaces, and record that the last nights were three days ago."""
    said_at, night_us = datetime.now(UTC) - timedelta(days=1_500), now_us() - 3 * DAY_US
    with Recollect(settings=load_settings(data=data, embedding_model="none"), workers=False) as memory:
        for namespace in NIGHT:
            memory.append(namespace, message("I live in Porto.", session_id="s", occurred_at=said_at))
        for job in SCHEDULED_JOBS:
            memory.parts.run_store.claim(job, night_us, night_us, 1)
            memory.parts.run_store.end(job, night_us, night_us)


def post(http: httpx.Client, namespace: str, text: str) -> httpx.Response:
    return http.post(f"/v1/namespaces/{namespace}/events", json=message(text, name="Ann"))


def client_of(server: Server) -> httpx.Client:
    """Return a client with one connection."""
    return httpx.Client(base_url=server.base, limits=httpx.Limits(max_connections=1), timeout=30)


def until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def processes(http: httpx.Client) -> list[dict[str, Any]]:
    servers: list[dict[str, Any]] = http.get("/health").json()["servers"]
    return servers


def exchange(server: Server, *parts: bytes) -> bytes:
    """Send parts in segments of their own, and return all that comes until the server closes the connection."""
    address = urlsplit(server.base)
    with socket.create_connection((address.hostname or "", address.port or 0), timeout=20) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        received = b""
        for at, part in enumerate(parts):
            if at:
                time.sleep(0.02)
            connection.sendall(part)
        while piece := connection.recv(65_536):
            received += piece
    return received


def get(path: str, *headers: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: localhost", *headers, "", ""]).encode()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc names the children of a process")
def test_a_night_runs_in_processes_that_the_background_process_starts(served: tuple[Path, Server]) -> None:
    # The first test of the module: the processes of a night end 30 s after it. The scheduler starts it shortly after
    # the server answers; until then the report has the night of three days ago.
    def night(http: httpx.Client) -> dict[str, Any]:
        return next(job for job in http.get("/health").json()["jobs"] if job["job"] == "compact")

    yesterday = rfc3339(now_us() - DAY_US)
    with client_of(served[1]) as http:
        [background] = {process["pid"] for process in http.get("/health").json()["processes"]}
        until(lambda: night(http)["started"] > yesterday and night(http)["ended"])
        assert (night(http)["namespaces"], night(http)["errors"]) == (len(NIGHT), 0)
        assert night(http)["events"] >= len(NIGHT)
        assert children(background)


def children(pid: int) -> list[str]:
    """Return the ids of the processes that a process has started."""
    return [child for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]


def test_one_connection_reaches_every_namespace_and_each_is_answered_by_its_process(
    served: tuple[Path, Server],
) -> None:
    _, server = served
    with client_of(server) as http:
        for round_number in range(3):
            for name in NAMES:
                assert post(http, name, f"{name} likes tea {round_number}").status_code == 201
        for name in NAMES:
            found = http.post(f"/v1/namespaces/{name}/retrieve", json={"query": "tea", "also": [NAMES[0]]})
            assert found.json()["version"] >= 3
            assert name in found.json()["context"]
        assert {item["namespace"] for item in http.get("/v1/namespaces").json()["items"]} >= set(NAMES)
        metrics = http.get("/metrics").text
    appended = {
        process: float(count)
        for process, count in re.findall(
            r'^recollect_http_requests_total\{method="POST",process="(\w+)",route="[^"]*/events",status="201"\} (\S+)',
            metrics,
            re.MULTILINE,
        )
    }
    owners = [process_of(name.encode(), 2) for name in NAMES]
    assert appended == {str(number): 3.0 * owners.count(number) for number in (0, 1)}
    for number in ("0", "1", "background"):
        assert f'process_resident_memory_bytes{{process="{number}"}}' in metrics
    assert metrics.count("# TYPE recollect_http_requests_total") == 1


def test_the_background_process_projects_and_reads_what_the_others_append(served: tuple[Path, Server]) -> None:
    data, server = served
    with client_of(server) as http:
        post(http, "porto", "I live in Porto.")
        until(lambda: http.get("/v1/namespaces/porto/facts").json()["items"])
        report = http.get("/health").json()
    assert (report["status"], report["workers"]["running"]) == ("ok", True)
    assert [entry["process"] for entry in report["servers"]] == ["0", "1", "background"]
    assert "2 server processes" in recollect("doctor", "--no-model", data=data).stdout


def test_bodies_in_pieces_follow_a_connection_that_moves(served: tuple[Path, Server]) -> None:
    _, server = served
    body = orjson.dumps({"events": [message("the sofa is red " * 60) for _ in range(300)]})
    for name in NAMES[:4]:
        head = f"POST /v1/namespaces/{name}-large/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        whole = f"{head}Content-Length: {len(body)}\r\n\r\n".encode()
        chunks = f"{head}Transfer-Encoding: chunked\r\n\r\n{len(body):x}\r\n".encode()
        assert b'"version":300' in exchange(server, whole, body[:1], body[1:])
        assert b'"version":600' in exchange(server, chunks + body[:100_000], body[100_000:] + b"\r\n0\r\n\r\n")


def test_requests_in_one_piece_are_answered_in_order(served: tuple[Path, Server]) -> None:
    _, server = served
    pair = get("/v1/namespaces/a/version") + get("/v1/namespaces/b/version") + get("/health/live", "Connection: close")
    answers = exchange(server, pair)
    assert answers.count(b"HTTP/1.1 200") == 3
    assert answers.rindex(b'"version"') < answers.index(b'"live"')


@pytest.mark.parametrize(
    "content",
    [
        b"\r\n\r\n\r\n",
        b"GET\r\n\r\n",
        b"POST /v1/namespaces/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        b"GET /v1/namespaces/%ff%00/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        b"GET /v1/namespaces/../../etc/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        b"POST /v1/namespaces/ann/events HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /v1/namespaces/" + b"a" * 8_000 + b"/facts HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        b"GET /v1/namespaces/bob/facts HTTP/1.1\r\nHost: elsewhere.example\r\nConnection: close\r\n\r\n",
        b"GET /v1/namespaces/bob/facts HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Recollect-Namespace: \xff\xfe\r\nContent-Length: 0\r\n"
        b"Connection: close\r\n\r\n",
    ],
)
def test_malformed_requests_are_refused_and_harm_no_process(served: tuple[Path, Server], content: bytes) -> None:
    _, server = served
    refused = exchange(server, content)
    assert refused == b"" or re.match(rb"HTTP/1\.1 [34]\d\d ", refused)
    with client_of(server) as http:
        assert all(entry["serving"] and not entry["restarts"] for entry in processes(http))


def test_denials_of_an_address_are_counted_over_all_processes(served: tuple[Path, Server]) -> None:
    _, server = served
    wrong = {"Authorization": "Bearer rcl_wrong"}
    with client_of(server) as http:
        statuses = [http.get(f"/v1/namespaces/{NAMES[at % 8]}/facts", headers=wrong).status_code for at in range(70)]
    assert (statuses.count(401), statuses.count(429)) == (60, 10)


def test_a_killed_process_is_started_again_while_the_other_answers_its_namespaces(
    served: tuple[Path, Server],
) -> None:
    _, server = served
    with client_of(server) as http:
        before = processes(http)
        os.kill(before[0]["pid"], signal.SIGKILL)
        for name in NAMES:
            until(lambda name=name: _is_appended(http, name))
        until(lambda: [entry["restarts"] for entry in processes(http) if entry["serving"]] == [1, 0, 0])
        assert http.get("/health").json()["problems"] == []
        for name in NAMES:
            assert post(http, name, "again").status_code == 201


@pytest.mark.skipif(sys.platform != "linux", reason="/proc names the children of a process")
def test_a_server_of_which_all_started_processes_are_killed_twice_answers_again(tmp_path: Path) -> None:
    # A process between the first one and the servers, such as Python's fork server, would be among them.
    with serving(tmp_path, "--processes", "2") as server, client_of(server) as http:
        for _ in range(2):
            for pid in children(server.process.pid):
                os.kill(int(pid), signal.SIGKILL)
            until(lambda: all(_is_appended(http, name) for name in NAMES))
        assert server.stop() == 0


def _is_appended(http: httpx.Client, name: str) -> bool:
    try:
        return post(http, name, "meanwhile").status_code == 201
    except httpx.TransportError:
        # The process ended while it had the connection.
        return False


def test_a_start_that_fails_is_one_error_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "log.db").write_bytes(b"no database " * 100)
    refused = recollect("serve", "--processes", "2", "--port", "0", data=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.count("recollect: ") == 1
    assert "log.db" in refused.stderr


def test_a_signal_ends_all_processes_and_a_port_in_use_is_one_error(tmp_path: Path) -> None:
    with serving(tmp_path, "--processes", "2") as server:
        port = urlsplit(server.base).port
        with client_of(server) as http:
            pids = [entry["pid"] for entry in processes(http)]
        used = recollect("serve", "--processes", "2", "--port", str(port), data=tmp_path / "other")
        assert (used.returncode, "choose another" in used.stderr) == (2, True)
        assert server.stop() == 0
        assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_first_process_that_is_killed_leaves_none_behind(served: tuple[Path, Server]) -> None:
    # The last test: it ends the server of the module.
    _, server = served
    with client_of(server) as http:
        pids = [entry["pid"] for entry in processes(http)]
    server.kill()
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
