"""Appends over HTTP by 32 connections, beside a bare FastAPI route that reads the body and echoes; client included.

Client and server share the machine's cores, on both sides of the comparison.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import orjson
import texts
import uvicorn
from fastapi import FastAPI, Request
from starlette.responses import Response
from table import compare, heading

CONNECTIONS = 32
SECONDS = 3.0
_SERVE = "from recollect.api.cli.main import run; run()"


def echo(listener: socket.socket) -> None:
    """Serve the floor."""
    app = FastAPI()

    @app.post("/v1/namespaces/{namespace}/events")
    async def route(namespace: str, request: Request) -> Response:  # pyright: ignore[reportUnusedFunction]
        return Response(await request.body(), status_code=201, headers={"x-namespace": namespace})

    uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False)).run(sockets=[listener])


async def rate(port: int, bodies: list[bytes]) -> float:
    """Return the requests a second of raw keep-alive connections: a client that costs as little as it can."""
    until = time.perf_counter() + SECONDS
    done = 0

    async def client(number: int) -> None:
        nonlocal done
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        at = number
        while time.perf_counter() < until:
            body = bodies[at % len(bodies)]
            at += 1
            path = f"/v1/namespaces/n{number % 8}/events"
            head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 201"), answer
            length = int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            done += 1
        writer.close()

    started = time.perf_counter()
    await asyncio.gather(*(client(number) for number in range(CONNECTIONS)))
    return done / (time.perf_counter() - started)


def run(folder: Path) -> None:
    heading("Appends over HTTP, 32 connections (floor: bare FastAPI echo of the same bodies)")
    events = texts.unnamed(2_000)
    single = [orjson.dumps(event) for event in events]
    batches = [orjson.dumps({"events": events[start : start + 100]}) for start in range(0, 2_000, 100)]
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    bare = multiprocessing.get_context("fork").Process(target=echo, args=(listener,), daemon=True)
    bare.start()
    arguments = ["--data", str(folder), "serve", "--port", "0"]
    environment = os.environ | {"RECOLLECT_EMBEDDING_MODEL": "none"}
    with subprocess.Popen(
        [sys.executable, "-c", _SERVE, *arguments], stdout=subprocess.PIPE, text=True, env=environment
    ) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline().split(" at http://")[1].split()[0].rpartition(":")[2])
        for name, bodies, size in (("single events", single, 1), ("batches of 100", batches, 100)):
            floor = asyncio.run(rate(listener.getsockname()[1], bodies)) * size
            compare(name, asyncio.run(rate(port, bodies)) * size, floor)
        server.terminate()
    bare.terminate()
