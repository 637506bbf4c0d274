"""Candidate ranking: selects candidates by their scores, measures their features and ranks them in two stages.

Token vectors and texts take the most time to compare, so they are compared only for the candidates that the other
features put first, as in cascade ranking (Wang, Lin and Metzler 2011).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from recollect.api.retrieval.contract.request import Ranking
from recollect.api.retrieval.ranking.asked_time import answering_mask, limiting_scope, of_scope
from recollect.api.retrieval.ranking.candidates import LIST_DEPTH, Candidates, Mask, select_candidates
from recollect.api.retrieval.ranking.features import (
    SearchSignals,
    add_late_interaction,
    add_text_comparisons,
    feature_matrix,
    near_span_mask,
    span_mask,
)
from recollect.api.retrieval.ranking.ranked_episodes import RankedEpisodes
from recollect.api.retrieval.ranking.weighted_sum import (
    LISTS,
    diversified,
    load_weights,
    message_share,
    reciprocal_rank,
    topicless_sum,
    weighted_sum,
)
from recollect.api.retrieval.search.keyword_search import KeywordScores
from recollect.api.retrieval.search.score_background import ScoreBackground
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.api.retrieval.search.semantic_search import SemanticScores, late_interaction_scores, weights_name
from recollect.events.envelope import DAY_US
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.search_index.episode_arrays import UNKNOWN, EpisodeArrays, Ints

_Result = TypeVar("_Result")

#: Candidates whose tokens and texts are compared with a question. On BEAM and LoCoMo the first ten have as much of the
#: evidence as when all of some 200 are compared; 64 cost BEAM a point (`ops/evaluation retrieval`).
COMPARED_MAX = 80
#: The share of the weights of messages from which on a query is a message: from 36 words on.
_MESSAGE_SHARE_MIN = 0.9
#: Probability from which the words of an episode name a time range, for questions without a topic.
_NAMING_SPAN_MIN = 0.5


class DatabaseSignals(Struct, frozen=True):
    """The signals that SQLite computes for one query."""

    keywords: KeywordScores
    #: Activation of the entities that each episode names, shape (episodes,); None when the query names no entity.
    graph: NDArray[np.float64] | None
    #: Versions of episodes whose text names a date within a time range of the query, with the probability that it does.
    naming_span: dict[int, float]
    #: Versions of episodes that state a fact which the question asks for.
    answering_versions: Ints
    #: Further ranked lists, by name: rows, best first.
    lists: dict[str, Ints]
    #: The mask of the episodes that the request allows, shape (episodes,).
    allowed: Mask


def ranked_candidates(
    context: SearchContext,
    ranking: Ranking,
    database_signals: DatabaseSignals,
    semantics: SemanticScores | None,
    background: ScoreBackground,
) -> RankedEpisodes | None:
    """Return the candidates in their order, None when there are none; without vectors when reading those fails."""
    episodes, budget, texts = context.episodes, context.budget, context.snapshot.episodes
    candidates, signals = _candidates_with_signals(context, database_signals, semantics)
    rows = candidates.rows
    if not len(rows):
        return None
    spreads = load_weights(weights_name(semantics)).spreads
    late: Vector | None = None
    if semantics is not None and _read_text_flags(context, rows) is None:
        return ranked_candidates(context, ranking, database_signals, None, background)
    started_ms = budget.spent_ms
    matrix = feature_matrix(texts, episodes, rows, context.query, signals, spreads)
    compared = _most_promising(context, _weighted_scores(context, candidates, matrix, semantics))
    add_text_comparisons(matrix, texts, episodes.versions[rows[compared]], compared, context.query)
    budget.end_stage("features", started_ms)
    if semantics is not None:
        late = _late_interaction(context, semantics, database_signals.keywords, rows, compared, background)
        if late is None:
            return ranked_candidates(context, ranking, database_signals, None, background)
        add_late_interaction(matrix, late, episodes.sessions[rows], spreads)
    started_ms = budget.spent_ms
    scores = _scores(context, ranking, candidates, matrix, semantics)
    # Of equal scores, the newest episode comes first.
    order = np.lexsort((-rows, -scores))
    if ranking != "weighted":
        order = order[scores[order] > 0]
    budget.end_stage("rank", started_ms)
    return RankedEpisodes(context, candidates, signals, late, matrix, scores, order)


def _most_promising(context: SearchContext, scores: Vector) -> Ints:
    """Return the indexes of the candidates to compare, ascending: for a question those with the highest scores.

    A long message is ranked by the best text of each session, so all candidates are compared with it: with 80 of them
    RealMem loses 0.6 points of R@10.
    """
    is_message = message_share(len(context.query.question.split())) >= _MESSAGE_SHARE_MIN
    if len(scores) <= COMPARED_MAX or is_message:
        return np.arange(len(scores))
    return np.sort(np.argpartition(-scores, COMPARED_MAX)[:COMPARED_MAX])


def _scores(
    context: SearchContext,
    ranking: Ranking,
    candidates: Candidates,
    matrix: Vector,
    semantics: SemanticScores | None,
) -> Vector:
    """Return the score of each candidate, shape (candidates,)."""
    if ranking == "weighted":
        scores = _weighted_scores(context, candidates, matrix, semantics)
    else:
        scores = reciprocal_rank(candidates, LISTS[ranking])
    return _aged(context, candidates, scores, additive=ranking == "weighted")


def _weighted_scores(
    context: SearchContext, candidates: Candidates, matrix: Vector, semantics: SemanticScores | None
) -> Vector:
    """Return the weighted sum of the features of each candidate, shape (candidates,)."""
    query = context.query
    words = len(query.question.split())
    scores = weighted_sum(matrix, words, weights_name(semantics)) if query.has_topic else topicless_sum(matrix)
    if query.intent.overview:
        scores = diversified(scores, context.episodes.sessions[candidates.rows])
    return scores


def _aged(context: SearchContext, candidates: Candidates, scores: Vector, *, additive: bool) -> Vector:
    """Return the scores, lowered by age when the settings have a half-life (`004`), shape (candidates,).

    Parameters:
        additive: whether the scores are sums of weighted features, whose exponential is the odds of relevance; a half
            of the odds is then a constant less. Other scores are multiplied.
    """
    half_life_days = context.settings.recency_half_life_days
    if half_life_days is None:
        return scores
    age_us = np.maximum(context.asked_at_us - context.episodes.occurred_at_us[candidates.rows], 0)
    half_lives = (age_us / DAY_US / half_life_days).astype(np.float32)
    aged = scores - np.log(2) * half_lives if additive else scores * np.exp2(-half_lives)
    return aged.astype(np.float32)


def _candidates_with_signals(
    context: SearchContext, database_signals: DatabaseSignals, semantics: SemanticScores | None
) -> tuple[Candidates, SearchSignals]:
    """Return the candidates and the scores and masks of all episodes."""
    episodes, query = context.episodes, context.query
    in_span = span_mask(episodes, query.time_ranges)
    lists = dict(database_signals.lists)
    allowed = database_signals.allowed
    scope, of_time = limiting_scope(context), None
    likely = [version for version, p in database_signals.naming_span.items() if p >= _NAMING_SPAN_MIN]
    naming_span = np.array(sorted(likely), np.int64)
    if scope is not None:
        of_time = of_scope(context, scope, naming_span, allowed)
        allowed = answering_mask(context, scope, of_time, allowed)
        if not of_time.any():
            lists["date"] = np.flatnonzero(allowed)
    elif not query.has_topic:
        allowed = _of_time_range(episodes, allowed, in_span, naming_span)
    if not query.has_topic:
        lists["importance"] = _most_important(episodes, allowed)
    of_range = in_span if scope is None else span_mask(episodes, [scope])
    candidates = select_candidates(allowed, database_signals.keywords, semantics, lists, of_range)
    return candidates, SearchSignals(
        keywords=database_signals.keywords,
        semantics=semantics,
        allowed=allowed,
        graph=database_signals.graph,
        in_span=in_span,
        near_span=near_span_mask(episodes, query.time_ranges),
        is_time_empty=of_time is not None and not of_time.any(),
        naming_span=database_signals.naming_span,
        answering_versions=database_signals.answering_versions,
        outdated_versions=context.index.knowledge.outdated_versions,
        ratings=context.index.knowledge.episode_ratings,
        asked_at_us=context.asked_at_us,
    )


def _of_time_range(episodes: EpisodeArrays, allowed: Mask, in_span: Mask | None, naming_span: Ints) -> Mask:
    """Return the mask of the episodes said in the time ranges of the query or about them; `allowed` without any."""
    if in_span is None:
        return allowed
    of_range = in_span.copy()
    of_range[episodes.rows_of(naming_span)] = True
    of_range &= allowed
    return of_range if of_range.any() else allowed


def _most_important(episodes: EpisodeArrays, allowed: Mask) -> Ints:
    """Return the rows of the `LIST_DEPTH` most important episodes; of equal ones the newest first."""
    rows = np.flatnonzero(allowed)
    return rows[np.lexsort((-rows, -episodes.importances[rows]))][:LIST_DEPTH]


def _late_interaction(
    context: SearchContext,
    semantics: SemanticScores,
    keywords: KeywordScores,
    rows: Ints,
    compared: Ints,
    background: ScoreBackground,
) -> Vector | None:
    """Return the late-interaction score of each candidate, shape (candidates,); None, and a note, when reading fails.

    Those that are not compared get the lowest score of those that are.
    """
    started_ms = context.budget.spent_ms
    versions = context.episodes.versions[rows[compared]]
    scores = _of_vectors(
        context,
        lambda: late_interaction_scores(
            context.vectors,
            context.namespace,
            context.snapshot,
            context.query,
            semantics.embedding,
            keywords.idf,
            versions,
            background,
        ),
    )
    context.budget.end_stage("late", started_ms)
    if scores is None or len(compared) == len(rows):
        return scores
    late = np.full(len(rows), np.fmin.reduce(scores), np.float32)
    late[compared] = scores
    return late


def _read_text_flags(context: SearchContext, rows: Ints) -> Ints | None:
    """Return the text flags of the candidates, after those computed with the vectors are read; None when that fails.

    The turns before the candidates are read as well.
    """
    versions, flags = context.episodes.versions, context.episodes.text_flags
    read = np.unique(np.maximum(np.concatenate([rows, rows - 1]), 0))
    unknown = read[flags[read] == UNKNOWN]
    stored = _of_vectors(
        context,
        lambda: context.vectors.text_flags(context.namespace, context.snapshot, versions[unknown].tolist()),
    )
    if stored is None:
        return None
    flags[unknown] |= np.fromiter((stored.get(version, UNKNOWN) for version in versions[unknown].tolist()), np.int64)
    return flags[rows]


def _of_vectors(context: SearchContext, read: Callable[[], _Result]) -> _Result | None:
    """Return what is read from the file of vectors; None, and a note, when that fails."""
    try:
        return read()
    except Exception as error:
        context.budget.record_missing("semantic", error)
        return None
