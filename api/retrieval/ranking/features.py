"""What is weighed of each candidate: one column a feature, measured over the candidates of one query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.api.retrieval.ranking.candidates import Mask
from recollect.api.retrieval.search.keyword_search import KeywordScores
from recollect.api.retrieval.search.semantic_search import SemanticScores
from recollect.api.retrieval.understanding.query import Query, TimeRange
from recollect.api.retrieval.understanding.question_intent import (
    NUMBER,
    PREFERENCE,
    QUESTION,
    TIME,
    QuestionIntent,
    text_flags,
)
from recollect.events.envelope import DAY_US
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.queries.episode_queries import EpisodeQueries
from recollect.projections.search_index.episode_arrays import ROLES, EpisodeArrays, Ints
from recollect.projections.text.segments import unsegmented_words
from recollect.projections.text.words import content_words

#: Measures of likeness, turned to z-scores within the candidates.
NUMERIC_FEATURES = (
    "bm25_turn",
    "bm25_window",
    "bm25_session",
    "dense_turn",
    "dense_window",
    "dense_told",
    "dense_session",
    "dense_session_mean",
    "dense_after",
    "late",
    "late_session",
    "answers",
    "age",
)
#: What an episode is, or is not.
BINARY_FEATURES = (
    "from_user",
    "from_assistant_recalled",
    "asked_speaker",
    "is_question",
    "length",
    "time_when",
    "number_count",
    "liking_preference",
    "said_in_span",
    "said_near_span",
    "tells_of_span",
    "graph",
    "phrase",
    "importance",
    "rating",
)
FEATURES = (*NUMERIC_FEATURES, *BINARY_FEATURES)
#: Those that need vectors.
SEMANTIC = frozenset(name for name in NUMERIC_FEATURES if name.startswith(("dense_", "late"))) | {"answers"}

#: Content words from which on a turn is no longer too short to say much.
_LENGTH_FULL = 8
_BEGINNING_CHARS = 200
#: How far from a span that is asked for something is still near it.
_HOUR_US = 3_600_000_000
_NEAR_BEFORE_US = 3 * DAY_US
_NEAR_AFTER_US = 14 * DAY_US
#: What is looked at beside the marks: how many content words there are.
_WORD_COUNT = 16
#: How `Roster.traits` packs what was found, as bits: the marks, above them what was looked at, then the words.
_COMPUTED_SHIFT = 8
_WORDS_SHIFT = 16


@dataclass(frozen=True, slots=True)
class SearchSignals:
    """All that is known of the episodes of a arrays for one query. Arrays have one number an episode."""

    keywords: KeywordScores
    semantics: SemanticScores | None
    #: Late interaction of the candidates, in their order; None without vectors.
    late: Vector | None
    #: Strength of the entities that each episode names; None when none are asked for.
    graph: NDArray[np.float64] | None
    #: What happened in the time that is asked for, and what tells of it.
    in_span: Mask | None
    near_span: Mask | None
    versions_naming_span: Ints
    #: What was said of episodes that were retrieved before, by version.
    ratings: Mapping[int, float]
    #: When it is asked.
    asked_at_us: int


def feature_matrix(
    episodes: EpisodeQueries, arrays: EpisodeArrays, rows: Ints, query: Query, signals: SearchSignals
) -> Vector:
    """Return the features of the candidates `rows`, shape (len(rows), len(FEATURES))."""
    flags = _text_flags(episodes, arrays, rows, _required_flags(query.intent))
    columns = _numeric_columns(episodes, arrays, rows, signals) | _binary_columns(
        episodes, arrays, rows, flags, query, signals
    )
    matrix = np.zeros((len(rows), len(FEATURES)), np.float32)
    for index, name in enumerate(FEATURES):
        if name in columns:
            matrix[:, index] = standardised(columns[name]) if name in NUMERIC_FEATURES else columns[name]
    return matrix


def standardised(values: Vector) -> Vector:
    """Return z-scores; 0, the mean, for what is not a number."""
    valid = ~np.isnan(values)
    if not valid.any():
        return np.zeros(len(values), np.float32)
    spread = float(values[valid].std())
    scores = (values - values[valid].mean()) / (spread if spread > 1e-9 else 1.0)
    return np.where(valid, scores, 0.0).astype(np.float32)


def span_mask(arrays: EpisodeArrays, spans: Sequence[TimeRange], before_us: int = 0, after_us: int = 0) -> Mask | None:
    """Return which episodes happened in one of `spans`, widened; None when there are none."""
    if not spans:
        return None
    mask = np.zeros(len(arrays), np.bool_)
    for span in spans:
        mask |= (arrays.occurred_at_us >= span.start_us - before_us) & (arrays.occurred_at_us < span.end_us + after_us)
    return mask


def near_span_mask(arrays: EpisodeArrays, spans: Sequence[TimeRange]) -> Mask | None:
    """Return which episodes happened near one of `spans`: people tell of things afterwards."""
    return span_mask(arrays, spans, _NEAR_BEFORE_US, _NEAR_AFTER_US)


def versions_naming_dates(episodes: EpisodeQueries, spans: Sequence[TimeRange]) -> Ints:
    """Return the versions of episodes that name a date within one of `spans`, and not a much wider one."""
    versions: set[int] = set()
    for span in spans:
        widest_us = max(span.end_us - span.start_us, 7 * DAY_US) * 6 // 5
        versions.update(episodes.mentioning_dates(span.start_us, span.end_us, range_us_max=widest_us))
    return np.array(sorted(versions), np.int64)


def _numeric_columns(
    episodes: EpisodeQueries, arrays: EpisodeArrays, rows: Ints, signals: SearchSignals
) -> dict[str, Vector]:
    keywords = signals.keywords
    # By whole hours, so that the same question has the same scores a second later.
    asked_at_us = -(-signals.asked_at_us // _HOUR_US) * _HOUR_US
    age_days = np.maximum(asked_at_us - arrays.occurred_at_us[rows], 0) / DAY_US
    columns: dict[str, Vector] = {
        "bm25_turn": keywords.turn[rows],
        "bm25_window": keywords.window[rows],
        "bm25_session": keywords.session[rows],
        "age": np.log1p(age_days).astype(np.float32),
    }
    if signals.semantics is None or signals.late is None:
        return columns
    parts = signals.semantics.parts
    columns |= {f"dense_{part}": values[rows] for part, values in parts.items()}
    columns["dense_session"] = _best_of_session(arrays, rows, parts["window"])
    columns["dense_session_mean"] = _mean_of_session(arrays, parts["turn"])[arrays.sessions[rows]]
    columns["dense_after"] = _next_turn_value(arrays, rows, parts["turn"])
    columns["late"] = signals.late
    columns["late_session"] = _best_among(arrays.sessions[rows], signals.late)
    columns["answers"] = _answered_question_similarity(episodes, arrays, rows, parts["turn"])
    return columns


def _best_of_session(arrays: EpisodeArrays, rows: Ints, values: Vector) -> Vector:
    best = np.full(len(arrays.session_ids), -1.0, np.float32)
    # A session's episodes mostly stand together, so few are left to be put in their session's place one by one.
    runs = np.nan_to_num(np.fmax.reduceat(values, arrays.runs), nan=-1.0)
    np.maximum.at(best, arrays.sessions[arrays.runs], runs)
    sessions = arrays.sessions[rows]
    return np.where(arrays.sessionless[sessions], values[rows], best[sessions])


def _mean_of_session(arrays: EpisodeArrays, values: Vector) -> Vector:
    """Return the mean of each session."""
    sums = np.bincount(arrays.sessions, np.nan_to_num(values), minlength=len(arrays.session_ids))
    return (sums / np.maximum(arrays.session_sizes, 1)).astype(np.float32)


def _best_among(sessions: Ints, values: Vector) -> Vector:
    """Return the best value among the candidates of the same session."""
    best = np.full(int(sessions.max(initial=0)) + 1, -1.0, np.float32)
    np.fmax.at(best, sessions, values)
    return best[sessions]


def _next_turn_value(arrays: EpisodeArrays, rows: Ints, values: Vector) -> Vector:
    """Return the value of the turn after each candidate, in the same session; 0 after the last one."""
    after = np.minimum(rows + 1, len(arrays) - 1)
    same = (arrays.sessions[after] == arrays.sessions[rows]) & (after > rows)
    return np.where(same, np.nan_to_num(values[after]), 0.0).astype(np.float32)


def _answered_question_similarity(
    episodes: EpisodeQueries, arrays: EpisodeArrays, rows: Ints, similarities: Vector
) -> Vector:
    """Return how near the question is that each candidate answers: the turn before it, if it asks."""
    before = np.maximum(rows - 1, 0)
    asks = (_text_flags(episodes, arrays, before, QUESTION) & QUESTION) > 0
    same = (arrays.sessions[before] == arrays.sessions[rows]) & (rows > 0)
    return np.where(asks & same, np.nan_to_num(similarities[before]), 0.0).astype(np.float32)


def _binary_columns(
    episodes: EpisodeQueries, arrays: EpisodeArrays, rows: Ints, flags: Ints, query: Query, signals: SearchSignals
) -> dict[str, Vector]:
    intent = query.intent
    is_participant = np.array([name.casefold() in query.participant_names for name in arrays.speaker_names], np.bool_)
    by_participant = is_participant[arrays.speakers[rows]] if len(is_participant) else np.zeros(len(rows), np.bool_)
    columns: dict[str, Any] = {
        # A summary tells what several people said, the user among them.
        "from_user": (arrays.roles[rows] == ROLES["user"]) | (arrays.raw[rows] == 0),
        "from_assistant_recalled": (arrays.roles[rows] == ROLES["assistant"]) & intent.recall,
        "asked_speaker": by_participant | ((arrays.raw[rows] == 0) & bool(query.participants)),
        "is_question": (flags & QUESTION) > 0,
        "length": (flags >> _WORDS_SHIFT) / _LENGTH_FULL,
        "time_when": ((flags & TIME) > 0) & intent.when,
        "number_count": ((flags & NUMBER) > 0) & intent.count,
        "liking_preference": ((flags & PREFERENCE) > 0) & intent.preference,
        "tells_of_span": np.isin(arrays.versions[rows], signals.versions_naming_span),
        "graph": np.zeros(len(rows)) if signals.graph is None else signals.graph[rows],
        "rating": np.clip([signals.ratings.get(int(version), 0.0) for version in arrays.versions[rows]], -1, 1),
        "importance": (arrays.importances[rows] - 5) / 5,
    }
    if signals.in_span is not None and signals.near_span is not None:
        columns |= {"said_in_span": signals.in_span[rows], "said_near_span": signals.near_span[rows]}
    if query.phrases:
        columns["phrase"] = _phrase_shares(episodes, arrays.versions[rows], query.phrases)
    return {name: np.asarray(values, np.float32) for name, values in columns.items()}


def _required_flags(intent: QuestionIntent) -> int:
    """Return what is to be known of candidates: patterns cost most of a first look, so only those that count."""
    return QUESTION | _WORD_COUNT | TIME * intent.when | NUMBER * intent.count | PREFERENCE * intent.preference


def _text_flags(episodes: EpisodeQueries, arrays: EpisodeArrays, rows: Ints, required: int) -> Ints:
    """Return at least the `wanted` traits of the episodes at `rows`, each looked up once for each episode."""
    cached = arrays.text_flags[rows]
    missing = np.unique(rows[~cached >> _COMPUTED_SHIFT & required > 0])
    if not len(missing):
        return cached.astype(np.int64)
    texts = episodes.texts(arrays.versions[missing].tolist())
    for row, version in zip(missing.tolist(), arrays.versions[missing].tolist(), strict=True):
        text = texts.get(version, "")
        computed = text_flags(text, required) | required << _COMPUTED_SHIFT
        arrays.text_flags[row] |= computed | (
            _content_word_count(text) << _WORDS_SHIFT if required & _WORD_COUNT else 0
        )
    return arrays.text_flags[rows].astype(np.int64)


def _content_word_count(text: str) -> int:
    """Return how many content words a text has, up to those that make it long."""
    # Long texts mostly have enough of them at the beginning, which is cut between two words.
    if len(text) > _BEGINNING_CHARS:
        beginning = text[: max(text.rfind(" ", 0, _BEGINNING_CHARS), 0)]
        if len(content_words(beginning)) >= _LENGTH_FULL:
            return _LENGTH_FULL
    return min(len(content_words(text[:2_000])) + unsegmented_words(text[:2_000]), _LENGTH_FULL)


def _phrase_shares(episodes: EpisodeQueries, versions: Ints, phrases: Sequence[str]) -> Vector:
    """Return the share of `phrases` that each episode holds as they stand."""
    texts = episodes.texts(versions.tolist())
    folded_texts = [texts.get(int(version), "").casefold() for version in versions]
    return np.array([sum(phrase in text for phrase in phrases) / len(phrases) for text in folded_texts], np.float32)
