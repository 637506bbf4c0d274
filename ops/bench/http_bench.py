"""Appends and retrievals over HTTP by 1, 4, 16 and 32 connections, with one and with two server processes.

Floors of the same run: for appends a bare FastAPI route that reads the body and echoes it; for retrievals the same
calls in one Python process, without HTTP. Client and server share the cores, on both sides of each comparison.
The output also has the server's processor time for one request, with the background work done meanwhile: it shows what
more cores would do, and other load on the machine changes it less.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import orjson
import texts
import uvicorn
from fastapi import FastAPI, Request
from msgspec import Struct
from starlette.responses import Response
from table import heading

from recollect import Recollect
from recollect.api.settings import load_settings

#: What can be measured alone.
LOADS = ("single", "changing", "batches", "retrievals")
CONNECTIONS = (1, 4, 16, 32)
PROCESSES = (1, 2)
NAMESPACES = 8
SECONDS = 1.5
#: Rounds of a comparison, whose median counts: more for many callers, by which goals are stated.
ROUNDS, ROUNDS_FEW_CALLERS = 3, 1
MANY_CALLERS = 16
#: Messages of each namespace that retrievals search.
MESSAGES = 500
_SERVE = "from recollect.api.cli.main import run; run()"
_ENVIRONMENT = {"RECOLLECT_EMBEDDING_MODEL": "none", "RECOLLECT_REQUESTS_PER_MINUTE": "0"}


class Target(Struct, frozen=True, kw_only=True):
    """What answers the requests."""

    name: str
    port: int
    pid: int


class Load(Struct, frozen=True, kw_only=True):
    """Requests of one kind."""

    name: str
    path: str
    bodies: Sequence[bytes]
    #: What one request counts as, and its unit.
    size: int
    unit: str
    #: Whether each request of a connection is for another namespace.
    alternates: bool = False


def run(folder: Path, loads: Sequence[str] = LOADS) -> None:
    """Measure `loads`, some of `LOADS`."""
    events = texts.unnamed(2_000)
    appending = [name for name in loads if name != "retrievals"]
    if appending:
        _append(folder, events, appending)
    if "retrievals" in loads:
        _retrieve(folder, events[:MESSAGES])


def _append(folder: Path, events: Sequence[dict[str, object]], loads: Sequence[str]) -> None:
    single = [orjson.dumps(event) for event in events]
    batches = [orjson.dumps({"events": events[start : start + 100]}) for start in range(0, 2_000, 100)]
    with ExitStack() as stack:
        servers = [stack.enter_context(serving(folder / f"{count}", count)) for count in PROCESSES]
        floor = stack.enter_context(echo())
        appends = {
            "single": Load(name="single events", path="events", bodies=single, size=1, unit="events/s"),
            "changing": Load(
                name="single, changing", path="events", bodies=single, size=1, unit="events/s", alternates=True
            ),
            "batches": Load(name="batches of 100", path="events", bodies=batches, size=100, unit="events/s"),
        }
        heading("Appends over HTTP (floor: bare FastAPI echo of the same bodies)")
        for name in loads:
            for connections in CONNECTIONS:
                _compare(appends[name], connections, [floor, *servers])


def _retrieve(folder: Path, events: Sequence[dict[str, object]]) -> None:
    queries = [orjson.dumps({"query": question}) for question in texts.QUESTIONS]
    with ExitStack() as stack:
        here = stack.enter_context(_memory(folder / "here", events))
        servers = [stack.enter_context(serving(folder / f"{count}-read", count)) for count in PROCESSES]
        for server in servers:
            _fill(server, events)
        load = Load(name="retrievals", path="retrieve", bodies=queries, size=1, unit="retrievals/s")
        heading(f"Retrievals over HTTP, {MESSAGES} messages, by keywords (floor: the same in one process without HTTP)")
        for connections in CONNECTIONS:
            _compare(load, connections, servers, _rate_here(here, len(queries)))


def _compare(load: Load, connections: int, targets: Sequence[Target], floor: float | None = None) -> None:
    """Print the rates of `targets`, measured in turns, beside the floor: the first target when it is None."""
    rates: dict[str, list[float]] = {}
    costs: dict[str, list[float]] = {}
    for _ in range(ROUNDS if connections >= MANY_CALLERS else ROUNDS_FEW_CALLERS):
        for target in targets:
            before = _cpu_seconds(target.pid)
            # The background of another server may still read what the turn before has appended.
            with _paused([other.pid for other in targets if other is not target]):
                done, seconds = asyncio.run(_send(target.port, load, connections))
            rates.setdefault(target.name, []).append(done * load.size / seconds)
            costs.setdefault(target.name, []).append((_cpu_seconds(target.pid) - before) / max(1, done))
    medians = {name: statistics.median(values) for name, values in rates.items()}
    base = medians[targets[0].name] if floor is None else floor
    parts = [
        f"{name} {rate:>8,.0f} ({rate / base:.2f}, {statistics.median(costs[name]) * 1e6:,.0f} µs)"
        for name, rate in medians.items()
    ]
    floor_text = "" if floor is None else f"floor {floor:>8,.0f}; "
    print(f"{load.name:<17}{connections:>3} callers  {floor_text}{'; '.join(parts)} {load.unit}", flush=True)


@contextmanager
def _paused(pids: Sequence[int]) -> Generator[None]:
    """Stop processes, and all below them, for the time of a comparison."""
    processes = [process for pid in pids for process in _with_children(pid)]
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)


async def _send(port: int, load: Load, connections: int) -> tuple[int, float]:
    """Return the requests that were answered, and the seconds: a client that costs as little as it can."""
    until = time.perf_counter() + SECONDS
    done = 0

    async def client(number: int) -> None:
        nonlocal done
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        # Connections far from each other in the texts, which no cache then has from another one.
        sent = number + number * len(load.bodies) // connections
        while time.perf_counter() < until:
            body = load.bodies[sent % len(load.bodies)]
            namespace = (sent if load.alternates else number) % NAMESPACES
            sent += 1
            head = f"POST /v1/namespaces/n{namespace}/{load.path} HTTP/1.1\r\nHost: localhost\r\n"
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 20"), answer
            length = int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            done += 1
        writer.close()

    started = time.perf_counter()
    await asyncio.gather(*(client(number) for number in range(connections)))
    return done, time.perf_counter() - started


@contextmanager
def serving(folder: Path, processes: int) -> Generator[Target]:
    """Serve a folder with a number of processes."""
    arguments = ["--data", str(folder), "serve", "--port", "0", "--processes", str(processes)]
    with subprocess.Popen(
        [sys.executable, "-c", _SERVE, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | _ENVIRONMENT,
    ) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline().split(" at http://")[1].split()[0].rpartition(":")[2])
        try:
            yield Target(name=f"{processes} process{'es' * (processes > 1)}", port=port, pid=server.pid)
        finally:
            server.terminate()


@contextmanager
def echo() -> Generator[Target]:
    """Serve the floor of appends."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    process = multiprocessing.get_context("fork").Process(target=_echo, args=(listener,), daemon=True)
    process.start()
    try:
        yield Target(name="echo", port=listener.getsockname()[1], pid=process.pid or 0)
    finally:
        process.terminate()


