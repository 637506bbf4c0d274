"""Search among episodes: signals of every episode in memory, a closer look at the first ones, an order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect.api.retrieval.contract.request import Ranking, RetrieveRequest
from recollect.api.retrieval.contract.time_budget import PARTLY, TimeBudget
from recollect.api.retrieval.ranking.candidates import DEPTH, Candidates, Mask, select_candidates
from recollect.api.retrieval.ranking.features import SearchSignals, feature_matrix, near_spans_of, spans_of, telling_of
from recollect.api.retrieval.ranking.ranked_episodes import RankedEpisodes
from recollect.api.retrieval.ranking.weighted_sum import LISTS, reciprocal_rank, weighted_sum
from recollect.api.retrieval.search.entity_graph import episodes_naming, spread_activation
from recollect.api.retrieval.search.keyword_search import KeywordScores, keyword_scores, substring_matches
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.api.retrieval.search.semantic_search import (
    QueryVectors,
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
        self._query_vectors = QueryVectors()
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
        roster, budget = context.episodes, context.budget
        pending = self._begin(context) if by_vectors and ranking != "keyword" else None
        found = budget.run("keyword", context.snapshot, lambda: _keywords(context))
        # Before the vectors are waited for: what SQLite finds must not depend on how long they take.
        hints = None if found is None else _hints(context, found, excluded)
        near = self._finish(pending, budget)
        if hints is None:
            return None
        picked, signals = _closer(context, hints, near)
        if not len(picked.rows):
            return None
        started_ms = budget.spent_ms
        matrix = feature_matrix(context.snapshot.episodes, roster, picked.rows, context.query, signals)
        if ranking == "weighted":
            words = len(context.query.question.split())
            scores = weighted_sum(matrix, words, semantic=signals.semantics is not None)
        else:
            scores = reciprocal_rank(picked, LISTS[ranking])
        # Equal scores: the newest first.
        order = np.lexsort((-picked.rows, -scores))
        if ranking != "weighted":
            order = order[scores[order] > 0]
        budget.stages_ms["rank"] = budget.spent_ms - started_ms
        return RankedEpisodes(picked, signals, matrix, scores, order)

    def vector_of(self, context: SearchContext) -> Vector | None:
        """Return the query's vector; None when there is none in time."""
        embedder = context.vectors.embedder
        if embedder.state != "ready" or not context.query.text.strip():
            return None
        pending = self._pool.submit(self._query_vectors.of, context.query.text, embedder)
        try:
            return pending.result(context.budget.left_of(TOPIC_SHARE)).vector
        except Exception:
            # The search itself says why there are no vectors.
            return None

    def _begin(self, context: SearchContext) -> Future[SemanticScores] | None:
        """Start the vector search in another thread; None when there can be none."""
        vectors, snapshot, budget = context.vectors, context.snapshot, context.budget
        embedder = vectors.embedder
        if embedder.state != "ready":
            budget.record_missing("semantic", embedder.reason)
            return None
        try:
            pending = vectors.backlog(context.namespace, snapshot)
        except Exception as error:
            budget.record_missing("semantic", f"{type(error).__name__}: {error}")
            return None
        if pending.missing:
            budget.record_missing("semantic", f"{pending.missing} of {pending.total} {PARTLY}")
        if pending.missing == pending.total and pending.total:
            return None

        def search() -> SemanticScores:
            embedding = self._query_vectors.of(context.query.text, embedder)
            # Here, since loading it for the first time can take longer than there is.
            index = vectors.index(context.namespace, snapshot)
            return semantic_scores(index, embedding, context.episodes, snapshot.version)

        return self._pool.submit(_timed(search, budget, "semantic"))

    def _finish(self, semantic: Future[SemanticScores] | None, budget: TimeBudget) -> SemanticScores | None:
        """Return what the vector search found, if it is there in time."""
        if semantic is None:
            return None
        try:
            return semantic.result(budget.left_of(SEMANTIC_SHARE))
        except FutureTimeout:
            semantic.cancel()
            budget.record_missing("semantic", "out of time")
        except Exception as error:
            budget.record_missing("semantic", f"{type(error).__name__}: {error}")
        return None


def _keywords(context: SearchContext) -> KeywordScores:
    query = context.query
    return keyword_scores(context.snapshot, context.index, query.words, german=query.german)


