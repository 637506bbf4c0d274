"""Samples of a soak: memory, open files and threads of the processes, bytes of the data folder, times and lag."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median

import httpx
from msgspec import Struct

_MIB = 1 << 20
_PROC = Path("/proc")
#: Growth from the second third of the samples without kills to the last one, over which something is not flat: a
#: fraction, and a number, both of which must be exceeded. In the first third the caches are filled.
_GROWTH = {
    "pss_mib": (0.10, 24.0),
    "files_open": (0.10, 16.0),
    "threads": (0.10, 6.0),
    "models_mib": (0.40, 8.0),
    "vectors_mib": (0.40, 8.0),
    "other_mib": (0.40, 8.0),
}


class Sample(Struct, frozen=True, kw_only=True):
    """What was measured at one moment, in the order of the columns of the table."""

    minute: float
    #: Resident memory of all processes, pages that they share counted in each; and shared out between them.
    rss_mib: float
    pss_mib: float
    files_open: int
    threads: int
    #: Bytes of the log and its archive, which erased events stay in without their content; of the keys, read models,
    #: vectors, and all other files.
    log_mib: float
    keys_mib: float
    models_mib: float
    vectors_mib: float
    other_mib: float
    files: int
    messages: int
    append_p50_ms: float
    append_p99_ms: float
    retrieve_p50_ms: float
    retrieve_p99_ms: float
    #: Events that read models, vectors and extraction are behind the log.
    lag: int


def processes_of(pid: int) -> list[int]:
    """Return a process and its descendants, by Linux's /proc; none when it has ended."""
    with suppress(OSError):
        children = (_PROC / str(pid) / "task" / str(pid) / "children").read_text().split()
        return [pid, *(it for child in children for it in processes_of(int(child)))]
    return []


def _usage(pid: int) -> tuple[int, int, int, int]:
    """Return the resident bytes of a process, its part of shared pages counted in proportion, open files, threads."""
    memory = dict(line.split(":", 1) for line in (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()[1:])
    rss, pss = (1024 * int(memory[name].split()[0]) for name in ("Rss", "Pss"))
    files_open, threads = (len(list((_PROC / str(pid) / name).iterdir())) for name in ("fd", "task"))
    return rss, pss, files_open, threads


def take_sample(
    minute: float,
    processes: Sequence[int],
    data: Path,
    base: str,
    messages: int,
    append_seconds: Sequence[float],
    retrieve_seconds: Sequence[float],
) -> Sample:
    """Measure everything once; a process that ends meanwhile is left out."""
    usages: list[tuple[int, int, int, int]] = []
    for process in processes:
        with suppress(OSError):
            usages.append(_usage(process))
    rss, pss, files_open, threads = (sum(usage[at] for usage in usages) for at in range(4))
    sizes = folder_sizes(data)
    return Sample(
        minute=minute,
        rss_mib=rss / _MIB,
        pss_mib=pss / _MIB,
        files_open=files_open,
        threads=threads,
        log_mib=sizes["log"] / _MIB,
        keys_mib=sizes["keys"] / _MIB,
        models_mib=sizes["models"] / _MIB,
        vectors_mib=sizes["vectors"] / _MIB,
        other_mib=sizes["other"] / _MIB,
        files=sizes["files"],
        messages=messages,
        append_p50_ms=_percentile_ms(append_seconds, 0.5),
        append_p99_ms=_percentile_ms(append_seconds, 0.99),
        retrieve_p50_ms=_percentile_ms(retrieve_seconds, 0.5),
        retrieve_p99_ms=_percentile_ms(retrieve_seconds, 0.99),
        lag=_lag(base),
    )


def folder_sizes(data: Path) -> dict[str, int]:
    """Return the bytes of a data folder by kind, and the number of its `files`."""
    kinds: list[str] = ["log", "keys", "models", "vectors", "other", "files"]
    sizes = dict.fromkeys(kinds, 0)
    for file in data.rglob("*"):
        with suppress(OSError):
            if file.is_file():
                sizes["files"] += 1
                sizes[_kind(file, data)] += file.stat().st_size
    return sizes


def _kind(file: Path, data: Path) -> str:
    inside = file.relative_to(data).parts
    if inside[0] in ("archive",) or inside[0].startswith("log.db"):
        return "log"
    if inside[0].startswith("keys.db"):
        return "keys"
    if inside[0] == "namespaces" and ".db" in file.name:
        return "vectors" if file.name.startswith("vectors") else "models"
    return "other"


def growths(calm: Sequence[Sample]) -> list[str]:
    """Return what grew from the second third of the samples to the last one."""
    third = len(calm) // 3
    if third < 3:
        return []
    grown: list[str] = []
    for name, (fraction, number) in _GROWTH.items():
        parts = calm[third:-third], calm[-third:]
        before, after = (median(float(getattr(it, name)) for it in part) for part in parts)
        if after - before > max(number, fraction * before):
            grown.append(f"{name} grew from {before:.1f} to {after:.1f} without kills")
    return grown


def table(samples: Sequence[Sample], rows: int = 10) -> str:
    """Return a table of `rows` samples at equal distances."""
    step = max(1, len(samples) // rows)
    names = [*Sample.__struct_fields__]
    lines = [
        names,
        *(
            [f"{getattr(it, name):.0f}" if name != "keys_mib" else f"{it.keys_mib:.1f}" for name in names]
            for it in samples[step - 1 :: step]
        ),
    ]
    widths = [max(len(line[at]) for line in lines) for at in range(len(names))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def _percentile_ms(seconds: Sequence[float], at: float) -> float:
    ordered = sorted(seconds)
    return 1_000 * ordered[min(len(ordered) - 1, int(at * len(ordered)))] if ordered else 0.0


def _lag(base: str) -> int:
    with suppress(httpx.HTTPError, ValueError, KeyError):
        lag = httpx.get(f"{base}/health", timeout=10).json()["lag"]
        return sum(lag[name] for name in ("read_models", "embeddings", "extraction"))
    return -1
