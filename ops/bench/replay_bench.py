"""Replay of real conversations in one and in 100 namespaces, beside the bulk floor; and what a server feels of it.

The long form is `python ops/bench replay --events 1000000`. Texts come from $RECOLLECT_TEST_DATA, or the demo.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import texts
from projection_bench import bulk_load, in_batches
from table import compare, heading, seconds

from recollect.api.cli.session import open_models
from recollect.events.backends.log import each_head
from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.validation import drafts
from recollect.projections.read_models.parallel_rebuild import rebuild_all
from recollect.projections.read_models.read_models import ReadModels

EVENTS = 200_000
NAMESPACES = 100
_REPLAY = "from recollect.api.cli.main import run; run()"


def run(folder: Path, events: int = EVENTS) -> None:
    _one(folder / "one", events)
    _many(folder / "many", events)


def _filled(folder: Path, events: Iterator[dict[str, Any]], namespaces: int) -> SqliteLog:
    log = SqliteLog(folder / "log.db")
    for number, batch in enumerate(in_batches(events)):
        log.append(f"n{number % namespaces:03}", drafts(batch))
    return log


def _one(folder: Path, events: int) -> None:
    heading(f"Replay of {events:,} events in one namespace (floor: bare apsw bulk load)")
    log = _filled(folder, texts.real(events), 1)
    models = ReadModels(folder, log)
    models.replay("n000")
    floors: list[float] = []
    rates: list[float] = []
    cpu_us: dict[str, list[float]] = {"floor": [], "replay": []}
    for attempt in range(3):
        started = time.process_time()
        floors.append(events / seconds(partial(bulk_load, log, folder / f"bare{attempt}.db", "n000")))
        loaded = time.process_time()
        rates.append(events / seconds(lambda: models.replay("n000")))
        cpu_us["floor"].append((loaded - started) / events * 1_000_000)
        cpu_us["replay"].append((time.process_time() - loaded) / events * 1_000_000)
    compare("replay", statistics.median(rates), statistics.median(floors))
    print(f"  CPU µs an event: {', '.join(f'{name} {statistics.median(us):.1f}' for name, us in cpu_us.items())}")
    tenth = _rate_of(folder / "tenth", events // 10)
    print(f"  a tenth of the events: {tenth:,.0f} events/s")
    print(f"  peak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")
    print(f"  log: {(folder / 'log.db').stat().st_size / events:,.0f} bytes an event")
    _serving(folder, models)
    models.close()
    log.close()


def _rate_of(folder: Path, events: int) -> float:
    """Return the rate of a shorter log: a replay is linear when it is the same."""
    log = _filled(folder, texts.real(events), 1)
    models = ReadModels(folder, log)
    rate = statistics.median(events / seconds(lambda: models.replay("n000")) for _ in range(3))
    models.close()
    log.close()
    return rate


def _serving(folder: Path, models: ReadModels) -> None:
    """Print what reading costs before and while another process replays the same namespace."""
    before = _latencies_ms(models, 3.0, threading.Event())
    command = [sys.executable, "-c", _REPLAY, "--data", str(folder), "replay", "--namespace", "n000"]
    done = threading.Event()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as replaying:
        threading.Thread(target=lambda: (replaying.wait(), done.set()), daemon=True).start()
        during = _latencies_ms(models, 600.0, done)
    for name, latencies in (("before", before), ("during a replay", during)):
        quantiles = statistics.quantiles(latencies, n=100)
        p50, p99 = quantiles[49], quantiles[98]
        print(f"  catch up and search {name}: p50 {p50:.2f} ms, p99 {p99:.2f} ms ({len(latencies)} reads)")


def _latencies_ms(models: ReadModels, seconds_max: float, done: threading.Event) -> list[float]:
    latencies: list[float] = []
    until = time.perf_counter() + seconds_max
    while time.perf_counter() < until and not done.is_set():
        started = time.perf_counter()
        models.catch_up("n000")
        with models.reading("n000") as snapshot:
            query = "SELECT rowid FROM episodes_fts WHERE episodes_fts MATCH 'camping AND weekend' LIMIT 40"
            connection: Any = getattr(snapshot, "_connection")  # noqa: B009 -- the floor is the bare engine
            connection.execute(query).fetchall()
        latencies.append((time.perf_counter() - started) * 1_000)
        time.sleep(0.005)
    return latencies


def _many(folder: Path, events: int) -> None:
    processes = os.cpu_count() or 1
    heading(f"Replay of {events:,} events in {NAMESPACES} namespaces (floor: bare apsw, one after the other)")
    log = _filled(folder, texts.real(events), NAMESPACES)
    heads = list(each_head(log))

    def bulk() -> None:
        for head in heads:
            bulk_load(log, folder / f"bare-{head.namespace}.db", head.namespace)

    floor = events / seconds(bulk)
    models = ReadModels(folder, log)
    reopen = partial(open_models, folder, f"sqlite:///{folder / 'log.db'}")
    rate = events / seconds(lambda: list(rebuild_all(heads, models, open_read_models=reopen, processes=processes)))
    compare(f"replay, {processes} processes", rate, floor)
    rate = events / seconds(lambda: list(rebuild_all(heads, models, open_read_models=reopen, processes=1)))
    compare("replay, one process", rate, floor)
    models.close()
    log.close()
