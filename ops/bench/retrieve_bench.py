"""Retrieval by stage at 1,000 to 200,000 records of one namespace, beside query embedding + FTS5 + exact scan alone.

Each size is measured in a process of its own, so that memory and the first answer are those of a server that has just
been started. Records have quick vectors (`quick_embedder.py`), queries those of the real model.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import numpy as np
import texts
from projection_bench import in_batches
from quick_embedder import QuickEmbedder
from table import heading

from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.api.retrieval.retriever import Retriever
from recollect.api.retrieval.understanding.query import read_question, understand
from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.validation import drafts
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.embeddings.vectors import Vectors
from recollect.projections.read_models.history import History
from recollect.projections.read_models.read_models import ReadModels
from recollect.projections.search_index.index_cache import IndexCache

RECORDS = (1_000, 10_000, 50_000, 200_000)
QUERIES = 200
CALLERS = (1, 4, 16)
#: Appends that are each followed by a retrieval.
APPENDS = 40
#: Records for each fact, as the default extraction finds them in LoCoMo and RealMem.
RECORDS_OF_FACT = 10
#: No search is cut short here, however slow the machine is.
_BUDGET_MS = 120_000.0
#: The floor's scan wakes OpenBLAS's threads, which wait in a busy loop afterwards, 25 to 100 ms: not within our time.
#: Here they wait for 2^20 ticks, 0.5 ms. Each of both begins after the same rest, with cold caches, as a query of a bot
#: does.
_THREAD_TIMEOUT = {"OPENBLAS_THREAD_TIMEOUT": "20"}
_THREADS_REST_SECONDS = 0.05
_SEARCH = "SELECT rowid FROM episodes_fts WHERE episodes_fts MATCH ? ORDER BY rank LIMIT 40"


class Parts(NamedTuple):
    """What answers in one process."""

    log: SqliteLog
    models: ReadModels
    vectors: Vectors
    retriever: Retriever


def run(folder: Path) -> None:
    heading("Retrieval, ms (floor: query embedding + one FTS5 search + one exact scan)")
    embedder = _ready_embedder()
    for records in RECORDS:
        home = folder / str(records)
        build(home, records, embedder)
        # The first process of a large namespace writes the vector file, the second one maps it.
        for options in (["--first"], []):
            command = [sys.executable, __file__, str(home), *options]
            subprocess.run(command, check=True, env=os.environ | _THREAD_TIMEOUT)


def build(home: Path, records: int, embedder: QuickEmbedder) -> None:
    """Make a data folder of one namespace, everything folded and embedded."""
    with closing(SqliteLog(home / "log.db")) as log:
        for batch in in_batches(texts.varied(records)):
            log.append("a", drafts(batch))
        for batch in in_batches(_facts(records // RECORDS_OF_FACT)):
            log.append("a", drafts(batch))
        models = ReadModels(home, log)
        models.replay("a")
        vectors = Vectors(home, models, embedder)
        vectors.embed_new("a")
        vectors.close()
        models.close()


def _facts(count: int, label: str = "b") -> Iterator[dict[str, Any]]:
    """Yield facts of fifty people, each with words of a message."""
    for number, event in enumerate(texts.varied(count)):
        thing = " ".join(event["payload"]["text"].split()[:4])
        payload = {"subject": f"Person {number % 50}", "predicate": "likes", "object": f"{thing} {label}{number}"}
        yield {"type": "fact.stated", "id": f"fact-{label}{number}", "payload": payload}


def questions(label: str) -> list[str]:
    """Return queries of about ten words: the beginnings of messages; `label` makes them new to every cache."""
    base = [event["payload"]["text"] for event in texts.messages()]
    pairs = [f"{base[n % len(base)]} {base[n * 3 % len(base)]}" for n in range(QUERIES)]
    return [" ".join(pair.split()[:10]) + f" {label}{n}" for n, pair in enumerate(pairs)]


def measure(home: Path) -> None:
    """Print what this process needs for the records in `home`."""
    embedder = _ready_embedder()
    embedder.embed_query("warm up")
    with _parts(home, embedder) as parts:
        # What the model needs is no record's, and a server has it before its first query.
        parts.retriever.prepare(parts.vectors)
        gc.collect()
        before, mapped_before = _memory_bytes("RssAnon"), _memory_bytes("RssFile")
        first = _first_answer(parts)
        records = parts.log.head("a").version
        for question in questions("w"):
            _retrieve_ms(parts, question, {})
        gc.collect()
        held, mapped = _memory_bytes("RssAnon") - before, _memory_bytes("RssFile") - mapped_before
        sizes = parts.retriever.size_bytes() | {"SQLite": apsw.status(apsw.SQLITE_STATUS_MEMORY_USED)[0]}
        whole, floor, cpu, floor_cpu, stages = _beside_floor(parts, embedder, records)
        # The median of what one query took longer: a busy machine slows both down.
        ratio = float(np.median(whole) / np.median(floor))
        print(f"{records:>7,} records   {_spread(whole)}   floor {_spread(floor)}   ratio {ratio:.2f}")
        for name, took in stages.items():
            print(f"{'':>10}{name:<12}{_spread(took)}")
        cpu_ratio = float(np.median(cpu) / np.median(floor_cpu))
        print(f"{'':>10}processor    {_spread(cpu)}   floor {_spread(floor_cpu)}   ratio {cpu_ratio:.2f}")
        print(f"{'':>10}{first}")
        by_part = "   ".join(f"{name} {size / records:,.0f}" for name, size in sizes.items())
        print(f"{'':>10}private bytes a record after {QUERIES} queries {held / records:,.0f}, of which {by_part}")
        print(f"{'':>10}mapped bytes a record, of files, which the system can drop {mapped / records:,.0f}")
        rates = "   ".join(f"{callers}: {_rate(parts, callers):.0f}" for callers in CALLERS)
        print(f"{'':>10}retrievals/s by callers   {rates}")
        print(f"{'':>10}after one append   {_spread(_appending(parts))}")
        background, turns = _with_new_facts(parts)
        after_fact = f"{_spread(turns)}   the background before it   {_spread(background)}"
        print(f"{'':>10}a turn after a new fact   {after_fact}", flush=True)


def measure_first(home: Path) -> None:
    """Print what the first answer takes for the records in `home`."""
    embedder = _ready_embedder()
    embedder.embed_query("warm up")
    with _parts(home, embedder) as parts:
        parts.retriever.prepare(parts.vectors)
        print(f"{parts.log.head('a').version:>7,} records, no vector file: {_first_answer(parts)}", flush=True)


def _first_answer(parts: Parts) -> str:
    started = time.process_time()
    took_ms = _retrieve_ms(parts, "where do the lentils go?", {})
    return f"first answer after the start {took_ms:.0f}, processor {(time.process_time() - started) * 1_000:.0f}"


def _ready_embedder() -> QuickEmbedder:
    embedder = QuickEmbedder()
    embedder.start()
    assert embedder.wait_ready(300), embedder.reason
    return embedder


@contextmanager
def _parts(home: Path, embedder: QuickEmbedder) -> Generator[Parts]:
    log = SqliteLog(home / "log.db")
    models = ReadModels(home, log)
    history = History(home, log, models)
    indexes = IndexCache()
    vectors = Vectors(home, models, embedder, indexes=indexes)
    retriever = Retriever(models, history, lambda: vectors, budget_ms=_BUDGET_MS, indexes=indexes)
    yield Parts(log, models, vectors, retriever)
    retriever.close()
    history.close()
    vectors.close()
    models.close()
    log.close()


class _Times(NamedTuple):
    """Milliseconds of the queries: of the clock, of the processor, and of each stage by the clock."""

    whole: list[float]
    floor: list[float]
    cpu: list[float]
    floor_cpu: list[float]
    stages: dict[str, list[float]]


def _beside_floor(parts: Parts, embedder: QuickEmbedder, records: int) -> _Times:
    """Return the times of whole retrievals and of the floor, one query after the other."""
    matrix = np.random.default_rng(0).standard_normal((records, embedder.dimensions), np.float32)
    times = _Times([], [], [], [], {})
    for ours, bare in zip(questions("q"), questions("f"), strict=True):
        floor_ms, floor_cpu_ms = _floor_ms(bare, parts.models, embedder, matrix)
        time.sleep(_THREADS_REST_SECONDS)
        times.floor.append(floor_ms)
        times.floor_cpu.append(floor_cpu_ms)
        started = time.process_time()
        times.whole.append(_retrieve_ms(parts, ours, times.stages))
        times.cpu.append((time.process_time() - started) * 1_000)
        time.sleep(_THREADS_REST_SECONDS)
    return times


def _retrieve_ms(parts: Parts, question: str, stages: dict[str, list[float]], *, whole: bool = True) -> float:
    started = time.perf_counter()
    # Without the gate, which would find what copied vectors say unlikely, and leave less to do.
    result = parts.retriever.retrieve("a", RetrieveRequest(query=question, gate=False))
    took_ms = (time.perf_counter() - started) * 1_000
    assert result.items
    assert not (whole and result.degraded), result.degraded
    for stage, stage_ms in result.stages_ms.items():
        stages.setdefault(stage, []).append(stage_ms)
    return took_ms


def _floor_ms(question: str, models: ReadModels, embedder: QuickEmbedder, matrix: Vector) -> tuple[float, float]:
    """Return the milliseconds of the clock and of the processor that the floor takes."""
    with models.reading("a") as snapshot:
        words = understand(read_question(question, snapshot), snapshot, asked_at=texts.ASKED_AT).words
        match = " OR ".join(f'"{word}"' for word in words)
        started, started_cpu = time.perf_counter(), time.process_time()
        vector = embedder.embed_query(question).vector
        connection: Any = getattr(snapshot, "_connection")  # noqa: B009 -- the floor is the bare engine
        connection.execute(_SEARCH, (match,)).fetchall()
        cosines = matrix @ vector
        np.argpartition(cosines, len(cosines) - 40)
        return (time.perf_counter() - started) * 1_000, (time.process_time() - started_cpu) * 1_000


def _rate(parts: Parts, callers: int) -> float:
    """Return the retrievals a second of so many threads, none of which asks twice."""
    asked = questions(f"c{callers}n")

    def ask(question: str) -> float:
        return _retrieve_ms(parts, question, {})

    started = time.perf_counter()
    with ThreadPoolExecutor(callers) as pool:
        list(pool.map(ask, asked))
    return len(asked) / (time.perf_counter() - started)


def _appending(parts: Parts) -> list[float]:
    """Return the times of retrievals that each follow an append, which nobody has embedded yet."""
    found: list[float] = []
    for event, question in zip(texts.unnamed(APPENDS), questions("a"), strict=False):
        parts.log.append("a", drafts([event]))
        found.append(_retrieve_ms(parts, question, {}, whole=False))
        parts.vectors.embed_new("a")
    return found


def _with_new_facts(parts: Parts) -> tuple[list[float], list[float]]:
    """Return the times of the background after a new fact, and of the next turn of the conversation."""
    background: list[float] = []
    turns: list[float] = []
    for fact, question in zip(_facts(APPENDS, "n"), questions("t"), strict=False):
        parts.log.append("a", drafts([fact]))
        started = time.perf_counter()
        parts.models.catch_up("a")
        parts.vectors.embed_new("a")
        asked = time.perf_counter()
        parts.retriever.retrieve("a", RetrieveRequest(query=question, mode="passive", session_id="live"))
        background.append((asked - started) * 1_000)
        turns.append((time.perf_counter() - asked) * 1_000)
    return background, turns


def _spread(took_ms: list[float]) -> str:
    middle, high, highest = np.percentile(took_ms, (50, 95, 99))
    return f"p50 {middle:6.1f}  p95 {high:6.1f}  p99 {highest:6.1f}"


def _memory_bytes(kind: str) -> int:
    """Return the memory of this process: `RssAnon`, its own, or `RssFile`, that of mapped files."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition(f"{kind}:")[2].split()[0]) * 1_024


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("home", type=Path, help="a data folder that `build` made")
    parser.add_argument("--first", action="store_true", help="print what the first answer takes, nothing else")
    arguments = parser.parse_args()
    (measure_first if arguments.first else measure)(arguments.home)
