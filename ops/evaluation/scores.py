"""Scores: recall, reciprocal rank and latency of questions with known answers, and the report of them.

Recall at k, turn level: the share of the evidence messages among the first k items. Session level: the share of the
evidence sessions among the first k distinct sessions; *any*: whether at least one is; *whole*: whether all are.
MRR: 1 / rank of the first evidence message. Each is the mean over the questions, in percent (MRR 0 to 1).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

TURN_CUTS = (5, 10, 20, 50)
SESSION_CUTS = (1, 5, 10)
#: A question in this category asks about the wrong person (LoCoMo's adversarial one); it is reported apart.
ADVERSARIAL = "5"


class Score(Struct, frozen=True, kw_only=True):
    """The score of one question."""

    #: The data set of the conversation.
    set_name: str
    #: The category of the question.
    category: str
    #: Ranks of the evidence messages in the result, from 1, ascending.
    turn_ranks: tuple[int, ...]
    #: Evidence messages, in the result or not.
    turns: int
    #: Ranks of the evidence sessions among the distinct sessions of the result, from 1, ascending.
    session_ranks: tuple[int, ...]
    #: Evidence sessions, in the result or not.
    sessions: int
    #: Duration of the retrieval in milliseconds.
    latency_ms: float
    #: The ranking of the episodes.
    ranking: str = "weighted"
    #: Whether the weights were not fitted to the conversation (see `ops/fit`).
    held_out: bool = False


class Report(Struct, frozen=True):
    """All scores of a run, as rows or as a table."""

    scores: tuple[Score, ...]
    #: Parts that were missing during the run, such as the embedding model.
    degraded: tuple[str, ...]
    #: Further lines.
    notes: tuple[str, ...] = ()

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each set and ranking, then of the first ranking for each part and category of each set."""
        rows: list[dict[str, Any]] = []
        rankings = list(dict.fromkeys(score.ranking for score in self.scores))
        for name in sorted({score.set_name for score in self.scores}):
            scores = [score for score in self.scores if score.set_name == name]
            answerable = [score for score in scores if score.category != ADVERSARIAL]
            for ranking in rankings:
                rows.append(_row(name, "all", ranking, [score for score in answerable if score.ranking == ranking]))
            first = [score for score in scores if score.ranking == rankings[0]]
            for held_out, part in ((False, "fitted to"), (True, "held out")):
                part_scores = [score for score in first if score.held_out == held_out and score.category != ADVERSARIAL]
                if part_scores and len({score.held_out for score in first}) > 1:
                    rows.append(_row(name, part, rankings[0], part_scores))
            for category in sorted({score.category for score in first}):
                rows.append(_row(name, category, rankings[0], [score for score in first if score.category == category]))
        return rows

    def render(self) -> str:
        """Return a table in plain text."""
        lines = [render_table(self.rows()), *self.notes, *(f"degraded: {part}" for part in self.degraded)]
        return "\n".join(lines)


def render_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows with the same keys as a table in plain text."""
    if not rows:
        return "no questions"
    table = [list(rows[0]), *([_cell(value) for value in row.values()] for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table
    )


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
    """Return the score of a result.

    Parameters:
        question: a question with ``category``, ``gold`` and ``gold_sessions``.
        ids: the ids of the result's items, best first.
        sessions: the session of each item.
    """
    return Score(
        set_name=set_name,
        category=str(question["category"]),
        turn_ranks=_ranks(ids, question["gold"]),
        turns=len(question["gold"]),
        session_ranks=_ranks(list(dict.fromkeys(sessions)), question["gold_sessions"]),
        sessions=len(question["gold_sessions"]),
        latency_ms=latency_ms,
        ranking=ranking,
        held_out=held_out,
    )


def recall_at_10(score: Score) -> float:
    """Return recall at 10: of messages, or of sessions where no messages are marked."""
    ranks, total = (score.turn_ranks, score.turns) if score.turns else (score.session_ranks, score.sessions)
    return sum(rank <= 10 for rank in ranks) / total if total else 0.0


def _ranks(results: Sequence[str | None], evidence: Iterable[str]) -> tuple[int, ...]:
    """Return the ranks, from 1, of the results that are evidence."""
    gold = set(evidence)
    return tuple(rank for rank, name in enumerate(results, start=1) if name in gold)


def _row(set_name: str, category: str, ranking: str, scores: Sequence[Score]) -> dict[str, Any]:
    with_turns = [score for score in scores if score.turns]
    with_sessions = [score for score in scores if score.sessions]
    latencies = sorted(score.latency_ms for score in scores)
    row: dict[str, Any] = {"set": set_name, "category": category, "ranking": ranking, "questions": len(scores)}
    for k in TURN_CUTS:
        row[f"turn@{k}"] = _mean(100 * sum(r <= k for r in it.turn_ranks) / it.turns for it in with_turns)
    row["MRR"] = _mean(1 / it.turn_ranks[0] if it.turn_ranks else 0.0 for it in with_turns)
    for name, measure in _SESSION_MEASURES:
        for k in SESSION_CUTS:
            row[f"{name}@{k}"] = _mean(100 * measure(sum(r <= k for r in it.session_ranks), it) for it in with_sessions)
    row["p50_ms"] = statistics.median(latencies)
    row["p99_ms"] = latencies[int(0.99 * (len(latencies) - 1))]
    return row


_SESSION_MEASURES: tuple[tuple[str, Callable[[int, Score], float]], ...] = (
    ("sess", lambda hits, score: hits / score.sessions),
    ("any", lambda hits, _: float(hits > 0)),
    ("whole", lambda hits, score: float(hits == score.sessions)),
)


def _mean(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return statistics.fmean(numbers) if numbers else None


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}" if value <= 1 else f"{value:.1f}"
    return "–" if value is None else str(value)
