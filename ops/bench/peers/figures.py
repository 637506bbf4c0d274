"""What comes out: the same scores for all, by the definitions of `python ops/evaluation retrieval`, and one table."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

sys.path.append(str(Path(__file__).parents[2]))
from evaluation.conversations import read_conversation
from evaluation.scores import Report, Score, score_question

_PERCENT = ("turn@5", "turn@10", "turn@20", "sess@5", "sess@10")
_HEAD = ("set", "questions", "memory", "turn@5", "turn@10", "turn@20", "MRR", "sess@5", "sess@10")
#: Costs in the result of a worker; reading, the extraction of what was said, is Recollect's alone.
_MEASURED = {
    "ingest s": "ingest_seconds",
    "ingest CPU s": "ingest_cpu_seconds",
    "reading s": "reading_seconds",
    "reading CPU s": "reading_cpu_seconds",
    "peak MiB": "peak_mib",
    "disk MiB": "disk_mib",
}
_COSTS = ("p50 ms", "p99 ms", *_MEASURED)


class Outcome(Struct, frozen=True):
    """What one memory did on one data set: a row of the table, or the error that it stopped with."""

    set_name: str
    memory: str
    cells: tuple[str, ...] = ()
    note: str = ""
    error: str = ""


def outcome(set_name: str, memory: str, result: Path) -> Outcome:
    """Read the result of a worker; the adversarial questions are left out, as in the benchmark's own first rows."""
    told: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    scores = [Score(**score) for score in told["scores"]] if "scores" in told else _scores(set_name, told["answers"])
    row = Report(tuple(scores), ()).rows()[0]
    quality = [_cell(row[name], 1 if name in _PERCENT else 3) for name in _HEAD[3:]]
    costs = (row["p50_ms"], row["p99_ms"], *map(told.get, _MEASURED.values()))
    cells = (str(row["questions"]), memory, *quality, *(_cell(cost, 1) for cost in costs))
    return Outcome(set_name, memory, cells, note=told["note"])


def render(outcomes: Sequence[Outcome]) -> str:
    """Return the table in plain text, then what failed and what was done without."""
    table = [(*_HEAD, *_COSTS), *((it.set_name, *it.cells) for it in outcomes if it.cells)]
    widths = [max(len(row[at]) for row in table) for at in range(len(table[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    lines += [f"{it.set_name}: {it.memory} failed: {it.error}" for it in outcomes if it.error]
    return "\n".join([*lines, *dict.fromkeys(f"{it.memory}: {it.note}" for it in outcomes if it.note)])


def _scores(set_name: str, answers: dict[str, list[tuple[list[str], float]]]) -> list[Score]:
    scores: list[Score] = []
    for file, found in answers.items():
        conversation = read_conversation(Path(file))
        sessions = {event["id"]: event.get("session_id") for event in conversation.events}
        for question, (ids, latency_ms) in zip(conversation.questions, found, strict=True):
            scores.append(score_question(set_name, question, ids, [sessions[name] for name in ids], latency_ms))
    return scores


def _cell(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
