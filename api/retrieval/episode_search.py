"""Search among episodes: signals of every episode in memory, a closer look at the first ones, an order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect.api.retrieval.contract.request import Ranking, RetrieveRequest
from recollect.api.retrieval.contract.time_budget import PARTIAL_SUFFIX, TimeBudget
from recollect.api.retrieval.ranking.candidates import LIST_DEPTH, Candidates, Mask, select_candidates
from recollect.api.retrieval.ranking.features import (
    SearchSignals,
    feature_matrix,
    near_span_mask,
    span_mask,
    versions_naming_dates,
)
from recollect.api.retrieval.ranking.ranked_episodes import RankedEpisodes
from recollect.api.retrieval.ranking.weighted_sum import LISTS, reciprocal_rank, weighted_sum
from recollect.api.retrieval.search.entity_graph import episodes_naming, spread_activation
from recollect.api.retrieval.search.keyword_search import KeywordScores, keyword_scores, substring_matches
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.api.retrieval.search.semantic_search import (
    QueryEmbeddings,
    SemanticScores,
    late_interaction_scores,
    semantic_scores,
)
from recollect.events.envelope import microseconds
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.search_index.episode_arrays import EpisodeArrays, Ints

#: Vector searches at once; they share one model, so more would only wait.
_THREADS = 4
#: The parts of the budget after which vectors are no longer waited for: what comes after them wants its time too.
SEMANTIC_SHARE = 0.8
#: The same for the topic of a message, before anything is searched.
TOPIC_SHARE = 0.4


class EpisodeSearch:
    """Searches episodes. Safe to use from many threads."""

    def __init__(self) -> None:
        self._query_embeddings = QueryEmbeddings()
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="recollect-semantic")

    def close(self) -> None:
        """Wait for running searches, then end their threads."""
        self._pool.shutdown()

    def search(
        self, context: SearchContext, ranking: Ranking, excluded: Sequence[int] = (), *, by_vectors: bool = True
    ) -> RankedEpisodes | None:
        """Return the episodes for a query, best first; None when nothing was found at all.

        Parameters:
            excluded: versions that are not wanted.
            by_vectors: False for keywords alone.
        """
        episodes, budget = context.episodes, context.budget
        pending = self._start_semantic_search(context) if by_vectors and ranking != "keyword" else None
        keywords = budget.run("keyword", context.snapshot, lambda: _keyword_scores(context))
        # Before the vectors are waited for: what SQLite finds must not depend on how long they take.
        database_signals = None if keywords is None else _database_signals(context, keywords, excluded)
        semantics = self._await_semantic_search(pending, budget)
        if database_signals is None:
            return None
        candidates, signals = _candidates_with_signals(context, database_signals, semantics)
        if not len(candidates.rows):
            return None
        started_ms = budget.spent_ms
        matrix = feature_matrix(context.snapshot.episodes, episodes, candidates.rows, context.query, signals)
        if ranking == "weighted":
            word_count = len(context.query.question.split())
            scores = weighted_sum(matrix, word_count, semantic=signals.semantics is not None)
        else:
            scores = reciprocal_rank(candidates, LISTS[ranking])
        # Equal scores: the newest first.
        order = np.lexsort((-candidates.rows, -scores))
        if ranking != "weighted":
            order = order[scores[order] > 0]
        budget.stages_ms["rank"] = budget.spent_ms - started_ms
        return RankedEpisodes(candidates, signals, matrix, scores, order)

    def query_vector(self, context: SearchContext) -> Vector | None:
        """Return the query's vector; None when there is none in time."""
        embedder = context.vectors.embedder
        if embedder.state != "ready" or not context.query.text.strip():
            return None
        pending = self._pool.submit(self._query_embeddings.get, context.query.text, embedder)
        try:
            return pending.result(context.budget.share_left_seconds(TOPIC_SHARE)).vector
        except Exception:
            # The search itself says why there are no vectors.
            return None

    def _start_semantic_search(self, context: SearchContext) -> Future[SemanticScores] | None:
        """Start the vector search in another thread; None when there can be none."""
        vectors, snapshot, budget = context.vectors, context.snapshot, context.budget
        embedder = vectors.embedder
        if embedder.state != "ready":
            budget.record_missing("semantic", embedder.reason)
            return None
        try:
            backlog = vectors.backlog(context.namespace, snapshot)
        except Exception as error:
            budget.record_missing("semantic", f"{type(error).__name__}: {error}")
            return None
        if backlog.missing:
            budget.record_missing("semantic", f"{backlog.missing} of {backlog.total} {PARTIAL_SUFFIX}")
        if backlog.missing == backlog.total and backlog.total:
            return None

        def search() -> SemanticScores:
            embedding = self._query_embeddings.get(context.query.text, embedder)
            # Here, since loading it for the first time can take longer than there is.
            index = vectors.index(context.namespace, snapshot)
            return semantic_scores(index, embedding, context.episodes, snapshot.version)

        return self._pool.submit(_timed(search, budget, "semantic"))

    def _await_semantic_search(
        self, pending: Future[SemanticScores] | None, budget: TimeBudget
    ) -> SemanticScores | None:
        """Return what the vector search found, if it is there in time."""
        if pending is None:
            return None
        try:
            return pending.result(budget.share_left_seconds(SEMANTIC_SHARE))
        except FutureTimeout:
            pending.cancel()
            budget.record_missing("semantic", "out of time")
        except Exception as error:
            budget.record_missing("semantic", f"{type(error).__name__}: {error}")
        return None