@dataclass(frozen=True, slots=True)
class _SearchHints:
    """What SQLite finds."""

    keywords: KeywordScores
    #: Strength of what each episode names, if something is asked for by name.
    graph: NDArray[np.float64] | None
    #: Versions of what names a date that is asked for.
    telling: Ints
    #: Further lists, as places best first.
    lists: dict[str, Ints]
    #: Which episodes may be found.
    allowed: Mask


def _hints(context: SearchContext, found: KeywordScores, excluded: Sequence[int]) -> _SearchHints:
    roster, budget, query, snapshot = context.episodes, context.budget, context.query, context.snapshot
    lists: dict[str, Ints] = {}
    strength = budget.run("graph", snapshot, lambda: _related(context)) if query.entities else None
    if strength is not None:
        rows = np.flatnonzero(strength)
        lists["graph"] = rows[np.lexsort((-rows, -strength[rows]))]
    if query.words and not found.turn.any():
        matches = budget.run("substring", snapshot, lambda: substring_matches(snapshot.episodes, query.words, DEPTH))
        if matches is not None:
            lists["substring"] = roster.rows_of(matches)
    telling = None
    if query.time_ranges:
        telling = budget.run("dates", snapshot, lambda: telling_of(snapshot.episodes, query.time_ranges))
    if telling is not None and len(telling):
        lists["date"] = roster.rows_of(telling)
    mask = allowed(roster, context.request)
    mask[roster.rows_of(np.array(sorted(excluded), np.int64))] = False
    return _SearchHints(found, strength, np.empty(0, np.int64) if telling is None else telling, lists, mask)


def _closer(
    context: SearchContext, hints: _SearchHints, near: SemanticScores | None
) -> tuple[Candidates, SearchSignals]:
    """Return the candidates and their signals; those of keywords alone when vectors fail half way."""
    roster, query, budget = context.episodes, context.query, context.budget
    in_span = spans_of(roster, query.time_ranges)
    picked = select_candidates(hints.allowed, hints.keywords, near, hints.lists, in_span)
    values: Vector | None = None
    if near is not None:
        started_ms = budget.spent_ms
        try:
            values = _late(context, near, hints.keywords, picked)
        except Exception as error:
            budget.record_missing("semantic", f"{type(error).__name__}: {error}")
            return _closer(context, hints, None)
        budget.stages_ms["late"] = budget.spent_ms - started_ms
    return picked, SearchSignals(
        keywords=hints.keywords,
        semantics=near,
        late=values,
        graph=hints.graph,
        in_span=in_span,
        near_span=near_spans_of(roster, query.time_ranges),
        tells_of_span=hints.telling,
        ratings=context.index.knowledge.episode_ratings,
        asked_at_us=context.asked_at_us,
    )


def _late(context: SearchContext, near: SemanticScores, found: KeywordScores, picked: Candidates) -> Vector:
    versions = context.episodes.versions[picked.rows]
    return late_interaction_scores(
        context.vectors, context.namespace, context.snapshot, context.query, near.embedding, found.idf, versions
    )


def _related(context: SearchContext) -> NDArray[np.float64]:
    """Return the strength of what each episode names, for the entities of the query."""
    entities = context.snapshot.entities
    found = episodes_naming(entities, spread_activation(entities, context.query.entities))
    versions = np.fromiter(found, np.int64, len(found))
    order = np.argsort(versions)
    rows, here = context.episodes.live(versions[order])
    strength = np.zeros(len(context.episodes))
    strength[rows] = np.fromiter(found.values(), np.float64, len(found))[order][here]
    return strength


def allowed(episodes: EpisodeArrays, request: RetrieveRequest) -> Mask:
    """Return which episodes a request may see."""
    mask = np.ones(len(episodes), np.bool_)
    if request.since is not None:
        mask &= episodes.occurred_at_us >= microseconds(request.since)
    if request.until is not None:
        mask &= episodes.occurred_at_us < microseconds(request.until)
    if request.session_id is not None and request.mode == "active":
        session = [place for place, name in enumerate(episodes.session_ids) if name == request.session_id]
        mask &= np.isin(episodes.sessions, session)
    return mask


def _timed(search: Callable[[], SemanticScores], budget: TimeBudget, part: str) -> Callable[[], SemanticScores]:
    def timed() -> SemanticScores:
        started_ms = budget.spent_ms
        try:
            return search()
        finally:
            budget.stages_ms[part] = budget.spent_ms - started_ms

    return timed
