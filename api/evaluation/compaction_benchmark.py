"""Compaction benchmark: recall, tokens and time of compaction, days after the last message of conversations."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from recollect.api.evaluation.conversations import Conversation, read_conversation
from recollect.api.evaluation.retrieval_benchmark import RetrievalBenchmark
from recollect.api.evaluation.scores import Report, Score
from recollect.events.envelope import microseconds
from recollect.events.progress import OnPartProgress
from recollect.jobs.job_settings import JobSettings
from recollect.jobs.queue.nightly import compact_steps
from recollect.projections.projection_settings import RuntimeChoice


@dataclass(frozen=True, slots=True)
class Stage:
    """The totals of the memory before or after a compaction."""

    #: ``before``, or ``after N days``: days between the last message and the compaction.
    name: str
    #: Episodes by tier.
    episodes: dict[str, int]
    #: Estimated tokens by tier.
    tokens: dict[str, int]
    #: Seconds of compaction per 1,000 events of the log, without embedding the summaries.
    seconds_per_1000: float

    def render(self) -> str:
        """Return one line."""
        totals = ", ".join(f"{tier} {self.episodes[tier]:,} / {self.tokens[tier]:,}" for tier in self.episodes)
        return f"{self.name}: {totals}; {self.seconds_per_1000:.2f} s for 1,000 events"


def run_compaction_bench(
    files: Sequence[Path],
    data: Path,
    embedding_model: str,
    days: Sequence[int],
    settings: JobSettings,
    on_progress: OnPartProgress,
    *,
    runtime: RuntimeChoice = "auto",
) -> tuple[list[Stage], Report]:
    """Ask the questions of conversations before compaction, and again after compaction at each of `days`.

    Parameters:
        days: days after the last message of a conversation, ascending.

    Returns:
        the stages; a report whose sets are named after them, such as ``locomo +10d``.

    Raises:
        InvalidInput: a file is not a conversation with questions.
    """
    conversations = [_shift_to_past(read_conversation(file), max(days, default=0)) for file in files]
    bench = RetrievalBenchmark(data, embedding_model, runtime)
    try:
        bench.wait(on_progress)
        scores: list[Score] = []
        stages: list[Stage] = []
        for conversation in conversations:
            bench.load(conversation, on_progress)
        for day in [None, *days]:
            started = time.perf_counter()
            if day is not None:
                _compact(bench, conversations, day, settings, on_progress)
            seconds = time.perf_counter() - started
            for conversation in conversations:
                bench.embed(conversation, on_progress)
                name = conversation.set_name + ("" if day is None else f" +{day}d")
                scores += bench.ask(conversation, name, on_progress)
            stages.append(_stage(bench, conversations, "before" if day is None else f"after {day} days", seconds))
        return stages, Report(tuple(scores), tuple(bench.degraded))
    finally:
        bench.close()


def _shift_to_past(conversation: Conversation, days: int) -> Conversation:
    """Return the conversation, moved by whole weeks to end at least `days` ago: the log refuses times in the future."""
    excess = _last(conversation) + timedelta(days=days + 1) - datetime.now(UTC)
    if excess < timedelta():
        return conversation
    shift = timedelta(weeks=excess // timedelta(weeks=1) + 1)

    def earlier(record: dict[str, Any], name: str) -> dict[str, Any]:
        if not record.get(name):
            return record
        return record | {name: (datetime.fromisoformat(record[name]) - shift).isoformat()}

    return conversation._replace(
        events=[earlier(event, "occurred_at") for event in conversation.events],
        questions=[earlier(question, "until") for question in conversation.questions],
    )


def _last(conversation: Conversation) -> datetime:
    return max(datetime.fromisoformat(event["occurred_at"]) for event in conversation.events)


def _compact(
    bench: RetrievalBenchmark,
    conversations: Sequence[Conversation],
    day: int,
    settings: JobSettings,
    on_progress: OnPartProgress,
) -> None:
    context = replace(bench.parts.job_context, settings=settings)
    for number, conversation in enumerate(conversations, start=1):
        now = _last(conversation) + timedelta(days=day)
        compact_steps(context, conversation.namespace, microseconds(now))
        on_progress(f"compacting after {day} days", number, len(conversations))


def _stage(bench: RetrievalBenchmark, conversations: Sequence[Conversation], name: str, seconds: float) -> Stage:
    episodes: Counter[str] = Counter()
    tokens: Counter[str] = Counter()
    events = 0
    for conversation in conversations:
        events += len(conversation.events)
        with bench.parts.read_models.reading(conversation.namespace) as snapshot:
            for tier, totals in snapshot.episodes.tier_totals().items():
                episodes[tier] += totals.episodes
                tokens[tier] += totals.tokens
    return Stage(name, dict(episodes), dict(tokens), seconds / events * 1_000)
