"""Compaction benchmark: the evidence in the context, and the tokens, before compaction and days after it.

Evidence is counted as the model reads it: a message counts when one of its sentences is in `context`, word by word.
Of a question whose evidence is marked by session only, a session counts when one of its sentences is there.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from evaluation.conversations import Conversation, read_conversation
from evaluation.retrieval_benchmark import RetrievalBenchmark
from evaluation.scores import ADVERSARIAL, render_table
from msgspec import Struct
from msgspec.structs import replace

from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.events.envelope import microseconds
from recollect.events.progress import OnPartProgress
from recollect.jobs.job_settings import JobSettings
from recollect.jobs.queue.nightly import compact_steps
from recollect.projections.projection_settings import RuntimeChoice
from recollect.projections.text.prompt_fence import single_line
from recollect.projections.text.sentences import split_sentences
from recollect.projections.text.words import content_words

#: Token budgets of the context: a small, a usual and a large one.
BUDGETS = (500, 1_500, 4_000)
#: Tokens of the budget for each item of a retrieval: a message of a chat has about 40, so the budget is the limit.
_TOKENS_PER_ITEM = 40
#: Content words of a sentence that counts as evidence; shorter ones, such as greetings, are in many messages.
_WORDS_MIN = 3


class EvidenceScore(Struct, frozen=True, kw_only=True):
    """The evidence in the context of one question at one budget."""

    #: The data set of the conversation.
    set_name: str
    #: ``before``, or ``after N days``: days between the last message and the last compaction.
    stage: str
    budget_tokens: int
    #: The share of the evidence that is in the context, 0 to 1.
    share: float
    #: Tokens of the context.
    tokens: int
    latency_ms: float


class Stage(Struct, frozen=True):
    """The totals of the memory before or after a compaction."""

    #: As in `EvidenceScore`.
    name: str
    #: Episodes by tier.
    episodes: dict[str, int]
    #: Estimated tokens by tier.
    tokens: dict[str, int]

    def render(self) -> str:
        """Return one line."""
        totals = (f"{tier} {self.episodes[tier]:,} episodes, {self.tokens[tier]:,} tokens" for tier in self.episodes)
        return f"stored {self.name}: {'; '.join(totals)}"


class CompactionReport(Struct, frozen=True):
    """The scores of all questions at all stages, and the totals of each stage."""

    scores: tuple[EvidenceScore, ...]
    stages: tuple[Stage, ...]
    #: Parts that were missing during the run, such as the embedding model.
    degraded: tuple[str, ...]

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each set, budget and stage; ``lost`` is in points, relative to the stage ``before``."""
        groups: defaultdict[tuple[str, int, str], list[EvidenceScore]] = defaultdict(list)
        for score in self.scores:
            groups[score.set_name, score.budget_tokens, score.stage].append(score)
        rows: list[dict[str, Any]] = []
        for name, budget in sorted({key[:2] for key in groups}):
            before: float | None = None
            for stage in self.stages:
                scores = groups[name, budget, stage.name]
                evidence = 100 * statistics.fmean(score.share for score in scores)
                any_of_it = 100 * statistics.fmean(score.share > 0 for score in scores)
                before = evidence if before is None else before
                rows.append(
                    {
                        "set": name,
                        "budget": budget,
                        "stage": stage.name,
                        "questions": len(scores),
                        "evidence": f"{evidence:.1f}",
                        "any": f"{any_of_it:.1f}",
                        "lost": f"{before - evidence:.1f}",
                        "tokens": round(statistics.fmean(score.tokens for score in scores)),
                        "p50_ms": statistics.median(score.latency_ms for score in scores),
                    }
                )
        return rows

    def render(self) -> str:
        """Return a table in plain text, and the totals."""
        lines = [render_table(self.rows()), *(stage.render() for stage in self.stages)]
        return "\n".join([*lines, *(f"degraded: {part}" for part in self.degraded)])


