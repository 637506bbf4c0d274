"""Observer: writes short notes on running conversations, condenses them, and shortens long messages.

A language model writes and condenses the notes when one is configured; without its answer, or with one that is shorter
than a share of the selected sentences, sentences are selected.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from recollect.events.envelope import EventDraft
from recollect.jobs.conversation.llm_notes import observe_by_llm, reflect_by_llm, turns_of_request
from recollect.jobs.conversation.topics import topic_boundaries
from recollect.jobs.derivation.append_derived import append_all_derived
from recollect.jobs.derivation.event_drafts import observations_recorded, observations_reflected, turns_summarised
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.summarising.extractive import summarise
from recollect.jobs.summarising.summaries import ENOUGH_SHARE_MIN
from recollect.jobs.summarising.summarised_rows import plain_rows
from recollect.projections.queries.queried_episodes import EpisodeRow
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.text.tokens import estimate_tokens

#: Tokens of observations that one event records.
_OBSERVATIONS_TOKENS_MAX = 8_000
#: Tokens over which a message gets a short form.
_LONG_MESSAGE_TOKENS = 300
#: Tokens of a short form.
SHORT_FORM_TOKENS = 60
#: Turns that one observation covers; a change of topic begins the next observation earlier.
_OBSERVATION_TURNS_MAX = 6
#: Turns that one event covers; the next event continues.
_EVENT_TURNS_MAX = 1_000
#: Tokens of an observation, as a share of its turns.
_SHARE = 0.25
#: Tokens of an observation: about two sentences.
_LINE_TOKENS_MAX = 60
#: Sessions, or long messages, that one append covers.
_ITEMS_MAX = 20


def observe(context: JobContext, namespace: str, _: int) -> int:
    """Observe sessions, condense their observations and shorten long messages; return the number of appended events."""
    steps = (_observations, _reflections, _short_forms)
    return sum(append_all_derived(context, namespace, partial(step, context, namespace)) for step in steps)


def _observations(context: JobContext, namespace: str, snapshot: Snapshot) -> Sequence[EventDraft]:
    """Return `observations.recorded` for sessions with enough tokens of unobserved turns."""
    sessions = snapshot.sessions.unobserved(tokens_min=context.settings.conversation.observe_tokens, limit=_ITEMS_MAX)
    return [_observation_event(context, namespace, snapshot, session_id) for session_id in sessions]


def _observation_event(context: JobContext, namespace: str, snapshot: Snapshot, session_id: str) -> EventDraft:
    """Return `observations.recorded` for the next unobserved turns of a session."""
    turns = snapshot.episodes.unobserved_turns(session_id, limit=_EVENT_TURNS_MAX)
    by_llm = None
    if context.llm is not None:
        read = turns_of_request(turns)
        by_llm = observe_by_llm(context.llm, namespace, read, _OBSERVATIONS_TOKENS_MAX)
        turns = turns if by_llm is None else read
    by_rules = _selected_lines(context, namespace, snapshot, turns)
    if by_llm is not None and _tokens(by_llm) >= ENOUGH_SHARE_MIN * _tokens(by_rules):
        return observations_recorded(session_id, turns, by_llm)
    return observations_recorded(session_id, turns, by_rules or ["(nothing was said)"])


def _selected_lines(context: JobContext, namespace: str, snapshot: Snapshot, turns: Sequence[EpisodeRow]) -> list[str]:
    """Return the most informative sentences of each run of turns, with the date of its first turn."""
    vectors = context.vectors().vectors_of_episodes(namespace, snapshot, [turn.version for turn in turns])
    observations: list[str] = []
    tokens_left = _OBSERVATIONS_TOKENS_MAX
    for segment in _segments(turns, [vectors.get(turn.version) for turn in turns]):
        line_tokens = min(_LINE_TOKENS_MAX, int(_SHARE * sum(estimate_tokens(turn.line()) for turn in segment)) + 12)
        text = summarise(segment, [vectors.get(turn.version) for turn in segment], line_tokens)
        line = f"[{segment[0].sent_at:%Y-%m-%d}] {text}"
        if text and estimate_tokens(line) <= tokens_left:
            observations.append(line)
            tokens_left -= estimate_tokens(line)
    return observations


def _tokens(lines: Sequence[str]) -> int:
    """Return the estimated tokens of lines."""
    return sum(map(estimate_tokens, lines))


def _segments(turns: Sequence[EpisodeRow], vectors: Sequence[Any]) -> Iterator[list[EpisodeRow]]:
    """Yield runs of at most `_OBSERVATION_TURNS_MAX` turns about one topic.

    Parameters:
        vectors: one vector a turn, or None; without all vectors, only the length of a run decides.
    """
    embedded = [vector for vector in vectors if vector is not None]
    starts = set(topic_boundaries(embedded)) if len(embedded) == len(turns) else set[int]()
    segment: list[EpisodeRow] = []
    for index, turn in enumerate(turns):
        if segment and (index in starts or len(segment) == _OBSERVATION_TURNS_MAX):
            yield segment
            segment = []
        segment.append(turn)
    if segment:
        yield segment


def _reflections(context: JobContext, namespace: str, snapshot: Snapshot) -> Sequence[EventDraft]:
    """Return `observations.reflected` for sessions with too many observations: half of their tokens."""
    reflect_tokens = context.settings.conversation.reflect_tokens
    drafts: list[EventDraft] = []
    sessions = snapshot.sessions.over_observed(tokens_max=reflect_tokens, limit=_ITEMS_MAX)
    for session_id, occurred_at_us in sessions:
        observations = snapshot.sessions.observations(session_id)
        texts = [observation.text for observation in observations]
        tokens_max = reflect_tokens // 2
        selected = None if context.llm is None else reflect_by_llm(context.llm, namespace, texts, tokens_max)
        if selected is None:
            vectors = context.vectors().vectors_of_texts(namespace, snapshot, texts)
            rows = [None] * len(texts) if vectors is None else list(vectors)
            selected = summarise(plain_rows(texts), rows, tokens_max, whole=True).splitlines()
        events = list(dict.fromkeys(observation.event_id for observation in observations))
        drafts.append(observations_reflected(session_id, selected, source_events=events, occurred_at_us=occurred_at_us))
    return drafts


def _short_forms(_: JobContext, __: str, snapshot: Snapshot) -> Sequence[EventDraft]:
    """Return `turns.summarised` with short forms of the next long messages."""
    turns = snapshot.episodes.long_turns(tokens_min=_LONG_MESSAGE_TOKENS, limit=_ITEMS_MAX)
    if not turns:
        return []
    return [turns_summarised(turns, [_short_form(turn) for turn in turns])]


def _short_form(turn: EpisodeRow) -> str:
    """Return the most informative sentences of a message, by their words, because a turn has only one vector."""
    text = summarise([replace(turn, speaker="")], [None], SHORT_FORM_TOKENS)
    return text or "(nothing was said)"
