"""Summaries: summarises episodes within a token budget, by a language model or by extraction of sentences."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.jobs.derivation.event_drafts import SummaryDraft
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.llm.conversation_lines import source_lines, turn_lines
from recollect.jobs.llm.grounding import SourceEvidence
from recollect.jobs.llm.model_client import LlmClient
from recollect.jobs.summarising.extractive import summarise
from recollect.projections.embeddings.embedder import Vector
from recollect.projections.embeddings.reading_encoder import Embed, reading_embed
from recollect.projections.queries.queried_episodes import EpisodeRow
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.text.sentences import split_sentences
from recollect.projections.text.tokens import estimate_tokens

#: Tokens of a compressed episode, and of the summary of a window's oldest turns, as a share of their sources'.
COMPRESSED_SHARE = 0.25
#: Tokens that a summary may use however short its sources are: a sentence needs as many.
_TOKENS_MIN = 30
#: Tokens of the longest summary; an event has room for them.
_TOKENS_MAX = 16_000
#: Tokens of the shortest summary that a language model is asked for: it writes whole sentences, of which those that fit
#: are kept.
_LLM_TOKENS_MIN = 60
#: Seconds that a caller waits for a summary.
CALLER_SECONDS_MAX = 30.0
#: Tokens of the conversation that one request reads; of a longer one, it reads the sentences that say most.
_REQUEST_TOKENS_MAX = 6_000
#: Share of the tokens of the extracted sentences that a model's text has at least; a shorter one has lost most of them.
ENOUGH_SHARE_MIN = 0.2
#: Share of the sentences of a model's summary that its sources ground; with fewer, the others are not trusted either.
_GROUNDED_SHARE_MIN = 0.5
#: The summary of turns without words.
_WORDLESS = "(nothing was said)"
#: Summaries in one append when a language model writes them: at its time-out they take less than a job may.
LLM_SUMMARIES_MAX = 4


def summarise_episodes(
    context: JobContext,
    namespace: str,
    snapshot: Snapshot,
    turns: Sequence[EpisodeRow],
    *,
    share: float,
) -> SummaryDraft:
    """Return a summary of `turns` with a share, from 0 to 1, of their tokens."""
    source_tokens = sum(estimate_tokens(f"{turn.speaker}: {turn.line()}") for turn in turns)
    budget = min(max(_TOKENS_MIN, int(share * source_tokens)), _TOKENS_MAX)
    by_version = context.vectors().vectors_of_episodes(namespace, snapshot, [turn.version for turn in turns])
    vectors = [by_version.get(turn.version) for turn in turns]
    text = summary_text(context.llm, namespace, turns, vectors, budget, embed=reading_embed(context.vectors().embedder))
    return SummaryDraft(text, estimate_tokens(text), source_tokens)


def summary_text(
    llm: LlmClient | None,
    namespace: str,
    turns: Sequence[EpisodeRow],
    vectors: Sequence[Vector | None],
    tokens_max: int,
    *,
    seconds_max: float | None = None,
    embed: Embed | None = None,
) -> str:
    """Return a summary of `turns`: the language model's, or the extracted sentences when it is unusable or poorer.

    Parameters:
        vectors: one vector a turn, or None where the turn is not embedded.
        seconds_max: the longest time-out of the request, when a caller waits for the summary.
        embed: embeds the sentences that are likely to matter, when no caller waits.
    """
    by_rules = summarise(turns, vectors, tokens_max, embed=embed)
    by_llm = None if llm is None else _summarise_by_llm(llm, namespace, turns, vectors, tokens_max, seconds_max)
    is_enough = by_llm is not None and estimate_tokens(by_llm) >= ENOUGH_SHARE_MIN * estimate_tokens(by_rules)
    return (by_llm if is_enough else by_rules) or _WORDLESS


def _summarise_by_llm(
    llm: LlmClient,
    namespace: str,
    turns: Sequence[EpisodeRow],
    vectors: Sequence[Vector | None],
    tokens_max: int,
    seconds_max: float | None,
) -> str | None:
    """Return the language model's summary without ungrounded sentences; None when it is not usable."""
    lines = turn_lines(turns)
    if sum(map(estimate_tokens, lines)) > _REQUEST_TOKENS_MAX:
        lines = split_sentences(summarise(turns, vectors, _REQUEST_TOKENS_MAX))
    wanted = max(_LLM_TOKENS_MIN, tokens_max)
    answer = llm.ask(
        namespace, "summarise", lines, lambda text: text or None, tokens_max=wanted, seconds_max=seconds_max
    )
    if answer is None:
        return None
    # A small model repeats itself.
    sentences = list(
        dict.fromkeys(part for line in answer.splitlines() for part in split_sentences(line.strip(" -*•\t")))
    )
    grounded = SourceEvidence(source_lines(turns)).grounded_sentences(sentences)
    if len(grounded) < _GROUNDED_SHARE_MIN * len(sentences):
        return None
    return _fitting(grounded, tokens_max) or None


def _fitting(sentences: Sequence[str], tokens_max: int) -> str:
    """Return the first sentences that fit; the first one always, since it is the most important."""
    kept: list[str] = []
    for sentence in sentences:
        if kept and estimate_tokens(" ".join([*kept, sentence])) > tokens_max:
            break
        kept.append(sentence)
    return " ".join(kept)
