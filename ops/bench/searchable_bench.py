"""Seconds until a message is searchable by meaning, while messages arrive at a steady rate.

Messages of real conversations, or of the demo conversation, go to a few namespaces in turn. The workers of the same
process embed and read them, as `recollect serve` does.
"""

from __future__ import annotations

import statistics
import time
from itertools import cycle
from pathlib import Path

import texts
from table import heading

from recollect import Recollect
from recollect.api.settings import load_settings

#: Messages a second.
RATES = (2, 10, 40)
SECONDS = 20
NAMESPACES = 4
_LOOK_SECONDS = 0.01
#: After so long, what is not searchable is counted as missing.
_WAIT_SECONDS_MAX = 120.0


def run(folder: Path) -> None:
    heading("Seconds from append to searchable by meaning, messages at a steady rate")
    for set_name, events in texts.sets(max(RATES) * SECONDS).items():
        for rate in RATES:
            with Recollect(settings=load_settings(data=folder / f"{set_name}-{rate}")) as memory:
                assert memory.parts.vectors.embedder.wait_ready(300), memory.parts.vectors.embedder.reason
                _measure(memory, f"{set_name}, {rate} a second", events[: rate * SECONDS], rate)


def _measure(memory: Recollect, name: str, events: list[dict[str, object]], rate: int) -> None:
    #: Of each namespace, version and time of the appends that are not searchable yet.
    waiting: dict[str, list[tuple[int, float]]] = {f"n{number}": [] for number in range(NAMESPACES)}
    seconds: list[float] = []
    started = time.perf_counter()
    for number, (namespace, event) in enumerate(zip(cycle(waiting), events, strict=False)):
        while time.perf_counter() < started + number / rate:
            _look(memory, waiting, seconds)
        appended = memory.append(namespace, [event])
        waiting[namespace].append((appended[-1].version, time.perf_counter()))
    until = time.perf_counter() + _WAIT_SECONDS_MAX
    while any(waiting.values()) and time.perf_counter() < until:
        _look(memory, waiting, seconds)
    missing = sum(map(len, waiting.values()))
    cuts = statistics.quantiles(seconds, n=100)
    print(
        f"  {name:<24}p50 {cuts[49]:6.2f}   p99 {cuts[98]:6.2f} s   ({len(seconds):,} messages, {missing} missing)",
        flush=True,
    )


def _look(memory: Recollect, waiting: dict[str, list[tuple[int, float]]], seconds: list[float]) -> None:
    """Move what is searchable by now from `waiting` to `seconds`."""
    time.sleep(_LOOK_SECONDS)
    parts = memory.parts
    for namespace, messages in waiting.items():
        if not messages:
            continue
        with parts.read_models.reading(namespace) as snapshot:
            last = snapshot.version
            left = parts.vectors.backlog(namespace, snapshot).missing
        now = time.perf_counter()
        done = [message for message in messages if message[0] <= last][: -left or None]
        seconds += [now - at for _, at in done]
        del messages[: len(done)]
