"""How well retrieval finds the evidence in conversations with known answers, and how long it takes.

Recall at k, turn level: of the messages that hold the evidence, the share among the first k items. Session level: of
the sessions that hold it, the share among the first k distinct sessions. MRR: 1 / rank of the first message with
evidence. Each is the mean over the questions, in percent (MRR from 0 to 1).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from recollect.api.retrieval.request import RetrieveRequest
from recollect.api.retrieval.result import RetrieveResult
from recollect.api.retrieval.retriever import Retriever
from recollect.events.errors import InvalidInput
from recollect.events.limits import BATCH_EVENTS_MAX
from recollect.events.sqlite import SqliteLog
from recollect.events.validation import drafts
from recollect.projections.embedder import open_embedder
from recollect.projections.history import History
from recollect.projections.models import ReadModels
from recollect.projections.vectors import Vectors

CUTS = (1, 5, 10, 20, 50)
#: A question in this category asks about the wrong person (LoCoMo's adversarial one); it is reported apart.
_ADVERSARIAL = "5"
#: Items asked for: enough for ten distinct sessions.
_ITEMS = 100
#: More than any answer needs, so that the token budget does not decide.
_TOKENS = 100_000
_MODEL_SECONDS_MAX = 600

#: Called with what is going on, the steps done and the steps in all.
OnProgress = Callable[[str, int, int], None]


class Conversation(NamedTuple):
    """A conversation, and questions that it answers."""

    name: str
    #: The file's name up to the first ``-``.
    set_name: str
    events: list[dict[str, Any]]
    questions: list[dict[str, Any]]

    @property
    def namespace(self) -> str:
        """Return where it is loaded."""
        return f"bench-{self.name}"


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


@dataclass(frozen=True, slots=True)
class Report:
    """All scores of a run, and how to show them."""

    scores: tuple[Score, ...]
    #: What was missing while it ran, such as the model.
    degraded: tuple[str, ...]

    def rows(self) -> list[dict[str, Any]]:
        """Return one row a set, then one a category within each set; the adversarial questions apart."""
        rows: list[dict[str, Any]] = []
        for name in sorted({score.set_name for score in self.scores}):
            scores = [score for score in self.scores if score.set_name == name]
            rows.append(_row(name, "all", [score for score in scores if score.category != _ADVERSARIAL]))
            categories = sorted({score.category for score in scores})
            rows += [_row(name, it, [score for score in scores if score.category == it]) for it in categories]
        return rows

    def render(self) -> str:
        """Return a table in plain text."""
        head = ["set", "category", "questions", *(f"turn@{k}" for k in CUTS), "MRR"]
        head += [*(f"sess@{k}" for k in CUTS), "p50 ms", "p99 ms"]
        table = [head, *([_cell(value) for value in row.values()] for row in self.rows())]
        widths = [max(len(row[at]) for row in table) for at in range(len(head))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in table]
        return "\n".join([*lines, *(f"degraded: {part}" for part in self.degraded)])


class Bench:
    """A memory to measure: conversations loaded into namespaces of their own, and asked."""

    def __init__(self, data: Path, embedding_model: str) -> None:
        self.log = SqliteLog(data / "log.db")
        self._embedder = open_embedder(embedding_model)
        self._embedder.start()
        self.models = ReadModels(data, self.log)
        self.vectors = Vectors(data, self.models, self._embedder)
        self._history = History(data, self.log, self.models)
        # Without a time limit: quality is measured, and a busy machine must not change it.
        self._retriever = Retriever(self.models, self._history, lambda: self.vectors, budget_ms=60_000)
        #: What was missing while it ran.
        self.degraded: dict[str, None] = {}

    def wait(self, on_progress: OnProgress) -> None:
        """Wait for the model."""
        on_progress("loading the model", 0, 1)
        self._embedder.wait_ready(_MODEL_SECONDS_MAX)

    def load(self, conversation: Conversation, on_progress: OnProgress) -> None:
        """Append a conversation and embed it."""
        for start in range(0, len(conversation.events), BATCH_EVENTS_MAX):
            self.log.append(conversation.namespace, drafts(conversation.events[start : start + BATCH_EVENTS_MAX]))
        self.embed(conversation, on_progress)

    def embed(self, conversation: Conversation, on_progress: OnProgress) -> None:
        """Fold and embed what is new."""
        self.models.catch_up(conversation.namespace)
        what = f"embedding {conversation.name}"
        self.vectors.embed_news(conversation.namespace, on_progress=lambda done, total: on_progress(what, done, total))

    def ask(self, conversation: Conversation, set_name: str, on_progress: OnProgress) -> list[Score]:
        """Ask the questions of a conversation that have an answer in it."""
        scores: list[Score] = []
        for done, question in enumerate(conversation.questions, start=1):
            result = self._retriever.retrieve(conversation.namespace, _request(question))
            self.degraded.update(dict.fromkeys(result.degraded))
            scores.append(_score(set_name, question, result))
            on_progress(f"asking {conversation.name}", done, len(conversation.questions))
        return scores

    def close(self) -> None:
        """Close everything."""
        self._retriever.close()
        self._history.close()
        self.vectors.close()
        self.models.close()
        self.log.close()


def run_retrieval_bench(files: Sequence[Path], data: Path, embedding_model: str, on_progress: OnProgress) -> Report:
    """Load each conversation into a namespace of its own, embed it, ask its questions.

    Parameters:
        files: conversations in the shape of ``{"name", "events", "questions"}``.
        data: a folder for the log and the read models; a second run with the same one embeds nothing again.

    Raises:
        InvalidInput: a file has another shape.
    """
    bench = Bench(data, embedding_model)
    try:
        bench.wait(on_progress)
        scores: list[Score] = []
        for file in files:
            conversation = read_conversation(file)
            bench.load(conversation, on_progress)
            scores += bench.ask(conversation, conversation.set_name, on_progress)
        return Report(tuple(scores), tuple(bench.degraded))
    finally:
        bench.close()


def read_conversation(file: Path) -> Conversation:
    """Read a conversation with its questions.

    Raises:
        InvalidInput: the file has another shape.
    """
    try:
        content = orjson.loads(file.read_bytes())
        questions = [question for question in content["questions"] if question["gold"] or question["gold_sessions"]]
        return Conversation(content["name"], file.stem.partition("-")[0], content["events"], questions)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"not a conversation with questions: {error}", field=str(file)) from error


def _request(question: dict[str, Any]) -> RetrieveRequest:
    return RetrieveRequest.model_validate(
        {
            "query": question["query"],
            "limit": _ITEMS,
            "budget_tokens": _TOKENS,
            "kinds": ["episode"],
            "until": question.get("until"),
        }
    )


def _score(set_name: str, question: dict[str, Any], result: RetrieveResult) -> Score:
    ids = [item.id for item in result.items]
    sessions = list(dict.fromkeys(item.session_id for item in result.items))
    return Score(
        set_name,
        str(question["category"]),
        _ranks(ids, question["gold"]),
        len(question["gold"]),
        _ranks(sessions, question["gold_sessions"]),
        len(question["gold_sessions"]),
        result.latency_ms,
    )


def _ranks(found: Sequence[str | None], wanted: Iterable[str]) -> tuple[int, ...]:
    gold = set(wanted)
    return tuple(rank for rank, name in enumerate(found, start=1) if name in gold)


def _row(set_name: str, category: str, scores: Sequence[Score]) -> dict[str, Any]:
    with_turns = [score for score in scores if score.turns]
    with_sessions = [score for score in scores if score.sessions]
    latencies = sorted(score.latency_ms for score in scores)
    row: dict[str, Any] = {"set": set_name, "category": category, "questions": len(scores)}
    for k in CUTS:
        row[f"turn@{k}"] = _mean(100 * sum(r <= k for r in it.turn_ranks) / it.turns for it in with_turns)
    row["MRR"] = _mean(1 / it.turn_ranks[0] if it.turn_ranks else 0.0 for it in with_turns)
    for k in CUTS:
        row[f"sess@{k}"] = _mean(100 * sum(r <= k for r in it.session_ranks) / it.sessions for it in with_sessions)
    row["p50_ms"] = statistics.median(latencies)
    row["p99_ms"] = latencies[int(0.99 * (len(latencies) - 1))]
    return row


def _mean(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return statistics.fmean(numbers) if numbers else None


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}" if value <= 1 else f"{value:.1f}"
    return "–" if value is None else str(value)
