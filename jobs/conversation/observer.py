"""The observer and the reflector: what a running conversation was about, in short lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from recollect.events.envelope import EventDraft, instant
from recollect.events.validation import draft
from recollect.jobs.compaction.extractive import Told, summarise
from recollect.jobs.context import JobContext
from recollect.jobs.conversation.topics import changes
from recollect.jobs.derivation import derive_all, derived_id
from recollect.projections.models import Snapshot
from recollect.projections.tokens import estimate_tokens

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
LEFT JOIN observed ON observed.session_id = recent.id
JOIN episodes ON episodes.session_id = recent.id AND version > coalesce(through, 0)
WHERE tier = 'raw' AND type = 'conversation' AND status = 'active'
GROUP BY recent.id HAVING sum(token_count) >= ?1 ORDER BY min(version)
"""
_TURNS = """
SELECT version, id, speaker, text, caption, importance, occurred_at_us FROM episodes
LEFT JOIN observed ON observed.session_id = episodes.session_id
WHERE episodes.session_id = ? AND tier = 'raw' AND type = 'conversation' AND status = 'active'
    AND version > coalesce(through, 0) ORDER BY version LIMIT ?
"""
_FULL = """
SELECT session_id, max(occurred_at_us) FROM observations WHERE status = 'active' AND session_id IS NOT NULL
GROUP BY session_id HAVING sum(token_count) > ? ORDER BY session_id LIMIT ?
"""
_LINES = "SELECT event_id, text FROM observations WHERE session_id = ? AND status = 'active' ORDER BY key"
_LONG = """
SELECT version, id, speaker, text, caption, importance, occurred_at_us FROM episodes
WHERE tier = 'raw' AND type = 'conversation' AND short IS NULL AND token_count > 100 AND token_count > ?
ORDER BY version LIMIT ?
"""


class _Turn(NamedTuple):
    version: int
    id: str
    speaker: str
    text: str
    caption: str | None
    importance: int
    occurred_at_us: int

    def told(self) -> Told:
        return Told(self.version, self.speaker, self.text, self.caption, self.importance)


def observe(context: JobContext, namespace: str, _: int) -> int:
    """Observe what is due, condense observations that are too many, shorten long messages; return events appended."""
    steps = (_observations, _reflections, _short_forms)
    return sum(derive_all(context, namespace, partial(step, context, namespace)) for step in steps)


def _observations(context: JobContext, namespace: str, snapshot: Snapshot) -> Sequence[EventDraft]:
    """Return `observations.recorded` for sessions with enough turns that nobody observed."""
    rows: list[tuple[Any, ...]] = snapshot.connection.execute(
        _UNOBSERVED, (context.policy.observe_tokens, _ITEMS_MAX)
    ).fetchall()
    return [_observed(context, namespace, snapshot, row[0]) for row in rows]


def _observed(context: JobContext, namespace: str, snapshot: Snapshot, session_id: str) -> EventDraft:
    rows: list[tuple[Any, ...]] = snapshot.connection.execute(_TURNS, (session_id, _TURNS_READ_MAX)).fetchall()
    turns = [_Turn(*row) for row in rows]
    vectors = context.vectors_in_use().of_turns(namespace, snapshot, [turn.version for turn in turns])
    lines: list[str] = []
    left = context.policy.observations_tokens_max
    for segment in _segments(turns, [vectors.get(turn.version) for turn in turns]):
        told = [turn.told() for turn in segment]
        tokens = sum(estimate_tokens(turn.line()) for turn in told)
        text = summarise(
            told, [vectors.get(turn.version) for turn in told], min(_LINE_TOKENS_MAX, int(_SHARE * tokens) + 12)
        )
        line = f"[{instant(segment[0].occurred_at_us):%Y-%m-%d}] {text}"
        if text and estimate_tokens(line) <= left:
            lines.append(line)
            left -= estimate_tokens(line)
    return draft(
        {
            "id": derived_id("observe", session_id, turns[-1].id),
            "type": "observations.recorded",
            "session_id": session_id,
            "occurred_at": instant(turns[-1].occurred_at_us),
            "actor": "observer",
            "payload": {
                "observations": lines or ["(nothing was said)"],
                "source_events": [turn.id for turn in turns],
                "through": turns[-1].version,
            },
        }
    )


def _segments(turns: Sequence[_Turn], vectors: Sequence[Any]) -> Iterator[list[_Turn]]:
    """Yield runs of turns about one topic, none too long."""
    known = [vector for vector in vectors if vector is not None]
    starts = set(changes(known)) if len(known) == len(turns) else set[int]()
    segment: list[_Turn] = []
    for at, turn in enumerate(turns):
        if segment and (at in starts or len(segment) == _TURNS_MAX):
            yield segment
            segment = []
        segment.append(turn)
    if segment:
        yield segment


def _reflections(context: JobContext, namespace: str, snapshot: Snapshot) -> Sequence[EventDraft]:
    """Return `observations.reflected` for sessions with too many: those that say most, unlike each other."""
    policy = context.policy
    drafts: list[EventDraft] = []
    rows: list[tuple[Any, ...]] = snapshot.connection.execute(_FULL, (policy.reflect_tokens, _ITEMS_MAX)).fetchall()
    for session_id, occurred_at_us in rows:
        lines: list[tuple[Any, ...]] = snapshot.connection.execute(_LINES, (session_id,)).fetchall()
        vectors = context.vectors_in_use().of_texts(namespace, snapshot, [text for _, text in lines])
        told = [Told(at, "", text, None, 5) for at, (_, text) in enumerate(lines)]
        rows_of = [None] * len(lines) if vectors is None else list(vectors)
        kept = summarise(told, rows_of, policy.reflect_tokens // 2, whole=True).splitlines()
        events = list(dict.fromkeys(event_id for event_id, _ in lines))
        drafts.append(
            draft(
                {
                    "id": derived_id("reflect", session_id, *events),
                    "type": "observations.reflected",
                    "session_id": session_id,
                    "occurred_at": instant(occurred_at_us),
                    "actor": "reflector",
                    "payload": {"observations": kept, "source_events": events},
                }
            )
        )
    return drafts


def _short_forms(context: JobContext, _: str, snapshot: Snapshot) -> Sequence[EventDraft]:
    """Return `turns.summarised` for the next long messages."""
    policy = context.policy
    rows: list[tuple[Any, ...]] = snapshot.connection.execute(
        _LONG, (policy.long_message_tokens, _ITEMS_MAX)
    ).fetchall()
    turns = [_Turn(*row) for row in rows]
    if not turns:
        return []
    summaries = [{"event_id": turn.id, "text": _short(turn, policy.short_form_tokens)} for turn in turns]
    return [
        draft(
            {
                "id": derived_id("shorten", *(turn.id for turn in turns)),
                "type": "turns.summarised",
                "occurred_at": instant(max(turn.occurred_at_us for turn in turns)),
                "actor": "observer",
                "payload": {"summaries": summaries},
            }
        )
    ]


def _short(turn: _Turn, tokens_max: int) -> str:
    """Return the sentences of a message that say most; by their words, since the turn has one vector only."""
    text = summarise([turn.told()._replace(speaker="")], [None], tokens_max)
    return text or "(nothing was said)"
