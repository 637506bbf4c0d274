"""Very many namespaces of 20 messages: disk, time to make, nights, a server that meets them at random, a replay.

`python ops/bench many --namespaces 1000`; the folder is removed at the end unless `many_bench.measure` is called with
one that was filled before.
"""

from __future__ import annotations

import random
import resource
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import texts
from many_namespaces import MESSAGES, OWN_VECTORS, conversation_of, fill, name_of
from night_run import run_night
from table import heading

from recollect.api.assembly.memory_parts import open_parts
from recollect.api.memory.recollect import Recollect
from recollect.api.settings import load_settings
from recollect.events.envelope import DAY_US, datetime_of, now_us
from recollect.events.validation import drafts
from recollect.jobs.queue.registry import LIVE_JOBS
from recollect.projections.read_models.layout import namespace_folder

NAMESPACES = 1_000
#: Of ten namespaces one has news, at most 1,000.
_NEWS_MAX = 1_000
#: Messages of the news: a part of the earlier conversation, told again, so that their vectors are known.
_NEWS = slice(5, 15)
_TOUCHED = 2_000
_REPLAYED = 500


def run(folder: Path, namespaces: int = NAMESPACES) -> None:
    heading(f"{namespaces:,} namespaces x {MESSAGES} messages")
    started = time.perf_counter()
    cost_ms = {part: seconds * 1_000 for part, seconds in fill(folder, namespaces).items()}
    print(f"  made in {time.perf_counter() - started:.0f} s; CPU ms a namespace as a server makes it:", end=" ")
    print(", ".join(f"{part} {ms:.1f}" for part, ms in cost_ms.items()))
    measure(folder, namespaces)


def measure(folder: Path, namespaces: int) -> None:
    """Measure a folder that `many_namespaces.fill` made."""
    _disk(folder, namespaces)
    # Each part in a process of its own, so that its memory and processor time are its own.
    for part in (_start, _idle_night, _server, _news, _night, _replay):
        _in_process(part, folder, namespaces)


def _in_process(part: Callable[[Path, int], None], folder: Path, namespaces: int) -> None:
    process = get_context("spawn").Process(target=part, args=(folder, namespaces))
    process.start()
    process.join()
    assert process.exitcode == 0, part


