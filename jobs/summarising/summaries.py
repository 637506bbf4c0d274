"""Summaries of turns, in the tokens that a tier allows."""

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
    """What a language model says a conversation was about."""

    summary: Annotated[str, Field(min_length=1)]


#: However little there was: a sentence needs some room.
_TOKENS_MIN = 16
#: However much: nobody reads more, and an event has room for it.
_TOKENS_MAX = 16_000
#: How much longer than asked a language model's summary may be: it counts tokens in another way.
_OVER_MAX = 1.25
#: What a summary of turns without any words says.
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
        tokens_max: its length; a `share` of what it stands for when None.
    """
    source_tokens = sum(estimate_tokens(f"{turn.speaker}: {turn.line()}") for turn in turns)
    wanted = int(share * source_tokens) if tokens_max is None else tokens_max
    budget = min(max(_TOKENS_MIN, wanted), _TOKENS_MAX)
    vectors = context.vectors().vectors_of_episodes(namespace, snapshot, [turn.version for turn in turns])
    told = _told_by(context.llm, namespace, turns, budget) if context.llm is not None else None
    text = told or summarise(turns, [vectors.get(turn.version) for turn in turns], budget) or _WORDLESS
    return Summary(text, estimate_tokens(text), source_tokens)


def _told_by(llm: LlmClient, namespace: str, turns: Sequence[EpisodeRow], budget: int) -> str | None:
    """Return the language model's summary; None when it could not be asked, or does not keep to the budget."""
    lines = "\n".join(f"{turn.speaker}: {turn.line()}" for turn in turns)
    telling = llm.ask(namespace, "summarise", f"(at most {budget} tokens)\n{lines}", LlmSummary)
    fits = telling is not None and estimate_tokens(telling.summary) <= budget * _OVER_MAX
    return telling.summary if telling is not None and fits else None
