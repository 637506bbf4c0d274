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
from recollect.api.retrieval import retrieval_models
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


#: Loads the models of retrievals, asks, and prints the modules of ours that compile patterns or read weights meanwhile.
_ASKS_AFTER_LOADING = """
import re._compiler, sys
from recollect import Recollect
from recollect.api.settings import load_settings

late = set()
def counted(function):
    def call(*arguments, **options):
        frame = sys._getframe(1)
        while frame and "recollect." not in frame.f_globals["__name__"]:
            frame = frame.f_back
        late.add(frame.f_globals["__name__"] if frame else "unknown")
        return function(*arguments, **options)
    return call

with Recollect(settings=load_settings(data=sys.argv[1]), workers=False) as memory:
    memory.add("a", "The code of the safe is 471128.")
    memory.settle("a")
    vectors = memory.parts.vectors
    vectors.embedder.start()
    assert vectors.embedder.wait_ready(60), vectors.embedder.reason
    if sys.argv[2] == "loaded":
        memory.parts.retriever.prepare(vectors)
    re._compiler.compile = counted(re._compiler.compile)
    for name in ("choice_model", "weighted_sum", "relevance_gate"):
        module = sys.modules[f"recollect.api.retrieval.ranking.{name}"]
        module.files = counted(module.files)
    for question in ("What is the code of the safe?", "What did I say between 3 and 5 May, two weeks ago?"):
        memory.retrieve("a", question)
print(*sorted(late))
"""


@pytest.mark.parametrize("loaded", ["loaded", "not loaded"])
def test_once_the_models_are_loaded_no_question_compiles_a_pattern_or_reads_weights(
    tmp_path: Path, loaded: str
) -> None:
    command = [sys.executable, "-c", _ASKS_AFTER_LOADING, str(tmp_path), loaded]
    late = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    expected = {"recollect.projections.text.date_patterns", "recollect.api.retrieval.ranking.choice_model"}
    assert set(late) >= expected if loaded == "not loaded" else not late


def test_the_models_are_loaded_once_and_not_by_each_retrieval(monkeypatch: pytest.MonkeyPatch) -> None:
    collections: list[int] = []
    monkeypatch.setattr(retrieval_models.gc, "collect", lambda: collections.append(1))
    retrieval_models._load.cache_clear()  # pyright: ignore[reportPrivateUsage]
    for _ in range(3):
        retrieval_models.load_models("another model")
    assert collections == [1]
