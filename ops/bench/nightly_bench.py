"""The nightly run over many namespaces: how long it takes, how much memory, and what live callers notice of it.

The run has processes of its own, those that a worker starts for it. Another one appends and retrieves all
the time, a request every 50 ms each, before the run and during it. Namespaces hold slices of real conversations, two
days old at the time of the run; what workers embed and extract live is done before it begins.
"""

from __future__ import annotations

import multiprocessing
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import texts
from night_run import NightRun, run_night
from table import heading

from recollect.api.memory.recollect import Recollect
from recollect.api.settings import load_settings
from recollect.events.envelope import DAY_US, datetime_of, now_us
from recollect.events.validation import drafts
from recollect.jobs.queue.registry import LIVE_JOBS
from recollect.projections.read_models.layout import namespace_folder

NAMESPACES = 1_000
EVENTS = 200
#: Namespaces with different conversations; the others are copies, so that the setting up need not embed for an hour.
_TEMPLATES = 10
_LIVE_SECONDS = 20.0
_BETWEEN_SECONDS = 0.05


def run(folder: Path) -> None:
    heading(f"A nightly run over {NAMESPACES:,} namespaces x {EVENTS} events")
    _fill(folder)
    with Recollect(folder, settings=load_settings(), workers=False) as memory:
        memory.parts.vectors.embedder.start()
        memory.parts.vectors.embedder.wait_ready(600)
        before = _live(memory, lambda spent: spent < _LIVE_SECONDS)
        nightly = multiprocessing.get_context("spawn")
        results: multiprocessing.Queue[NightRun] = nightly.Queue()
        process = nightly.Process(target=_nightly, args=(folder, results))
        process.start()
        during = _live(memory, lambda _: process.is_alive())
        night = results.get()
        process.join()
    print(
        f"  duration {night.seconds:.0f} s, {night.cpu_seconds:.0f} s CPU, {night.namespaces:,} namespaces opened, "
        f"{night.events:,} events appended, peak {night.peak_mib} MiB and {night.process_peak_mib} MiB in a process"
    )
    for what in before:
        print(f"  live {what}: p99 {_p99(before[what]):.1f} ms before, {_p99(during[what]):.1f} ms meanwhile")


def _fill(folder: Path) -> None:
    """Append the namespaces, fold and embed them."""
    begun_us = now_us() - 2 * DAY_US
    source = list(texts.real(_TEMPLATES * EVENTS))
    with Recollect(folder, settings=load_settings(), workers=False) as memory:
        memory.parts.vectors.embedder.start()
        memory.parts.vectors.embedder.wait_ready(600)
        for number in range(NAMESPACES):
            template = number % _TEMPLATES
            part = source[template * EVENTS : (template + 1) * EVENTS]
            memory.parts.log.append(
                f"n{number}",
                drafts(
                    [event | {"occurred_at": datetime_of(begun_us + at * 20_000_000)} for at, event in enumerate(part)]
                ),
            )
            memory.parts.read_models.catch_up(f"n{number}")
            for job in LIVE_JOBS.values():
                job.work(memory.parts.job_context, f"n{number}", now_us())
            if number < _TEMPLATES:
                # After the extraction, whose facts are embedded, too.
                memory.parts.vectors.embed_new(f"n{number}")
    for number in range(_TEMPLATES, NAMESPACES):
        # The same texts under the same ids in the same log: the vectors are those of the template.
        vectors = namespace_folder(folder, f"n{number % _TEMPLATES}") / "vectors.db"
        shutil.copy(vectors, namespace_folder(folder, f"n{number}") / "vectors.db")


def _nightly(folder: Path, results: multiprocessing.Queue[NightRun]) -> None:
    results.put(run_night(folder))


def _live(memory: Recollect, going_on: Callable[[float], bool]) -> dict[str, list[float]]:
    """Append and retrieve, each in a thread, as long as `going_on` says; return the latencies in milliseconds."""
    questions = [str(event["payload"]["text"]) for event in texts.messages()]
    spent_ms: dict[str, list[float]] = {"append": [], "retrieve": []}
    started = time.perf_counter()

    def repeat(what: str, work: Callable[[int], object]) -> None:
        number = 0
        while going_on(time.perf_counter() - started):
            begun = time.perf_counter()
            work(number)
            spent_ms[what].append((time.perf_counter() - begun) * 1_000)
            number += 1
            time.sleep(_BETWEEN_SECONDS)

    event = {"type": "message.added", "payload": {"role": "user", "text": "I moved the meeting to Friday"}}
    works: dict[str, Callable[[int], object]] = {
        "append": lambda number: memory.append(f"live{number % 10}", event),
        "retrieve": lambda number: memory.retrieve(f"n{number % NAMESPACES}", questions[number % len(questions)]),
    }
    threads = [threading.Thread(target=repeat, args=work) for work in works.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return spent_ms


def _p99(values: list[float]) -> float:
    return sorted(values)[int(0.99 * (len(values) - 1))]