def _disk(folder: Path, namespaces: int) -> None:
    """Print the bytes of a namespace: of its folder by kind, and of the shared files."""
    sample = [namespace_folder(folder, name_of(number)) for number in range(0, namespaces, max(1, namespaces // 500))]
    kinds = {
        kind: sum(file.stat().st_size for own in sample for file in own.glob(pattern)) / len(sample)
        for kind, pattern in {"read model": "0*.db*", "vectors": "vectors.db*"}.items()
    }
    shared = sum(file.stat().st_size for file in folder.iterdir() if file.is_file())
    each = shared / namespaces + sum(kinds.values())
    listed = ", ".join(f"{kind} {size / 1024:.1f}" for kind, size in kinds.items())
    log = (folder / "log.db").stat().st_size / namespaces / 1024
    print(f"  disk: {each * namespaces / 2**30:.2f} GiB, {each / 1024:.1f} KiB a namespace ({listed}, log {log:.1f})")


def _start(folder: Path, _: int) -> None:
    """Print what the first two comparisons of a process cost, and what they open."""
    with open_parts(load_settings(data=folder), workers=False) as parts:
        parts.vectors.embedder.start()
        parts.vectors.embedder.wait_ready(600)
        for which in ("first", "second"):
            cpu, wall = time.process_time(), time.perf_counter()
            scan = parts.backlog.scan(1_000)
            print(
                f"  {which} comparison of all heads: {time.process_time() - cpu:.2f} s CPU, "
                f"{time.perf_counter() - wall:.2f} s; {parts.read_models.live.count} opened, {scan.compared:,} compared"
            )


def _idle_night(folder: Path, namespaces: int) -> None:
    _print_night("night without news", folder, namespaces)


def _night(folder: Path, namespaces: int) -> None:
    _print_night(f"night with news in {_news_count(namespaces):,}", folder, namespaces)


def _print_night(what: str, folder: Path, namespaces: int) -> None:
    night = run_night(folder)
    each = f", {night.cpu_seconds / night.namespaces * 1e3:.0f} ms CPU each" if night.namespaces else ""
    print(
        f"  {what}: {night.seconds:.1f} s, {night.cpu_seconds:.3f} s CPU; {night.namespaces:,} of {namespaces:,} "
        f"opened{each}, {night.events:,} events, {night.errors} errors; {night.peak_mib} MiB, a process "
        f"{night.process_peak_mib} MiB"
    )


def _news_count(namespaces: int) -> int:
    return min(_NEWS_MAX, namespaces // 10)


def _news(folder: Path, namespaces: int) -> None:
    """Append, project, embed and extract news of two days ago in random namespaces, as workers do live."""
    chosen = random.Random(17).sample(range(min(namespaces, OWN_VECTORS)), _news_count(namespaces))
    begun_us = now_us() - 2 * DAY_US
    cpu = time.process_time()
    with Recollect(folder, settings=load_settings(), workers=False) as memory:
        parts = memory.parts
        parts.vectors.embedder.start()
        parts.vectors.embedder.wait_ready(600)
        for number in chosen:
            name = name_of(number)
            parts.log.append(name, _again(folder, number, begun_us))
            parts.read_models.catch_up(name)
            parts.vectors.embed_new(name)
            for job in LIVE_JOBS.values():
                job.work(parts.job_context, name, now_us())
            parts.backlog.note_read(name, parts.log.head(name).version)
    print(f"  news: {(time.process_time() - cpu) / len(chosen) * 1e3:.0f} ms CPU a namespace, live")


def _again(folder: Path, number: int, begun_us: int) -> list[Any]:
    events = conversation_of(folder, number)[_NEWS]
    return drafts(
        [
            event | {"id": f"again:{at}", "session_id": "again", "occurred_at": datetime_of(begun_us + at * 20_000_000)}
            for at, event in enumerate(events)
        ]
    )


def _server(folder: Path, namespaces: int) -> None:
    """Retrieve in random namespaces, twice in each; print latencies, memory and open files."""
    chosen = random.Random(7).sample(range(min(namespaces, OWN_VECTORS)), min(namespaces, _TOUCHED))
    questions = [str(event["payload"]["text"]) for event in texts.messages()]
    with Recollect(folder, settings=load_settings(), workers=False) as memory:
        memory.parts.vectors.embedder.start()
        memory.parts.vectors.embedder.wait_ready(600)
        for number in chosen[:20]:
            memory.retrieve(name_of(number), questions[number % len(questions)])
        first_ms, again_ms, cpu = list[float](), list[float](), time.process_time()
        before_mib = _rss_mib()
        for number in chosen[20:]:
            for times_ms in (first_ms, again_ms):
                started = time.perf_counter()
                memory.retrieve(name_of(number), questions[number % len(questions)])
                times_ms.append((time.perf_counter() - started) * 1_000)
        cpu_ms = (time.process_time() - cpu) / (2 * len(first_ms)) * 1_000
        files = len([*Path("/proc/self/fd").iterdir()])
        print(
            f"  server: {len(first_ms):,} namespaces at random, first retrieval p50 {_at(first_ms, 0.5):.1f} p99 "
            f"{_at(first_ms, 0.99):.1f} ms, second p50 {_at(again_ms, 0.5):.1f} p99 {_at(again_ms, 0.99):.1f} ms, "
            f"{cpu_ms:.1f} ms CPU each; {before_mib} MiB after 20, {_rss_mib()} MiB after all, {files} open files"
        )


def _replay(folder: Path, namespaces: int) -> None:
    """Replay some namespaces; print the time that all of them would take in one process."""
    count = min(namespaces, _REPLAYED)
    chosen = random.Random(3).sample(range(namespaces), count)
    with open_parts(load_settings(data=folder), workers=False) as parts:
        cpu, wall = time.process_time(), time.perf_counter()
        for number in chosen:
            parts.read_models.replay(name_of(number))
        cpu_ms, wall_ms = (time.process_time() - cpu) / count * 1e3, (time.perf_counter() - wall) / count * 1e3
    print(
        f"  replay: {cpu_ms:.1f} ms CPU, {wall_ms:.1f} ms a namespace; all of them {cpu_ms * namespaces / 6e4:.1f} min "
        f"of CPU (from {count})"
    )


def _rss_mib() -> int:
    with Path("/proc/self/status").open(encoding="ascii") as status:
        line = next((line for line in status if line.startswith("VmRSS")), None)
    return int(line.split()[1]) // 1024 if line else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _at(values: list[float], share: float) -> float:
    return sorted(values)[int(share * (len(values) - 1))]
