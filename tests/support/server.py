"""Real processes of the command line, and the server among them."""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, closing, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
from support.command_server import ForkedCommand, command_server

_COMMAND = [sys.executable, "-c", "from recollect.api.cli.main import run; run()"]
_READY_SECONDS_MAX = 60.0
#: What a server imports, which takes three seconds, and no more: a library with threads does not fork safely.
_PRELOADED = (
    "duckdb",
    "uvicorn",
    "uvicorn.protocols.http.httptools_impl",
    "recollect.api.cli.main",
    "recollect.api.http.app",
    "recollect.api.http.server",
)


def recollect_process(
    *arguments: str, data: Path, stdin: bytes = b"", model: str = "none"
) -> subprocess.CompletedProcess[str]:
    """Run the command line to its end, in a process of its own: when the process itself is what is tested."""
    done = subprocess.run(
        [*_COMMAND, "--data", str(data), *arguments],
        input=stdin,
        capture_output=True,
        check=False,
        timeout=120,
        env=PATIENT | os.environ | {"RECOLLECT_EMBEDDING_MODEL": model},
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def begin(*arguments: str, data: Path, model: str = "none") -> subprocess.Popen[bytes]:
    """Start the command line and do not wait for its end."""
    return subprocess.Popen(
        [*_COMMAND, "--data", str(data), *arguments],
        stdout=subprocess.DEVNULL,
        env=PATIENT | os.environ | {"RECOLLECT_EMBEDDING_MODEL": model},
    )


class Server:
    """One running `recollect serve`."""

    def __init__(self, process: ForkedCommand, base: str) -> None:
        self.process = process
        self.base = base

    def kill(self) -> None:
        self.process.signal(signal.SIGKILL)
        self.process.wait(30)

    def stop(self) -> int:
        self.process.signal(signal.SIGTERM)
        return self.process.wait(30)


#: A time for retrievals that a busy machine does not use up, so that answers are whole.
PATIENT = {"RECOLLECT_RETRIEVAL_BUDGET_MS": "10000"}


@contextmanager
def command(*arguments: str, data: Path, stdout: int) -> Generator[ForkedCommand]:
    """Start the command line in a process of its own, and end it at the end whatever happens."""
    environment = PATIENT | os.environ | {"RECOLLECT_EMBEDDING_MODEL": "none"}
    process = ForkedCommand(
        shims(), ["--data", str(data), *arguments], environment=environment, stdout=stdout, stderr=2
    )
    with closing(process):
        yield process


@contextmanager
def serving(
    data: Path,
    *arguments: str,
    model: str = "none",
    stderr: int | None = None,
    environment: Mapping[str, str] | None = None,
) -> Generator[Server]:
    """Start a server on a free port, and end it at the end whatever happens.

    Parameters:
        stderr: the file descriptor of its standard error; that of the tests when None.
    """
    reading, writing = os.pipe()
    with os.fdopen(reading, encoding="utf-8") as stdout:
        process = ForkedCommand(
            shims(),
            ["--data", str(data), "serve", "--port", "0", *arguments],
            environment=PATIENT | os.environ | {"RECOLLECT_EMBEDDING_MODEL": model} | dict(environment or {}),
            stdout=writing,
            stderr=2 if stderr is None else stderr,
        )
        os.close(writing)
        with closing(process):
            line = stdout.readline()
            assert " at http://" in line, f"the server did not start: {line!r}"
            base = line.split(" at ")[1].split()[0]
            _wait_until_ready(base)
            yield Server(process, base)


@cache
def shims() -> Path:
    """Start the command server of this test process, which lives as long, and return the folder of its shims."""
    stack = ExitStack()
    atexit.register(stack.close)
    folder = stack.enter_context(TemporaryDirectory(prefix="commands-"))
    return stack.enter_context(command_server(Path(folder), _PRELOADED))


def _wait_until_ready(base: str) -> None:
    deadline = time.monotonic() + _READY_SECONDS_MAX
    while True:
        try:
            if httpx.get(f"{base}/health/ready").status_code == 200:
                return
        except httpx.TransportError:
            pass
        assert time.monotonic() < deadline, "the server was not ready in time"
        time.sleep(0.05)
