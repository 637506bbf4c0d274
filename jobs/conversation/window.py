"""Fitting a running conversation to a budget: the oldest turns become a summary, the recent ones stay as said."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from recollect.events.envelope import EventDraft
from recollect.jobs.conversation.topics import topic_changed
from recollect.jobs.derivation.append_derived import append_derived
from recollect.jobs.derivation.derived_events import Summary, conversation_compacted
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.summarising.episode_rows import plain_rows
from recollect.jobs.summarising.extractive import summarise
from recollect.projections.queries.episode_queries import EpisodeRow
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.text.tokens import estimate_tokens

#: Recent turns that stay, of few.
_KEPT_SHARE = 0.3
#: The part of a budget that summaries may take.
_SUMMARY_SHARE = 0.25
#: Tokens of a message beside its text.
_FRAME_TOKENS = 4
#: Turns that one summary stands for; the next call goes on.
_TURNS_MAX = 1_000
#: Turns that tell whether the topic has changed.
_TOPIC_TURNS = 24


class Window(NamedTuple):
    """A conversation, fitted."""

    #: ``{"role", "name", "content"}``, the summary first; in all within the budget.
    messages: list[dict[str, str]]
    tokens: int
    #: Whether this call summed turns up.
    compacted: bool
    #: The newest summary's episode.
    summary_id: str | None
    #: Whether the last turn begins a new topic; None when that cannot be told.
    topic_changed: bool | None
    #: What was left out: the budget is smaller than the turns that should stay.
    degraded: list[str]
    version: int


def fit_window(context: JobContext, namespace: str, session_id: str, budget_tokens: int) -> Window:
    """Return the conversation within `budget_tokens`; over 75 % of them its oldest half is summed up first, for good.

    The summary is an episode; what it stands for stays in the memory, and expires when its time comes. Called again
    without news it returns the same bytes and appends nothing.
    """
    compacted = (
        append_derived(context, namespace, partial(_compaction, context, namespace, session_id, budget_tokens)) > 0
    )
    context.read_models.catch_up(namespace)
    with context.read_models.reading(namespace) as snapshot:
        turns = snapshot.episodes.session_turns(session_id)
        summaries = snapshot.episodes.session_summaries(session_id)
        recent = turns[-_TOPIC_TURNS:]
        vectors = context.vectors().vectors_of_episodes(namespace, snapshot, [turn.version for turn in recent])
        known = [vectors[turn.version] for turn in recent if turn.version in vectors]
        version = snapshot.version
    messages = _summary_message([summary.text for summary in summaries], budget_tokens)
    left = budget_tokens - sum(_tokens(one["content"]) for one in messages)
    kept = _latest(turns, left)
    messages += [{"role": turn.role or "user", "name": turn.speaker, "content": turn.line()} for turn in kept]
    missing = len(turns) - len(kept)
    return Window(
        messages=messages,
        tokens=sum(_tokens(one["content"]) for one in messages),
        compacted=compacted,
        summary_id=summaries[-1].id if summaries else None,
        topic_changed=topic_changed(known) if len(known) == len(recent) > 1 else None,
        degraded=[f"window: {missing} of {len(turns)} recent turns do not fit"] if missing else [],
        version=version,
    )


def _compaction(
    context: JobContext, namespace: str, session_id: str, budget_tokens: int, snapshot: Snapshot
) -> Sequence[EventDraft]:
    """Return `conversation.compacted` for the oldest turns when there are too many tokens."""
    settings = context.settings
    turns = snapshot.episodes.session_turns(session_id)
    full = settings.conversation.window_full_share * budget_tokens
    held = _held_tokens(snapshot, session_id, budget_tokens)
    if held + sum(_tokens(turn.line()) for turn in turns) <= full:
        return []
    stay = max(1, min(settings.conversation.window_turns_kept, int(len(turns) * _KEPT_SHARE)))
    count = len(turns) // 2
    summary_tokens = int(_SUMMARY_SHARE * budget_tokens)
    while count < len(turns) - stay and summary_tokens + sum(_tokens(turn.line()) for turn in turns[count:]) > full:
        count += 1
    old = turns[: min(count, _TURNS_MAX)]
    if not old:
        return []
    source_tokens = sum(estimate_tokens(turn.line()) for turn in old)
    vectors = context.vectors().vectors_of_episodes(namespace, snapshot, [turn.version for turn in old])
    tokens_max = max(16, min(summary_tokens // 2, int(settings.compaction.compressed_share * source_tokens)))
    text = summarise(old, [vectors.get(turn.version) for turn in old], tokens_max) or "(nothing was said)"
    return [conversation_compacted(session_id, old, Summary(text, estimate_tokens(text), source_tokens))]


def _held_tokens(snapshot: Snapshot, session_id: str, budget_tokens: int) -> int:
    texts = [summary.text for summary in snapshot.episodes.session_summaries(session_id)]
    return sum(estimate_tokens(one["content"]) for one in _summary_message(texts, budget_tokens))


def _summary_message(summaries: Sequence[str], budget_tokens: int) -> list[dict[str, str]]:
    """Return the message that stands for the turns before, if any: all summaries, shortened when they are long."""
    if not summaries:
        return []
    tokens_max = max(16, int(_SUMMARY_SHARE * budget_tokens) - 8)
    text = " ".join(summaries)
    if estimate_tokens(text) > tokens_max:
        text = summarise(plain_rows(summaries), [None] * len(summaries), tokens_max)
    return [{"role": "system", "name": "recollect", "content": f"[Conversation summary: {text}]"}]


def _latest(turns: Sequence[EpisodeRow], tokens_max: int) -> list[EpisodeRow]:
    """Return the latest turns that fit."""
    kept: list[EpisodeRow] = []
    for turn in reversed(turns):
        tokens_max -= _tokens(turn.line())
        if tokens_max < 0:
            break
        kept.append(turn)
    return kept[::-1]


def _tokens(content: str) -> int:
    """Return what a message costs."""
    return estimate_tokens(content) + _FRAME_TOKENS
