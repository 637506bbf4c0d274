"""Warm-up: a server has the indexes of what was searched last in memory before it is asked again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.events import message

from recollect import Recollect
from recollect.api.http.warm_up import start_warm_up
from recollect.api.settings import load_settings


def opened(folder: Path) -> Recollect:
    return Recollect(settings=load_settings(data=folder, embedding_model="none"), workers=False)


def is_loaded(memory: Recollect, namespace: str) -> bool:
    with memory.parts.read_models.reading(namespace) as snapshot:
        return memory.parts.indexes.holds(snapshot)


def test_what_was_searched_and_is_answered_by_this_process_is_loaded(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        for namespace in ("searched", "not-searched", "of-another-process"):
            memory.append(namespace, [message("I keep bees behind the church.")])
        for namespace in ("searched", "of-another-process"):
            assert memory.retrieve(namespace, "Where are the bees?").items
    with opened(tmp_path) as memory:
        assert not is_loaded(memory, "searched")
        start_warm_up(memory.parts, lambda namespace: namespace != "of-another-process").join()
        assert is_loaded(memory, "searched")
        assert not is_loaded(memory, "not-searched")
        assert not is_loaded(memory, "of-another-process")


def test_the_namespace_searched_last_comes_first(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        for namespace in ("first", "second", "first", "third"):
            memory.append(namespace, [message("I keep bees behind the church.")])
            memory.retrieve(namespace, "Where are the bees?")
        memory.parts.trace_store.flush()
        assert memory.parts.trace_store.last_namespaces(16) == ["third", "first", "second"]
        assert memory.parts.trace_store.last_namespaces(1) == ["third"]


def test_an_erased_namespace_is_left_out(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        memory.append("a", [message("I keep bees behind the church.")])
        memory.retrieve("a", "Where are the bees?")
        memory.erase("a", everything=True)
        memory.parts.trace_store.flush()
        start_warm_up(memory.parts, lambda _: True).join()
        assert memory.parts.trace_store.last_namespaces(16) == []


#: Serves, prints in each process whether garbage is collected before and after it begins to, and stops.
_SERVING = """
import gc, os, signal
from recollect.api.cli.main import run
from recollect.api.http.uvicorn_config import MemoryServer
begin = MemoryServer.startup
async def startup(server, sockets=None):
    during = gc.isenabled()
    await begin(server, sockets)
    os.write(2, f"collects {during} {gc.isenabled()};".encode())
    os.kill(first, signal.SIGINT)
MemoryServer.startup, first = startup, os.getpid()
run()
"""


@pytest.mark.parametrize("processes", [1, 2])
def test_no_garbage_is_collected_until_a_server_answers_and_then_it_is(tmp_path: Path, processes: int) -> None:
    command = ["--data", str(tmp_path), "serve", "--port", "0", "--processes", str(processes)]
    server = subprocess.run(
        [sys.executable, "-c", _SERVING, *command],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, "RECOLLECT_EMBEDDING_MODEL": "none"},
    )
    assert "collects False True;" in server.stderr
    assert "collects True" not in server.stderr
    assert "collects False False" not in server.stderr
