"""Window: fits a running conversation to a token budget; summarises its oldest turns, keeps the others verbatim."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from recollect.events.envelope import EventDraft
from recollect.jobs.conversation.topics import topic_changed
from recollect.jobs.derivation.append_derived import append_derived
from recollect.jobs.derivation.event_drafts import SummaryDraft, conversation_compacted
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.job_settings import WINDOW_FULL_SHARE
from recollect.jobs.summarising.extractive import summarise
from recollect.jobs.summarising.summaries import CALLER_SECONDS_MAX, COMPRESSED_SHARE, summary_text
from recollect.jobs.summarising.summarised_rows import plain_rows
from recollect.projections.queries.queried_episodes import EpisodeRow
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.text.tokens import estimate_tokens

#: Latest turns that a window keeps verbatim, but at most `_KEPT_SHARE` of the turns.
_KEPT_TURNS_MAX = 10
#: Share of the turns that a window keeps verbatim, at most.
_KEPT_SHARE = 0.3
#: Share of a budget that summaries may use.
_SUMMARY_SHARE = 0.25
#: Tokens that a chat format adds to the text of a message.
_FRAME_TOKENS = 4
#: Turns that one summary replaces; the next call continues.
_TURNS_MAX = 1_000
#: Latest turns that are compared for a change of topic.
_TOPIC_TURNS = 24


class Window(NamedTuple):
    """A conversation that is fitted to a token budget."""

    #: Messages ``{"role", "name", "content"}``, the summary first; all together within the budget.
    messages: list[dict[str, str]]
    #: Estimated tokens of the messages.
    tokens: int
    #: Whether this call appended a summary.
    compacted: bool
    #: The id of the newest summary; None without a summary.
    summary_id: str | None
    #: Whether the last turn begins a new topic; None when vectors are missing.
    topic_changed: bool | None
    #: What was left out, because the budget is smaller than the recent turns.
    degraded: list[str]
    #: The version of the read model.
    version: int


def fit_window(context: JobContext, namespace: str, session_id: str, budget_tokens: int) -> Window:
    """Return the conversation within `budget_tokens`; summarise its oldest half first if it fills more than 75 %.

    The summary is appended as an episode. The turns that it replaces stay in the memory and expire as usual. A second
    call without new events returns the same bytes and appends no event.
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
        embedded = [vectors[turn.version] for turn in recent if turn.version in vectors]
        version = snapshot.version
    messages = _summary_message([summary.text for summary in summaries], budget_tokens)
    tokens_left = budget_tokens - sum(_tokens(message["content"]) for message in messages)
    fitting = _latest(turns, tokens_left)
    messages += [{"role": turn.role or "user", "name": turn.speaker, "content": turn.line()} for turn in fitting]
    missing = len(turns) - len(fitting)
    return Window(
        messages=messages,
        tokens=sum(_tokens(message["content"]) for message in messages),
        compacted=compacted,
        summary_id=summaries[-1].id if summaries else None,
        topic_changed=topic_changed(embedded) if len(embedded) == len(recent) > 1 else None,
        degraded=[f"window: {missing} of {len(turns)} recent turns do not fit"] if missing else [],
        version=version,
    )


def _compaction(
    context: JobContext, namespace: str, session_id: str, budget_tokens: int, snapshot: Snapshot
) -> Sequence[EventDraft]:
    """Return `conversation.compacted` for the oldest turns when the conversation exceeds its share of the budget."""
    turns = snapshot.episodes.session_turns(session_id)
    tokens_max = WINDOW_FULL_SHARE * budget_tokens
    tokens_of_summaries = _tokens_of_summaries(snapshot, session_id, budget_tokens)
    if tokens_of_summaries + sum(_tokens(turn.line()) for turn in turns) <= tokens_max:
        return []
    verbatim = max(1, min(_KEPT_TURNS_MAX, int(len(turns) * _KEPT_SHARE)))
    count = len(turns) // 2
    summary_tokens = int(_SUMMARY_SHARE * budget_tokens)
    while (
        count < len(turns) - verbatim
        and summary_tokens + sum(_tokens(turn.line()) for turn in turns[count:]) > tokens_max
    ):
        count += 1
    old = turns[: min(count, _TURNS_MAX)]
    if not old:
        return []
    source_tokens = sum(estimate_tokens(turn.line()) for turn in old)
    vectors = context.vectors().vectors_of_episodes(namespace, snapshot, [turn.version for turn in old])
    summary_tokens_max = max(16, min(summary_tokens // 2, int(COMPRESSED_SHARE * source_tokens)))
    by_turn = [vectors.get(turn.version) for turn in old]
    text = summary_text(context.llm, namespace, old, by_turn, summary_tokens_max, seconds_max=CALLER_SECONDS_MAX)
    return [conversation_compacted(session_id, old, SummaryDraft(text, estimate_tokens(text), source_tokens))]


def _tokens_of_summaries(snapshot: Snapshot, session_id: str, budget_tokens: int) -> int:
    """Return the tokens of the summary message of a session."""
    texts = [summary.text for summary in snapshot.episodes.session_summaries(session_id)]
    return sum(estimate_tokens(message["content"]) for message in _summary_message(texts, budget_tokens))


def _summary_message(summaries: Sequence[str], budget_tokens: int) -> list[dict[str, str]]:
    """Return the message with all summaries, shortened to their share of the budget; no message without summaries."""
    if not summaries:
        return []
    tokens_max = max(16, int(_SUMMARY_SHARE * budget_tokens) - 8)
    text = " ".join(summaries)
    if estimate_tokens(text) > tokens_max:
        text = summarise(plain_rows(summaries), [None] * len(summaries), tokens_max)
    return [{"role": "system", "name": "recollect", "content": f"[Conversation summary: {text}]"}]


def _latest(turns: Sequence[EpisodeRow], tokens_max: int) -> list[EpisodeRow]:
    """Return the latest turns that fit in `tokens_max`, in order."""
    fitting: list[EpisodeRow] = []
    for turn in reversed(turns):
        tokens_max -= _tokens(turn.line())
        if tokens_max < 0:
            break
        fitting.append(turn)
    return fitting[::-1]


def _tokens(content: str) -> int:
    """Return the estimated tokens of a message."""
    return estimate_tokens(content) + _FRAME_TOKENS
