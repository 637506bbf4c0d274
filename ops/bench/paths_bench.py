"""Processor time of the paths of a memory, by event or query, and the lines of code that take most of it.

The time is that of all threads of the process, so that a busy machine changes it little. The lines come from further
rounds, interrupted after equal amounts of that time: what a library does, in whichever thread, counts as the line of
ours that called it or waited for it.
"""

from __future__ import annotations

import signal
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import texts
from table import heading

import recollect
from recollect import Recollect
from recollect.api.settings import load_settings
from recollect.events.envelope import now_us
from recollect.events.validation import drafts
from recollect.jobs.queue.registry import LIVE_JOBS

SINGLES, BATCHES, BATCH_EVENTS = 300, 40, 100
PROJECTED, READ, EMBEDDED, LIVE, QUERIES = 2_000, 300, 150, 100, 80
ROUNDS = 3
LINES = 5
#: Processor time between two samples, which the clock of the kernel may make 4 ms, and the samples of a path: the share
#: of a line is right to 3 points.
SAMPLE_SECONDS = 0.001
SAMPLES = 250
#: The folder of our code.
OURS = str(Path(recollect.__file__).parent)


class MeasuredPath(NamedTuple):
    """A path: what one round of it does, and how many events or queries that is."""

    name: str
    units: int
    #: Makes a round's work, which is not measured, and returns what does it.
    prepare: Callable[[str], Callable[[], object]]


def run(folder: Path) -> None:
    heading("Processor time by path, median of three rounds")
    with Recollect(settings=load_settings(data=folder / "paths"), workers=False) as memory:
        memory.parts.vectors.embedder.start()
        memory.parts.vectors.embedder.wait_ready(600)
        print(f"{'path':<16}{'µs of a unit':>14}{'calling thread':>16}   lines with most own time")
        for path in _paths(memory):
            _print(path)


def _print(path: MeasuredPath) -> None:
    """Print the row of a path."""
    path.prepare("warm")()
    costs = [_measured(path, f"round-{number}") for number in range(ROUNDS)]
    process, thread = (statistics.median(figures) / path.units * 1e6 for figures in zip(*costs, strict=True))
    print(f"{path.name:<16}{process:>14,.0f}{thread:>16,.0f}   {_costly_lines(path)}", flush=True)


def _measured(path: MeasuredPath, name: str) -> tuple[float, float]:
    """Return the processor seconds of a round, of all threads and of this one."""
    work = path.prepare(name)
    process, thread = time.process_time(), time.thread_time()
    work()
    return time.process_time() - process, time.thread_time() - thread


def _costly_lines(path: MeasuredPath) -> str:
    """Return the lines that most of the processor time was spent in, each with its share of it."""
    lines: Counter[str] = Counter()

    def sample(_: int, frame: FrameType | None) -> None:
        lines[_place(frame)] += 1

    before = signal.signal(signal.SIGPROF, sample)
    try:
        for number in count():
            work = path.prepare(f"sampled-{number}")
            signal.setitimer(signal.ITIMER_PROF, SAMPLE_SECONDS, SAMPLE_SECONDS)
            work()
            signal.setitimer(signal.ITIMER_PROF, 0)
            if lines.total() >= SAMPLES:
                break
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return ", ".join(f"{place} {share / lines.total():.0%}" for place, share in lines.most_common(LINES))


def _place(frame: FrameType | None) -> str:
    """Return the innermost line of our code; that of a library outside it."""
    inner = frame
    while frame is not None and not frame.f_code.co_filename.startswith(OURS):
        frame = frame.f_back
    frame = frame or inner
    return "" if frame is None else f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} {frame.f_code.co_name}"


def _paths(memory: Recollect) -> Iterator[MeasuredPath]:
    parts = memory.parts

    def append_one(name: str) -> Callable[[], object]:
        events = _events(SINGLES, name)
        return lambda: [memory.append(name, [event]) for event in events]

    def append_many(name: str) -> Callable[[], object]:
        batches = [_events(BATCH_EVENTS, f"{name}-{number}") for number in range(BATCHES)]
        return lambda: [memory.append(f"many-{name}", batch) for batch in batches]

    def project(name: str) -> Callable[[], object]:
        _fill(memory, f"project-{name}", PROJECTED)
        return lambda: parts.read_models.catch_up(f"project-{name}")

    def extract(name: str) -> Callable[[], object]:
        namespace = _fill(memory, f"extract-{name}", READ)
        parts.read_models.catch_up(namespace)
        parts.vectors.embed_new(namespace)
        return lambda: LIVE_JOBS["extract"].work(parts.job_context, namespace, now_us())

    def embed(name: str) -> Callable[[], object]:
        namespace = _fill(memory, f"embed-{name}", EMBEDDED)
        parts.read_models.catch_up(namespace)
        return lambda: parts.vectors.embed_new(namespace)

    def live(name: str) -> Callable[[], object]:
        # Said now, one after the other: nothing can wait for a quiet conversation.
        events = [{key: value for key, value in it.items() if key != "occurred_at"} for it in _events(LIVE, name)]
        return lambda: [_take_in(memory, f"live-{name}", event) for event in events]

    def retrieve(namespace: str) -> Callable[[str], Callable[[], object]]:
        def prepare(_: str) -> Callable[[], object]:
            asked = [texts.QUESTIONS[number % len(texts.QUESTIONS)] for number in range(QUERIES)]
            return lambda: [memory.retrieve(namespace, query) for query in asked]

        return prepare

    yield MeasuredPath("append one", SINGLES, append_one)
    yield MeasuredPath("append 100", BATCHES * BATCH_EVENTS, append_many)
    yield MeasuredPath("project", PROJECTED, project)
    yield MeasuredPath("extract", READ, extract)
    yield MeasuredPath("embed", EMBEDDED, embed)
    yield MeasuredPath("all, one by one", LIVE, live)
    for kind, events in texts.sets(1_000).items():
        namespace = f"asked-{kind}"
        memory.append(namespace, [{**event, "id": f"{namespace}-{number}"} for number, event in enumerate(events)])
        memory.settle(namespace)
        yield MeasuredPath(f"retrieve {kind}", QUERIES, retrieve(namespace))


def _take_in(memory: Recollect, namespace: str, event: dict[str, Any]) -> None:
    """Append a message, and do what the background does with it."""
    memory.append(namespace, [event])
    memory.parts.read_models.catch_up(namespace)
    memory.parts.vectors.embed_new(namespace)
    for job in LIVE_JOBS.values():
        job.work(memory.parts.job_context, namespace, now_us())


def _events(count: int, name: str) -> list[dict[str, Any]]:
    """Return events of real conversations under ids of their own."""
    return [{**event, "id": f"{name}-{event['id']}"} for event in islice(texts.real(count), count)]


def _fill(memory: Recollect, namespace: str, count: int) -> str:
    """Append events to a new namespace past everything but the log; return its name."""
    events: Sequence[dict[str, Any]] = _events(count, namespace)
    for start in range(0, count, 500):
        memory.parts.log.append(namespace, drafts(events[start : start + 500]))
    return namespace