def _keyword_scores(context: SearchContext) -> KeywordScores:
    query = context.query
    return keyword_scores(context.snapshot, context.index, query.words, german=query.german)


@dataclass(frozen=True, slots=True)
class _DatabaseSignals:
    """What SQLite finds."""

    keywords: KeywordScores
    #: Strength of what each episode names, if something is asked for by name.
    graph: NDArray[np.float64] | None
    #: Versions of what names a date that is asked for.
    versions_naming_span: Ints
    #: Further lists, as places best first.
    lists: dict[str, Ints]
    #: Which episodes may be found.
    allowed: Mask


def _database_signals(context: SearchContext, keywords: KeywordScores, excluded: Sequence[int]) -> _DatabaseSignals:
    episodes, budget, query, snapshot = context.episodes, context.budget, context.query, context.snapshot
    lists: dict[str, Ints] = {}
    strength = budget.run("graph", snapshot, lambda: _graph_strength(context)) if query.entities else None
    if strength is not None:
        rows = np.flatnonzero(strength)
        lists["graph"] = rows[np.lexsort((-rows, -strength[rows]))]
    if query.words and not keywords.turn.any():
        matches = budget.run(
            "substring", snapshot, lambda: substring_matches(snapshot.episodes, query.words, LIST_DEPTH)
        )
        if matches is not None:
            lists["substring"] = episodes.rows_of(matches)
    versions_naming_span = None
    if query.time_ranges:
        versions_naming_span = budget.run(
            "dates", snapshot, lambda: versions_naming_dates(snapshot.episodes, query.time_ranges)
        )
    if versions_naming_span is not None and len(versions_naming_span):
        lists["date"] = episodes.rows_of(versions_naming_span)
    mask = requested_episodes(episodes, context.request)
    mask[episodes.rows_of(np.array(sorted(excluded), np.int64))] = False
    return _DatabaseSignals(
        keywords, strength, np.empty(0, np.int64) if versions_naming_span is None else versions_naming_span, lists, mask
    )


def _candidates_with_signals(
    context: SearchContext, database_signals: _DatabaseSignals, semantics: SemanticScores | None
) -> tuple[Candidates, SearchSignals]:
    """Return the candidates and their signals; those of keywords alone when vectors fail half way."""
    episodes, query, budget = context.episodes, context.query, context.budget
    in_span = span_mask(episodes, query.time_ranges)
    candidates = select_candidates(
        database_signals.allowed, database_signals.keywords, semantics, database_signals.lists, in_span
    )
    late: Vector | None = None
    if semantics is not None:
        started_ms = budget.spent_ms
        try:
            late = _late_interaction(context, semantics, database_signals.keywords, candidates)
        except Exception as error:
            budget.record_missing("semantic", f"{type(error).__name__}: {error}")
            return _candidates_with_signals(context, database_signals, None)
        budget.stages_ms["late"] = budget.spent_ms - started_ms
    return candidates, SearchSignals(
        keywords=database_signals.keywords,
        semantics=semantics,
        late=late,
        graph=database_signals.graph,
        in_span=in_span,
        near_span=near_span_mask(episodes, query.time_ranges),
        versions_naming_span=database_signals.versions_naming_span,
        ratings=context.index.knowledge.episode_ratings,
        asked_at_us=context.asked_at_us,
    )


def _late_interaction(
    context: SearchContext, semantics: SemanticScores, keywords: KeywordScores, candidates: Candidates
) -> Vector:
    versions = context.episodes.versions[candidates.rows]
    return late_interaction_scores(
        context.vectors, context.namespace, context.snapshot, context.query, semantics.embedding, keywords.idf, versions
    )


def _graph_strength(context: SearchContext) -> NDArray[np.float64]:
    """Return the strength of what each episode names, for the entities of the query."""
    entities = context.snapshot.entities
    strength_by_version = episodes_naming(entities, spread_activation(entities, context.query.entities))
    versions = np.fromiter(strength_by_version, np.int64, len(strength_by_version))
    order = np.argsort(versions)
    rows, live = context.episodes.live(versions[order])
    strength = np.zeros(len(context.episodes))
    strength[rows] = np.fromiter(strength_by_version.values(), np.float64, len(strength_by_version))[order][live]
    return strength


def requested_episodes(episodes: EpisodeArrays, request: RetrieveRequest) -> Mask:
    """Return which episodes a request may see."""
    mask = np.ones(len(episodes), np.bool_)
    if request.since is not None:
        mask &= episodes.occurred_at_us >= microseconds(request.since)
    if request.until is not None:
        mask &= episodes.occurred_at_us < microseconds(request.until)
    if request.session_id is not None and request.mode == "active":
        session_indexes = [index for index, name in enumerate(episodes.session_ids) if name == request.session_id]
        mask &= np.isin(episodes.sessions, session_indexes)
    return mask


def _timed(search: Callable[[], SemanticScores], budget: TimeBudget, stage: str) -> Callable[[], SemanticScores]:
    def timed() -> SemanticScores:
        started_ms = budget.spent_ms
        try:
            return search()
        finally:
            budget.stages_ms[stage] = budget.spent_ms - started_ms

    return timed