def _echo(listener: socket.socket) -> None:
    app = FastAPI()

    @app.post("/v1/namespaces/{namespace}/events")
    async def route(namespace: str, request: Request) -> Response:  # pyright: ignore[reportUnusedFunction]
        return Response(await request.body(), status_code=201, headers={"x-namespace": namespace})

    uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False)).run(sockets=[listener])


@contextmanager
def _memory(folder: Path, events: Sequence[dict[str, object]]) -> Generator[Recollect]:
    """Open a memory in this process with the same messages, for the floor of retrievals."""
    settings = load_settings(data=folder, embedding_model="none")
    with Recollect(settings=settings, workers=False) as memory:
        for number in range(NAMESPACES):
            memory.append(f"n{number}", events)
        yield memory


def _rate_here(memory: Recollect, queries: int) -> float:
    """Return the retrievals a second of one caller in this process."""

    def ask(at: int) -> object:
        return memory.retrieve(f"n{at % NAMESPACES}", texts.QUESTIONS[at % queries])

    for at in range(NAMESPACES):
        ask(at)
    started, done = time.perf_counter(), 0
    while time.perf_counter() < started + SECONDS:
        ask(done)
        done += 1
    return done / (time.perf_counter() - started)


def _fill(target: Target, events: Sequence[dict[str, object]]) -> None:
    """Append the messages that retrievals search, let the background read them, and retrieve once."""
    for path, body in (("events", {"events": events}), ("settle", {}), ("retrieve", {"query": "box"})):
        load = Load(name="", path=path, bodies=[orjson.dumps(body)], size=1, unit="")
        asyncio.run(_once(target.port, load))


async def _once(port: int, load: Load) -> None:
    for number in range(NAMESPACES):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        body = load.bodies[0]
        head = f"POST /v1/namespaces/n{number}/{load.path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 20"), answer
        writer.close()


def _cpu_seconds(pid: int) -> float:
    """Return the processor time of a process and of all below it, on Linux; 0 elsewhere."""
    return sum(map(_own_cpu_seconds, _with_children(pid)))


def _own_cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _with_children(pid: int) -> list[int]:
    """Return a process and all below it, on Linux; the process alone elsewhere."""
    try:
        tasks = [task / "children" for task in Path(f"/proc/{pid}/task").iterdir()]
        children = [int(child) for task in tasks for child in task.read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return [pid]
    return [pid, *(below for child in children for below in _with_children(child))]