def run_compaction_bench(
    files: Sequence[Path],
    data: Path,
    embedding_model: str,
    days: Sequence[int],
    settings: JobSettings,
    on_progress: OnPartProgress,
    *,
    runtime: RuntimeChoice = "auto",
) -> CompactionReport:
    """Ask the questions of conversations before compaction, and again after the nights up to each of `days`.

    Parameters:
        data: a folder for the log and the read models; one with the conversations of the retrieval benchmark embeds
            nothing again. It is compacted.
        days: days after the last message of a conversation, ascending.

    Raises:
        InvalidInput: a file is not a conversation with questions.
    """
    conversations = [_shift_to_past(read_conversation(file), max(days, default=0)) for file in files]
    bench = RetrievalBenchmark(data, embedding_model, runtime)
    try:
        bench.wait(on_progress)
        for conversation in conversations:
            bench.load(conversation, on_progress)
        scores: list[EvidenceScore] = []
        stages: list[Stage] = []
        for last_day, day in zip((0, 0, *days), (0, *days), strict=False):
            stage = f"after {day} days" if day else "before"
            for number, conversation in enumerate(conversations, start=1):
                for night in _nights(last_day, day):
                    _compact(bench, conversation, night, settings)
                on_progress(f"compacting {stage}", number, len(conversations))
                bench.embed(conversation, on_progress)
                scores += _ask(bench, conversation, stage, on_progress)
            stages.append(_stage(bench, conversations, stage))
        return CompactionReport(tuple(scores), tuple(stages), tuple(bench.degraded))
    finally:
        bench.close()


def _nights(after: int, through: int) -> Iterator[int]:
    """Yield some nights after the day `after`, ever further apart, and the day `through` last.

    The steps are due by the age of messages, so the nights between these find hardly anything to do.
    """
    night = 1
    while night < through:
        if night > after:
            yield night
        night *= 2
    if through > after:
        yield through


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


def _compact(bench: RetrievalBenchmark, conversation: Conversation, night: int, settings: JobSettings) -> None:
    """Run the jobs of the night that is `night` days after the last message."""
    context = replace(bench.parts.job_context, settings=settings)
    compact_steps(context, conversation.namespace, microseconds(_last(conversation) + timedelta(days=night)))


def _ask(
    bench: RetrievalBenchmark, conversation: Conversation, stage: str, on_progress: OnPartProgress
) -> list[EvidenceScore]:
    """Ask the questions of a conversation at each budget; return the evidence in the contexts."""
    by_message, by_session = _sentences(conversation)
    questions = [question for question in conversation.questions if str(question["category"]) != ADVERSARIAL]
    scores: list[EvidenceScore] = []
    for done, question in enumerate(questions, start=1):
        gold = question["gold"] or question["gold_sessions"]
        evidence = [(by_message if question["gold"] else by_session).get(id, frozenset()) for id in gold]
        for budget in BUDGETS:
            request = RetrieveRequest.model_validate(
                {
                    "query": question["query"],
                    "limit": min(100, budget // _TOKENS_PER_ITEM),
                    "budget_tokens": budget,
                    "kinds": ["episode"],
                    "until": question.get("until"),
                }
            )
            result = bench.parts.retriever.retrieve(conversation.namespace, request)
            bench.degraded.update(dict.fromkeys(result.degraded))
            count = sum(any(sentence in result.context for sentence in sentences) for sentences in evidence)
            scores.append(
                EvidenceScore(
                    set_name=conversation.set_name,
                    stage=stage,
                    budget_tokens=budget,
                    share=count / len(evidence),
                    tokens=result.tokens,
                    latency_ms=result.latency_ms,
                )
            )
        on_progress(f"asking {conversation.name} {stage}", done, len(questions))
    return scores


def _sentences(conversation: Conversation) -> tuple[Mapping[str, frozenset[str]], Mapping[str, frozenset[str]]]:
    """Return the sentences that count as evidence, as the context has them, by message and by session.

    Of a message of short sentences, the whole text is one.
    """
    by_message: dict[str, frozenset[str]] = {}
    by_session: defaultdict[str, frozenset[str]] = defaultdict(frozenset)
    for event in conversation.events:
        text = single_line(event["payload"].get("text", ""))
        sentences = [part for part in split_sentences(text) if len(content_words(part)) >= _WORDS_MIN]
        by_message[event["id"]] = frozenset(sentences or ([text] if text else []))
        by_session[event.get("session_id", "")] |= frozenset(sentences)
    return by_message, by_session


def _stage(bench: RetrievalBenchmark, conversations: Sequence[Conversation], name: str) -> Stage:
    """Return the totals of all conversations."""
    episodes: Counter[str] = Counter()
    tokens: Counter[str] = Counter()
    for conversation in conversations:
        with bench.parts.read_models.reading(conversation.namespace) as snapshot:
            for tier, totals in snapshot.episodes.tier_totals().items():
                episodes[tier] += totals.episodes
                tokens[tier] += totals.tokens
    return Stage(name, dict(episodes), dict(tokens))
