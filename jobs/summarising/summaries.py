"""Summaries: summarises episodes within a token budget, by a language model or by extraction of sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, Field

from recollect.jobs.derivation.derived_events import Summary
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.llm.client import LlmClient
from recollect.jobs.summarising.extractive import summarise
from recollect.projections.queries.episode_queries import EpisodeRow
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.text.tokens import estimate_tokens


class LlmSummary(BaseModel):
    """The answer of a language model that summarises a conversation."""

    summary: Annotated[str, Field(min_length=1)]


#: Tokens that a summary may use however short its sources are: a sentence needs as many.
_TOKENS_MIN = 30
#: Tokens of the longest summary; an event has room for them.
_TOKENS_MAX = 16_000
#: How many times its budget a language model's summary may use: the model counts tokens differently.
_OVERRUN_MAX = 1.25
#: The summary of turns without words.
_WORDLESS = "(nothing was said)"


def summarise_episodes(
    context: JobContext,
    namespace: str,
    snapshot: Snapshot,
    turns: Sequence[EpisodeRow],
    *,
    tokens_max: int | None = None,
    share: float = 0,
) -> Summary:
    """Return a summary of `turns`.

    Parameters:
        tokens_max: the tokens of the summary; when None, `share` of the tokens of `turns`.
        share: from 0 to 1.
    """
    source_tokens = sum(estimate_tokens(f"{turn.speaker}: {turn.line()}") for turn in turns)
    wanted = int(share * source_tokens) if tokens_max is None else tokens_max
    budget = min(max(_TOKENS_MIN, wanted), _TOKENS_MAX)
    vectors = context.vectors().vectors_of_episodes(namespace, snapshot, [turn.version for turn in turns])
    by_llm = _summarise_by_llm(context.llm, namespace, turns, budget) if context.llm is not None else None
    text = by_llm or summarise(turns, [vectors.get(turn.version) for turn in turns], budget) or _WORDLESS
    return Summary(text, estimate_tokens(text), source_tokens)


def _summarise_by_llm(llm: LlmClient, namespace: str, turns: Sequence[EpisodeRow], budget: int) -> str | None:
    """Return the language model's summary; None when the request failed or the summary exceeds the budget."""
    lines = [f"(at most {budget} tokens)", *(f"{turn.speaker}: {turn.line()}" for turn in turns)]
    answer = llm.ask(namespace, "summarise", lines, LlmSummary)
    fits = answer is not None and estimate_tokens(answer.summary) <= budget * _OVERRUN_MAX
    return answer.summary if answer is not None and fits else None
