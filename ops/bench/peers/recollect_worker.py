"""Recollect on one data set, in a process of its own and its own environment: `MODEL FOLDER RESULT ITEMS FILE...`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import asdict
from worker import disk_mib, peak_mib

sys.path.append(str(Path(__file__).parents[2]))
from evaluation.conversations import read_conversation
from evaluation.retrieval_benchmark import RetrievalBenchmark
from evaluation.scores import Score


def main(model: str, folder: Path, result: Path, items: int, files: Sequence[Path]) -> None:
    bench = RetrievalBenchmark(folder, model)
    scores: list[Score] = []
    took: dict[str, list[float]] = {"ingest": [0.0, 0.0], "reading": [0.0, 0.0]}
    try:
        bench.wait(_quiet)
        for file in files:
            conversation = read_conversation(file)
            with _added_to(took["ingest"]):
                bench.append(conversation)
                bench.embed_new(conversation, _quiet)
            with _added_to(took["reading"]):
                bench.extract(conversation)
                bench.embed_new(conversation, _quiet)
            scores += bench.ask(conversation, conversation.set_name, _quiet, items=items)
    finally:
        bench.close()
    costs = {
        **{f"{part}_seconds": seconds for part, (seconds, _) in took.items()},
        **{f"{part}_cpu_seconds": seconds for part, (_, seconds) in took.items()},
        "peak_mib": peak_mib(),
        "disk_mib": disk_mib(folder),
    }
    told = {"scores": [asdict(score) for score in scores], "note": ", ".join(bench.degraded), **costs}
    result.write_text(json.dumps(told), encoding="utf-8")


@contextmanager
def _added_to(seconds: list[float]) -> Generator[None]:
    """Add the seconds of the clock and of the processor to `seconds`."""
    started, cpu_started = time.perf_counter(), time.process_time()
    yield
    seconds[0] += time.perf_counter() - started
    seconds[1] += time.process_time() - cpu_started


def _quiet(_what: str, _done: int, _total: int | None) -> None:
    """Show nothing: what is measured is not slowed down by a progress bar."""


if __name__ == "__main__":
    files = [Path(name) for name in sys.argv[5:]]
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]), files)
