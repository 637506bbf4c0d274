"""The observer and the reflector: what a running conversation was about, in short lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from recollect.events.envelope import EventDraft, instant
from recollect.jobs.conversation.topics import changes
from recollect.jobs.derivation.append_derived import derive_all
from recollect.jobs.derivation.derived_events import observations_recorded, observations_reflected, turns_summarised
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.summarising.episode_rows import Turn, lines, read_turns
from recollect.jobs.summarising.extractive import summarise
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.text.tokens import estimate_tokens

#: Turns that one observation tells of, at most; a change of topic begins another one before.
_TURNS_MAX = 6
#: Turns that one event tells of; the next one goes on.
_TURNS_READ_MAX = 1_000
#: Tokens of an observation, as a share of its turns, and at most.
_SHARE = 0.25
_LINE_TOKENS_MAX = 60
#: Sessions, or long messages, in one append.
_ITEMS_MAX = 20

# Only sessions that were spoken in lately: the others were looked at when they were.
_UNOBSERVED = """
SELECT recent.id FROM (SELECT id FROM sessions ORDER BY last_version DESC LIMIT ?2) AS recent
LEFT JOIN observation_cursors ON observation_cursors.session_id = recent.id
JOIN episodes ON episodes.session_id = recent.id AND version > coalesce(through, 0)
WHERE tier = 'raw' AND type = 'conversation' AND status = 'active'
GROUP BY recent.id HAVING sum(token_count) >= ?1 ORDER BY min(version)
"""
_TURNS = """
LEFT JOIN observation_cursors ON observation_cursors.session_id = episodes.session_id
WHERE episodes.session_id = ? AND tier = 'raw' AND type = 'conversation' AND status = 'active'
    AND version > coalesce(through, 0) ORDER BY version LIMIT ?
"""
_FULL = """
SELECT session_id, max(occurred_at_us) FROM observations WHERE status = 'active' AND session_id IS NOT NULL
GROUP BY session_id HAVING sum(token_count) > ? ORDER BY session_id LIMIT ?
"""
_LINES = "SELECT event_id, text FROM observations WHERE session_id = ? AND status = 'active' ORDER BY key"
_LONG = """
WHERE tier = 'raw' AND type = 'conversation' AND short IS NULL AND token_count > 100 AND token_count > ?
ORDER BY version LIMIT ?
"""


def observe(context: JobContext, namespace: str, _: int) -> int:
    """Observe what is due, condense observations that are too many, shorten long messages; return events appended."""
    steps = (_observations, _reflections, _short_forms)
    return sum(derive_all(context, namespace, partial(step, context, namespace)) for step in steps)


def _observations(context: JobContext, namespace: str, snapshot: Snapshot) -> Sequence[EventDraft]:
    """Return `observations.recorded` for sessions with enough turns that nobody observed."""
    rows: list[tuple[Any, ...]] = snapshot.connection.execute(
        _UNOBSERVED, (context.settings.conversation.observe_tokens, _ITEMS_MAX)
    ).fetchall()
    return [_observed(context, namespace, snapshot, row[0]) for row in rows]


def _observed(context: JobContext, namespace: str, snapshot: Snapshot, session_id: str) -> EventDraft:
    turns = read_turns(snapshot.connection, _TURNS, (session_id, _TURNS_READ_MAX))
    vectors = context.vectors_in_use().of_turns(namespace, snapshot, [turn.version for turn in turns])
    observations: list[str] = []
    left = context.settings.conversation.observations_tokens_max
    for segment in _segments(turns, [vectors.get(turn.version) for turn in turns]):
        tokens_max = min(_LINE_TOKENS_MAX, int(_SHARE * sum(estimate_tokens(turn.line()) for turn in segment)) + 12)
        text = summarise(segment, [vectors.get(turn.version) for turn in segment], tokens_max)
        line = f"[{instant(segment[0].occurred_at_us):%Y-%m-%d}] {text}"
        if text and estimate_tokens(line) <= left:
            observations.append(line)
            left -= estimate_tokens(line)
    return observations_recorded(session_id, turns, observations or ["(nothing was said)"])


def _segments(turns: Sequence[Turn], vectors: Sequence[Any]) -> Iterator[list[Turn]]:
    """Yield runs of turns about one topic, none too long."""
    known = [vector for vector in vectors if vector is not None]
    starts = set(changes(known)) if len(known) == len(turns) else set[int]()
    segment: list[Turn] = []
    for at, turn in enumerate(turns):
        if segment and (at in starts or len(segment) == _TURNS_MAX):
            yield segment
            segment = []
        segment.append(turn)
    if segment:
        yield segment


def _reflections(context: JobContext, namespace: str, snapshot: Snapshot) -> Sequence[EventDraft]:
    """Return `observations.reflected` for sessions with too many: those that say most, unlike each other."""
    settings = context.settings
    drafts: list[EventDraft] = []
    rows: list[tuple[Any, ...]] = snapshot.connection.execute(
        _FULL, (settings.conversation.reflect_tokens, _ITEMS_MAX)
    ).fetchall()
    for session_id, occurred_at_us in rows:
        found: list[tuple[Any, ...]] = snapshot.connection.execute(_LINES, (session_id,)).fetchall()
        texts = [text for _, text in found]
        vectors = context.vectors_in_use().of_texts(namespace, snapshot, texts)
        known = [None] * len(texts) if vectors is None else list(vectors)
        kept = summarise(lines(texts), known, settings.conversation.reflect_tokens // 2, whole=True).splitlines()
        events = list(dict.fromkeys(event_id for event_id, _ in found))
        drafts.append(observations_reflected(session_id, kept, source_events=events, occurred_at_us=occurred_at_us))
    return drafts


def _short_forms(context: JobContext, _: str, snapshot: Snapshot) -> Sequence[EventDraft]:
    """Return `turns.summarised` for the next long messages."""
    settings = context.settings
    turns = read_turns(snapshot.connection, _LONG, (settings.conversation.long_message_tokens, _ITEMS_MAX))
    if not turns:
        return []
    return [turns_summarised(turns, [_short(turn, settings.conversation.short_form_tokens) for turn in turns])]


def _short(turn: Turn, tokens_max: int) -> str:
    """Return the sentences of a message that say most; by their words, since the turn has one vector only."""
    text = summarise([turn._replace(speaker="")], [None], tokens_max)
    return text or "(nothing was said)"
