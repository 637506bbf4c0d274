"""Start, memory and end of processes: command line, server and a short program, beside bare imports.

A goal is for an idle machine; on a busy one the processor time is what counts. The data folder has the demo
conversation, embedded.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import texts
from table import heading

from recollect import Recollect

T = TypeVar("T")

ROUNDS = 7
_CLI = "from recollect.api.cli.main import run; run()"
#: Each prints the clock and its processor time, with which its end begins.
_END = "print(time.monotonic(), time.process_time(), flush=True)"
_PROGRAM = f"""
import sys, time
from recollect import Recollect
with Recollect(sys.argv[1]) as memory:
    memory.retrieve("a", "Where do the lentils go?")
    {_END}
"""
_APPENDING_PROGRAM = f"""
import sys, time
from recollect import Recollect
with Recollect(sys.argv[1]) as memory:
    memory.add("b", "I am allergic to nuts.")
    {_END}
"""
_SHORTEST_PROGRAM = f"""
import sys, time
from recollect import Recollect
with Recollect(sys.argv[1]):
    {_END}
"""
_COMMANDS = {"python -c pass": "pass", "import fastapi, uvicorn, apsw, numpy": "", "import openvino": ""}
_TICKS = os.sysconf("SC_CLK_TCK")
_NO_MODEL = {"RECOLLECT_EMBEDDING_MODEL": "none"}


class Took(NamedTuple):
    """Seconds of the clock and of the processor."""

    wall: float
    cpu: float


def run(folder: Path) -> None:
    heading(f"Start and end, ms by the clock / of the processor, median of {ROUNDS}")
    with Recollect(folder / "data", workers=False) as memory:
        memory.append("a", [dict(event) for event in texts.messages()])
        memory.settle("a")
    for name, code in _COMMANDS.items():
        _print(f"floor: {name}", _rounds(lambda code=code or name: _whole("-c", code)))
    _print("import recollect", _rounds(lambda: _whole("-c", "import recollect")), 150)
    _print("from recollect import Recollect", _rounds(lambda: _whole("-c", "from recollect import Recollect")))
    _print("recollect --help", _rounds(lambda: _whole("-c", _CLI, "--help")), 300)
    data = str(folder / "data")
    for command in (["stats"], ["list", "a", "facts"], ["retrieve", "a", "Where do the lentils go?"]):
        _ends(f"recollect {command[0]}", lambda command=command: _command(data, command))
    for name, program in {"opens": _SHORTEST_PROGRAM, "adds": _APPENDING_PROGRAM, "retrieves": _PROGRAM}.items():
        _ends(f"a program that {name}", lambda program=program: _program(program, data))
    _servers(data)


def _servers(data: str) -> None:
    """Print the start, memory and end of servers."""
    for name, goal, environment, options in (
        ("server without a model", 1_000, _NO_MODEL, []),
        ("server", 2_000, {}, []),
        ("server, 2 processes", None, {}, ["--processes", "2"]),
    ):
        rounds = _rounds(lambda environment=environment, options=options: _server(data, environment, options))
        _print(f"{name}: ready", [ready for ready, _, _ in rounds], goal)
        _print(f"{name}: end", [end for _, end, _ in rounds], 300)
        memory_mib = statistics.median(memory for _, _, memory in rounds)
        print(f"{name + ': memory':<44}{memory_mib:>6.0f} MiB{'   goal 300' if not options else ''}", flush=True)


def _rounds(measure: Callable[[], T]) -> list[T]:
    measure()
    return [measure() for _ in range(ROUNDS)]


def _ends(name: str, measure: Callable[[], tuple[Took, Took]]) -> None:
    rounds = _rounds(measure)
    _print(name, [whole for whole, _ in rounds])
    _print(f"{name}: end", [end for _, end in rounds], 300)


def _print(name: str, took: list[Took], goal: int | None = None) -> None:
    wall, cpu = (statistics.median(part) * 1_000 for part in zip(*took, strict=True))
    print(f"{name:<44}{wall:>6.0f} / {cpu:<6.0f}{'' if goal is None else f' goal {goal}'}", flush=True)


def _whole(*arguments: str) -> Took:
    """Return what a Python process takes."""
    started, process = time.monotonic(), _start(arguments)
    process.stdout.read()
    return _ended(process, started, 0.0)


def _program(program: str, data: str) -> tuple[Took, Took]:
    """Return what a program takes, and what its end takes after the line that it prints."""
    started, process = time.monotonic(), _start(("-c", program, data))
    wall, cpu = (float(word) for word in process.stdout.readline().split())
    end = _ended(process, wall, cpu)
    return Took(wall + end.wall - started, cpu + end.cpu), end


def _command(data: str, command: list[str]) -> tuple[Took, Took]:
    """Return what a command takes, and what its end takes after the last line."""
    started, process = time.monotonic(), _start(("-c", _CLI, "--data", data, *command))
    wall, cpu = started, 0.0
    while process.stdout.readline():
        wall, cpu = time.monotonic(), _cpu_seconds(process.pid)
    end = _ended(process, wall, cpu)
    return Took(wall + end.wall - started, cpu + end.cpu), end


def _server(data: str, environment: dict[str, str], options: list[str]) -> tuple[Took, Took, float]:
    """Return what a server takes until it answers by all that it has, what its end takes, and its memory in MiB."""
    started = time.monotonic()
    process = _start(("-c", _CLI, "--data", data, "serve", "--port", "0", *options), environment)
    address = next(word for word in process.stdout.readline().decode().split() if word.startswith("http"))
    while not _is_ready(address, with_model=not environment):
        time.sleep(0.05)
    ready = Took(time.monotonic() - started, sum(map(_cpu_seconds, _family(process.pid))))
    time.sleep(1)
    memory = sum(map(_pss_mib, _family(process.pid)))
    stopped, cpu = time.monotonic(), sum(map(_cpu_seconds, _family(process.pid)))
    process.send_signal(signal.SIGINT)
    return ready, _ended(process, stopped, cpu), memory


def _is_ready(address: str, *, with_model: bool) -> bool:
    """Return whether a server is ready, and retrieves by meaning too if it has a model."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=10)
    try:
        connection.request("GET", "/health/ready")
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200 or not with_model:
            return answer.status == 200
        query = json.dumps({"query": "Where do the lentils go?", "no_store": True})
        connection.request("POST", "/v1/namespaces/a/retrieve", query, {"content-type": "application/json"})
        return not json.loads(connection.getresponse().read())["degraded"]
    finally:
        connection.close()


def _start(arguments: tuple[str, ...], environment: dict[str, str] | None = None) -> Any:
    # With compiled modules, as an installed package has them.
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=inherited | (environment or {}),
    )  # fmt: skip


def _ended(process: Any, since: float, cpu: float) -> Took:
    """Wait for the end of a process; return what it has taken since a time of the clock and of its processor."""
    _, status, usage = os.wait4(process.pid, 0)
    took = Took(time.monotonic() - since, usage.ru_utime + usage.ru_stime - cpu)
    process.stdout.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, process.args
    return took


def _family(pid: int) -> list[int]:
    """Return a process and all below it."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return [pid, *(member for child in children for member in _family(int(child)))]


def _cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _pss_mib(pid: int) -> float:
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    return int(rollup.partition("\nPss:")[2].split()[0]) / 1_024
