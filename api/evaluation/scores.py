"""Scores of questions with known answers, and the tables made of them.

Recall at k, turn level: of the messages that hold the evidence, the share among the first k items. Session level: of
the sessions that hold it, the share among the first k distinct sessions; *any*: whether one of them is; *all*: whether
all are. MRR: 1 / rank of the first message with evidence. Each is the mean over the questions, in percent (MRR 0 to 1).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

TURN_CUTS = (5, 10, 20, 50)
SESSION_CUTS = (1, 5, 10)
#: A question in this category asks about the wrong person (LoCoMo's adversarial one); it is reported apart.
ADVERSARIAL = "5"


@dataclass(frozen=True, slots=True)
class Score:
    """What came of one question."""

    set_name: str
    category: str
    #: Rank by rank, from 1: evidence messages, and evidence sessions, that were found; and how many there are.
    turn_ranks: tuple[int, ...]
    turns: int
    session_ranks: tuple[int, ...]
    sessions: int
    latency_ms: float
    #: How the episodes were put in order.
    ranking: str = "weighted"
    #: Whether the conversation is one that the weights were not fitted to (see `ops/fit`).
    held_out: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """All scores of a run, and how to show them."""

    scores: tuple[Score, ...]
    #: What was missing while it ran, such as the model.
    degraded: tuple[str, ...]
    #: Further lines.
    notes: tuple[str, ...] = ()

    def rows(self) -> list[dict[str, Any]]:
        """Return one row a set and ranking; then, of the first ranking, one a part and one a category of each set."""
        rows: list[dict[str, Any]] = []
        rankings = list(dict.fromkeys(score.ranking for score in self.scores))
        for name in sorted({score.set_name for score in self.scores}):
            scores = [score for score in self.scores if score.set_name == name]
            fair = [score for score in scores if score.category != ADVERSARIAL]
            for ranking in rankings:
                rows.append(_row(name, "all", ranking, [score for score in fair if score.ranking == ranking]))
            first = [score for score in scores if score.ranking == rankings[0]]
            for held_out, part in ((False, "fitted to"), (True, "held out")):
                mine = [score for score in first if score.held_out == held_out and score.category != ADVERSARIAL]
                if mine and len({score.held_out for score in first}) > 1:
                    rows.append(_row(name, part, rankings[0], mine))
            for category in sorted({score.category for score in first}):
                rows.append(_row(name, category, rankings[0], [score for score in first if score.category == category]))
        return rows

    def render(self) -> str:
        """Return a table in plain text."""
        rows = self.rows()
        if not rows:
            return "no questions"
        table = [list(rows[0]), *([_cell(value) for value in row.values()] for row in rows)]
        widths = [max(len(row[at]) for row in table) for at in range(len(table[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in table]
        return "\n".join([*lines, *self.notes, *(f"degraded: {part}" for part in self.degraded)])


def score_question(
    set_name: str,
    question: dict[str, Any],
    ids: Sequence[str],
    sessions: Sequence[str | None],
    latency_ms: float,
    *,
    ranking: str = "weighted",
    held_out: bool = False,
) -> Score:
    """Return the score of what was found: ids of messages, best first, and the session of each."""
    return Score(
        set_name,
        str(question["category"]),
        _ranks(ids, question["gold"]),
        len(question["gold"]),
        _ranks(list(dict.fromkeys(sessions)), question["gold_sessions"]),
        len(question["gold_sessions"]),
        latency_ms,
        ranking,
        held_out,
    )


def recall_at_10(score: Score) -> float:
    """Return the recall of a question at 10: of messages, or of sessions where no messages are marked."""
    ranks, total = (score.turn_ranks, score.turns) if score.turns else (score.session_ranks, score.sessions)
    return sum(rank <= 10 for rank in ranks) / total if total else 0.0


def _ranks(found: Sequence[str | None], wanted: Iterable[str]) -> tuple[int, ...]:
    gold = set(wanted)
    return tuple(rank for rank, name in enumerate(found, start=1) if name in gold)


def _row(set_name: str, category: str, ranking: str, scores: Sequence[Score]) -> dict[str, Any]:
    with_turns = [score for score in scores if score.turns]
    with_sessions = [score for score in scores if score.sessions]
    latencies = sorted(score.latency_ms for score in scores)
    row: dict[str, Any] = {"set": set_name, "category": category, "ranking": ranking, "questions": len(scores)}
    for k in TURN_CUTS:
        row[f"turn@{k}"] = _mean(100 * sum(r <= k for r in it.turn_ranks) / it.turns for it in with_turns)
    row["MRR"] = _mean(1 / it.turn_ranks[0] if it.turn_ranks else 0.0 for it in with_turns)
    for name, judge in _SESSION_JUDGES:
        for k in SESSION_CUTS:
            row[f"{name}@{k}"] = _mean(100 * judge(sum(r <= k for r in it.session_ranks), it) for it in with_sessions)
    row["p50_ms"] = statistics.median(latencies)
    row["p99_ms"] = latencies[int(0.99 * (len(latencies) - 1))]
    return row


_SESSION_JUDGES: tuple[tuple[str, Callable[[int, Score], float]], ...] = (
    ("sess", lambda found, score: found / score.sessions),
    ("any", lambda found, _: float(found > 0)),
    ("whole", lambda found, score: float(found == score.sessions)),
)


def _mean(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return statistics.fmean(numbers) if numbers else None


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}" if value <= 1 else f"{value:.1f}"
    return "–" if value is None else str(value)
