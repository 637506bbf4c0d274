"""How the benchmarks print."""

from __future__ import annotations

import time
from collections.abc import Callable


def heading(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}", flush=True)


def compare(what: str, ours: float, floor: float, unit: str = "events/s") -> None:
    print(f"{what:<44}{ours:>12,.0f}   floor {floor:>12,.0f} {unit}   ratio {ours / floor:.2f}", flush=True)


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
