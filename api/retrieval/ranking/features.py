"""Features: the ranking features of the candidates of one query, one column per feature.

The names of the features are keys of `weights.toml` and of traces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from recollect.api.retrieval.ranking.candidates import Mask
from recollect.api.retrieval.search.keyword_search import KeywordScores
from recollect.api.retrieval.search.semantic_search import SemanticScores
from recollect.api.retrieval.understanding.query import Query, TimeRange
from recollect.api.retrieval.understanding.question_intent import QuestionIntent, has_other_name
from recollect.events.envelope import DAY_US
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.queries.episode_queries import EpisodeQueries
from recollect.projections.search_index.episode_arrays import NO_ZONE, ROLES, EpisodeArrays, Ints, SmallInts
from recollect.projections.text.answer_type import AnswerType, counts_any
from recollect.projections.text.stems import content_stems
from recollect.projections.text.text_flags import (
    CHANGE,
    COMPUTED_SHIFT,
    NAMING,
    NUMBER,
    PREFERENCE,
    QUESTION,
    TIME,
    TYPES_SHIFT,
    WORD_COUNT,
    WORDS_BITS,
    WORDS_MAX,
    WORDS_SHIFT,
    text_flags,
)
from recollect.projections.text.words import WORD

#: Numbers, standardised to z-scores among the candidates.
NUMERIC_FEATURES = (
    "bm25_turn",
    "bm25_window",
    "bm25_session",
    "dense_turn",
    "dense_window",
    "dense_session",
    "dense_session_mean",
    "dense_before",
    "dense_after",
    "late",
    "late_session",
    "answers",
    "age",
    "age_present",
)
#: Flags and numbers of about 0 to 1, not standardised.
BINARY_FEATURES = (
    "from_user",
    "from_assistant_recalled",
    "asked_speaker",
    "is_question",
    "length",
    "time_when",
    "number_count",
    "number_figure",
    "counts_asked",
    "answer_type",
    "place_where",
    "reason_why",
    "name_asked",
    "tells_name",
    "liking_preference",
    "change_present",
    "outdated_present",
    "states_answer",
    "said_in_span",
    "said_near_span",
    "tells_of_span",
    "graph",
    "phrase",
    "importance",
    "rating",
)
FEATURES = (*NUMERIC_FEATURES, *BINARY_FEATURES)
#: Features that need vectors.
SEMANTIC = frozenset(name for name in NUMERIC_FEATURES if name.startswith(("dense_", "late"))) | {"answers"}

_HOUR_US = 3_600_000_000
_MINUTE_US = np.int64(60_000_000)
#: Turns before a candidate that `dense_before` looks at: a statement, the reply to it, and the next statement.
_TURNS_BEFORE = 2
#: The number of candidates from which on the observed spread of a feature weighs more than the usual one. Fitted with
#: the weights on memories of 8 to 1,500 messages.
_USUAL_SPREAD_COUNT = 30
#: An episode is near a time range of the query up to this time before its start and after its end.
_NEAR_BEFORE_US = 3 * DAY_US
_NEAR_AFTER_US = 14 * DAY_US
#: Types that many texts have without being an answer; each is a separate feature.
_LOOSE_TYPES = AnswerType.PLACE.value | AnswerType.REASON.value


class SearchSignals(Struct, frozen=True):
    """The scores and masks of all episodes for one query. Arrays have the shape (episodes,) unless noted."""

    keywords: KeywordScores
    semantics: SemanticScores | None
    #: The episodes that the request allows.
    allowed: Mask
    #: Activation of the entities that each episode names; None when the query names no entity.
    graph: NDArray[np.float64] | None
    #: Masks of the episodes within, and near, the time ranges of the query; None without time ranges.
    in_span: Mask | None
    near_span: Mask | None
    #: Whether the query asks about a time without episodes.
    is_time_empty: bool
    #: The episodes whose text names a date within a time range of the query: the probability that it does by version.
    naming_span: Mapping[int, float]
    #: Versions of the episodes that state a fact which the question asks for.
    answering_versions: Ints
    #: Versions of the episodes that state what was replaced or has ended.
    outdated_versions: Ints
    #: Ratings of retrieved episodes by feedback, -1 to 1, by version.
    ratings: Mapping[int, float]
    #: The time of the query, in microseconds since 1970 UTC.
    asked_at_us: int


def feature_matrix(
    episodes: EpisodeQueries,
    arrays: EpisodeArrays,
    rows: Ints,
    query: Query,
    signals: SearchSignals,
    spreads: Mapping[str, float],
) -> Vector:
    """Return the features of the candidates `rows`, shape (len(rows), len(FEATURES)).

    Those that compare tokens or texts are 0: `add_text_comparisons` and `add_late_interaction` fill them in.

    Parameters:
        spreads: the usual standard deviation of each of `NUMERIC_FEATURES` among the candidates of a query.
    """
    flags = known_text_flags(episodes, arrays, rows, _required_flags(query.intent))
    columns = _numeric_columns(episodes, arrays, rows, query, signals) | _binary_columns(
        episodes, arrays, rows, flags, query, signals
    )
    numeric = [name for name in NUMERIC_FEATURES if name in columns]
    usual = [spreads.get(name, 1.0) for name in numeric]
    columns |= zip(numeric, standardised([columns[name] for name in numeric], usual), strict=True)
    # One row a feature, since whole rows are faster to write.
    matrix = np.zeros((len(FEATURES), len(rows)), np.float32)
    for index, name in enumerate(FEATURES):
        if name in columns:
            matrix[index] = columns[name]
    return np.ascontiguousarray(matrix.T)


def add_text_comparisons(
    matrix: Vector, episodes: EpisodeQueries, versions: Ints, compared: Ints, query: Query
) -> None:
    """Fill in the features that compare the texts of some candidates with the question.

    Parameters:
        matrix: the features of all candidates.
        versions: those of the candidates that are compared.
        compared: their rows of `matrix`.
    """
    intent = query.intent
    if not (intent.name or intent.count):
        return
    by_version = episodes.texts(versions.tolist())
    texts = [by_version.get(version, "") for version in versions.tolist()]
    if intent.name:
        matrix[compared, FEATURES.index("name_asked")] = _has_new_name(texts, query.question)
    if intent.count:
        stems = content_stems(query.question)
        matrix[compared, FEATURES.index("counts_asked")] = [counts_any(text, stems) for text in texts]


def add_late_interaction(matrix: Vector, late: Vector, sessions: SmallInts, spreads: Mapping[str, float]) -> None:
    """Fill in the features of late interaction.

    Parameters:
        late: the score of each candidate, shape (candidates,).
        sessions: the session of each candidate, shape (candidates,).
        spreads: as in `feature_matrix`.
    """
    names = ("late", "late_session")
    columns = standardised([late, _best_among(sessions, late)], [spreads.get(name, 1.0) for name in names])
    matrix[:, [FEATURES.index(name) for name in names]] = columns.T


def standardised(values: Sequence[Vector], usual_spreads: Sequence[float]) -> Vector:
    """Return the z-scores of several features of the candidates, shape (features, candidates); 0, the mean, for NaN.

    The spread of few values is mostly chance, so it is the mean of the observed and of the usual variance, weighted by
    the number of values and by `_USUAL_SPREAD_COUNT`.
    """
    numbers = np.array(values, np.float32)
    usual = np.square(np.array(usual_spreads, np.float64))
    missing = np.isnan(numbers)
    count = numbers.shape[1] - missing.sum(axis=1)
    numbers[missing] = 0
    divisor = np.maximum(count, 1).astype(np.float32)
    differences = numbers - (numbers.sum(axis=1) / divisor)[:, np.newaxis]
    differences[missing] = 0
    observed = np.square(differences).sum(axis=1) / divisor
    variance = (count * observed.astype(np.float64) + _USUAL_SPREAD_COUNT * usual) / (count + _USUAL_SPREAD_COUNT)
    return differences / np.maximum(np.sqrt(variance), 1e-9).astype(np.float32)[:, np.newaxis]


def span_mask(arrays: EpisodeArrays, spans: Sequence[TimeRange], before_us: int = 0, after_us: int = 0) -> Mask | None:
    """Return the mask of the episodes within one of `spans`, widened at both ends; None without spans."""
    if not spans:
        return None
    mask = np.zeros(len(arrays), np.bool_)
    for span in spans:
        times = _times_in(arrays, span)
        mask |= (times >= span.start_us - before_us) & (times < span.end_us + after_us)
    return mask


def _times_in(arrays: EpisodeArrays, span: TimeRange) -> Ints:
    """Return the times of the episodes, moved by how far their zone is from that of a range of days.

    "On Saturday" means the Saturday of each message: its day where it was sent.
    """
    if span.utc_offset is None:
        return arrays.occurred_at_us
    has_zone = arrays.utc_offsets != NO_ZONE
    return arrays.occurred_at_us + np.where(has_zone, arrays.utc_offsets - span.utc_offset, 0) * _MINUTE_US


def near_span_mask(arrays: EpisodeArrays, spans: Sequence[TimeRange]) -> Mask | None:
    """Return the mask of the episodes near one of `spans`: people often mention an event some days later."""
    mask = span_mask(arrays, spans, after_us=_NEAR_AFTER_US)
    if mask is None:
        return None
    for span in spans:
        # What is said three days before a day is near it; three days before a morning are not.
        before_us = min(_NEAR_BEFORE_US, span.end_us - span.start_us)
        times = _times_in(arrays, span)
        mask |= (times >= span.start_us - before_us) & (times < span.start_us)
    return mask


def _numeric_columns(
    episodes: EpisodeQueries, arrays: EpisodeArrays, rows: Ints, query: Query, signals: SearchSignals
) -> dict[str, Vector]:
    """Return the values of `NUMERIC_FEATURES` by name, shape (candidates,) each; without vectors only some."""
    keywords = signals.keywords
    # In whole hours, so that the same query gets the same scores a second later.
    asked_at_us = -(-signals.asked_at_us // _HOUR_US) * _HOUR_US
    age_days = np.maximum(asked_at_us - arrays.occurred_at_us[rows], 0) / DAY_US
    columns: dict[str, Vector] = {
        "bm25_turn": keywords.turn[rows],
        "bm25_window": keywords.window[rows],
        "bm25_session": keywords.session[rows],
        "age": np.log1p(age_days).astype(np.float32),
    }
    if query.intent.present:
        columns["age_present"] = _places_in_time(arrays.occurred_at_us[rows])
    if signals.semantics is None:
        return columns
    parts = signals.semantics.parts
    columns |= {f"dense_{part}": values[rows] for part, values in parts.items()}
    columns["dense_session"] = _best_of_session(arrays, rows, parts["window"])
    columns["dense_session_mean"] = _mean_of_session(arrays, parts["turn"])[arrays.sessions[rows]]
    columns["dense_before"] = _best_before(arrays, rows, parts["turn"])
    columns["dense_after"] = _next_turn_value(arrays, rows, parts["turn"])
    columns["answers"] = _answered_question_similarity(episodes, arrays, rows, parts["turn"])
    return columns


def _places_in_time(times_us: Ints) -> Vector:
    """Return the place of each candidate in time, from 0, the newest, to 1, the oldest; equal times share a place."""
    _, places = np.unique(-times_us, return_inverse=True)
    return (places / max(1, int(places.max(initial=0)))).astype(np.float32)


def _best_of_session(arrays: EpisodeArrays, rows: Ints, values: Vector) -> Vector:
    """Return the highest value in the session of each candidate; its own value without a session."""
    best = np.full(len(arrays.session_ids), -1.0, np.float32)
    # Reduce consecutive episodes of one session first: `maximum.at` is slow, and sessions have few such runs.
    runs = np.fmax.reduceat(values, arrays.session_run_starts)
    runs[np.isnan(runs)] = -1.0
    np.maximum.at(best, arrays.sessions[arrays.session_run_starts], runs)
    sessions = arrays.sessions[rows]
    return np.where(arrays.sessionless[sessions], values[rows], best[sessions])


def _mean_of_session(arrays: EpisodeArrays, values: Vector) -> Vector:
    """Return the mean value of each session, shape (sessions,)."""
    sums = np.bincount(arrays.sessions, _zero_for_nan(values), minlength=len(arrays.session_ids))
    return (sums / np.maximum(arrays.session_sizes, 1)).astype(np.float32)


def _zero_for_nan(values: Vector) -> Vector:
    """Return the values with 0 for NaN: four times as fast as `nan_to_num`, which looks for infinities as well."""
    return np.where(np.isnan(values), np.float32(0), values)


def _best_among(sessions: SmallInts, values: Vector) -> Vector:
    """Return the highest value among the candidates of the same session, shape (candidates,)."""
    best = np.full(int(sessions.max(initial=0)) + 1, -1.0, np.float32)
    np.fmax.at(best, sessions, values)
    return best[sessions]


def _best_before(arrays: EpisodeArrays, rows: Ints, values: Vector) -> Vector:
    """Return the highest value of the turns before each candidate in its session, at most `_TURNS_BEFORE`.

    An answer is often one or two turns after the words that the question uses.
    """
    best = np.zeros(len(rows), np.float32)
    for distance in range(1, _TURNS_BEFORE + 1):
        before = np.maximum(rows - distance, 0)
        same = (arrays.sessions[before] == arrays.sessions[rows]) & (rows >= distance)
        best = np.maximum(best, np.where(same, _zero_for_nan(values[before]), 0.0))
    return best.astype(np.float32)


def _next_turn_value(arrays: EpisodeArrays, rows: Ints, values: Vector) -> Vector:
    """Return the value of the turn after each candidate in its session; 0 for the last turn."""
    after = np.minimum(rows + 1, len(arrays) - 1)
    same = (arrays.sessions[after] == arrays.sessions[rows]) & (after > rows)
    return np.where(same, _zero_for_nan(values[after]), 0.0).astype(np.float32)


def _answered_question_similarity(
    episodes: EpisodeQueries, arrays: EpisodeArrays, rows: Ints, similarities: Vector
) -> Vector:
    """Return the similarity of the turn before each candidate if it is a question of the same session, else 0."""
    before = np.maximum(rows - 1, 0)
    asks = (known_text_flags(episodes, arrays, before, QUESTION) & QUESTION) > 0
    same = (arrays.sessions[before] == arrays.sessions[rows]) & (rows > 0)
    return np.where(asks & same, _zero_for_nan(similarities[before]), 0.0).astype(np.float32)


def _binary_columns(
    episodes: EpisodeQueries, arrays: EpisodeArrays, rows: Ints, flags: Ints, query: Query, signals: SearchSignals
) -> dict[str, NDArray[Any]]:
    """Return the values of `BINARY_FEATURES` that are not all 0 by name, shape (candidates,) each."""
    intent, versions = query.intent, arrays.versions[rows]
    roles, is_summary = arrays.roles[rows], arrays.raw[rows] == 0
    columns = _text_columns(episodes, versions, flags, query)
    columns["importance"] = (arrays.importances[rows] - 5) / 5
    if intent.recall:
        columns["from_assistant_recalled"] = roles == ROLES["assistant"]
    else:
        # A summary covers turns of several speakers, including the user.
        columns["from_user"] = (roles == ROLES["user"]) | is_summary
    people = query.participant_names | query.asker_names
    if people or query.participants:
        is_participant = np.array([name.casefold() in people for name in arrays.speaker_names], np.bool_)
        by_participant = is_participant[arrays.speakers[rows]]
        columns["asked_speaker"] = by_participant | is_summary if query.participants else by_participant
    if len(signals.answering_versions):
        columns["states_answer"] = np.isin(versions, signals.answering_versions)
    if intent.present and len(signals.outdated_versions):
        columns["outdated_present"] = np.isin(versions, signals.outdated_versions)
    for name, ratings in (("tells_of_span", signals.naming_span), ("rating", signals.ratings)):
        if ratings:
            columns[name] = _ratings(versions, ratings)
    if signals.graph is not None:
        columns["graph"] = signals.graph[rows]
    if signals.in_span is not None and signals.near_span is not None:
        columns |= {"said_in_span": signals.in_span[rows], "said_near_span": signals.near_span[rows]}
    return columns


def _text_columns(episodes: EpisodeQueries, versions: Ints, flags: Ints, query: Query) -> dict[str, NDArray[Any]]:
    """Return those of `_binary_columns` that depend on the texts of the candidates."""
    intent = query.intent
    columns: dict[str, NDArray[Any]] = {"length": (flags >> WORDS_SHIFT & WORDS_BITS) / WORDS_MAX}
    for name, flag, is_asked in (
        ("is_question", QUESTION, True),
        ("time_when", TIME, intent.when),
        ("number_count", NUMBER, intent.count),
        ("number_figure", NUMBER, intent.figure),
        ("liking_preference", PREFERENCE, intent.preference),
        ("change_present", CHANGE, intent.present),
        ("tells_name", NAMING, intent.name and intent.called),
    ):
        if is_asked:
            columns[name] = (flags & flag) > 0
    if answer := int(intent.answer):
        types = flags >> TYPES_SHIFT & answer
        columns["answer_type"] = (types & ~_LOOSE_TYPES) > 0
        columns["place_where"] = (types & AnswerType.PLACE.value) > 0
        columns["reason_why"] = (types & AnswerType.REASON.value) > 0
    if query.phrases:
        columns["phrase"] = _phrase_shares(episodes, versions, query.phrases)
    return columns


def _ratings(versions: Ints, ratings: Mapping[int, float]) -> Vector:
    """Return the rating of each candidate, -1 to 1, shape (candidates,)."""
    return np.clip([ratings.get(version, 0.0) for version in versions.tolist()], -1, 1).astype(np.float32)


def _required_flags(intent: QuestionIntent) -> int:
    """Return the text flags that the query needs; the patterns are slow, so the others are not computed."""
    return (
        QUESTION
        | WORD_COUNT
        | TIME * intent.when
        | NUMBER * (intent.count or intent.figure)
        | PREFERENCE * intent.preference
        | NAMING * intent.called
        | CHANGE * intent.present
        | int(intent.answer) << TYPES_SHIFT
    )


def known_text_flags(episodes: EpisodeQueries, arrays: EpisodeArrays, rows: Ints, required: int) -> Ints:
    """Return the text flags of the episodes at `rows`, at least those of `required`; each is computed once."""
    cached = arrays.text_flags[rows]
    is_missing = ~cached >> COMPUTED_SHIFT & required > 0
    if not is_missing.any():
        return cached
    missing = np.unique(rows[is_missing])
    texts = episodes.texts(arrays.versions[missing].tolist())
    for row, version in zip(missing.tolist(), arrays.versions[missing].tolist(), strict=True):
        arrays.text_flags[row] |= text_flags(texts.get(version, ""), required)
    return arrays.text_flags[rows]


def _has_new_name(texts: Sequence[str], question: str) -> list[bool]:
    """Return whether each text has a name that the question does not have."""
    question_words = set(WORD.findall(question.casefold()))
    return [has_other_name(text, question_words) for text in texts]


def _phrase_shares(episodes: EpisodeQueries, versions: Ints, phrases: Sequence[str]) -> Vector:
    """Return the share of the quoted `phrases` in the text of each episode, shape (candidates,)."""
    texts = episodes.texts(versions.tolist())
    folded_texts = [texts.get(int(version), "").casefold() for version in versions]
    return np.array([sum(phrase in text for phrase in phrases) / len(phrases) for text in folded_texts], np.float32)
