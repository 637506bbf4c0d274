"""Search among episodes: signals of every episode in memory, a closer look at the first ones, an order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect.api.retrieval.contract.request import Ranking, RetrieveRequest
from recollect.api.retrieval.contract.time_budget import PARTLY, Budget
from recollect.api.retrieval.ranking.candidates import DEPTH, Candidates, Mask, select_candidates
from recollect.api.retrieval.ranking.features import SearchSignals, feature_matrix, near_spans_of, spans_of, telling_of
from recollect.api.retrieval.ranking.ranked_episodes import Ranked
from recollect.api.retrieval.ranking.weighted_sum import LISTS, reciprocal_rank, weighted_sum
from recollect.api.retrieval.search.entity_graph import episodes_naming, spread_activation
from recollect.api.retrieval.search.keyword_search import KeywordScores, keyword_scores, substring_matches
from recollect.api.retrieval.search.search_context import Asked
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
        self, asked: Asked, ranking: Ranking, excluded: Sequence[int] = (), *, by_vectors: bool = True
    ) -> Ranked | None:
        """Return the episodes for a query, best first; None when nothing was found at all.

        Parameters:
            excluded: versions that are not wanted.
            by_vectors: False for keywords alone.
        """
        roster, budget = asked.roster, asked.budget
        pending = self._begin(asked) if by_vectors and ranking != "keyword" else None
        found = budget.run("keyword", asked.snapshot, lambda: _keywords(asked))
        # Before the vectors are waited for: what SQLite finds must not depend on how long they take.
        hints = None if found is None else _hints(asked, found, excluded)
        near = self._finish(pending, budget)
        if hints is None:
            return None
        picked, signals = _closer(asked, hints, near)
        if not len(picked.rows):
            return None
        started_ms = budget.spent_ms
        matrix = feature_matrix(asked.snapshot.episodes, roster, picked.rows, asked.query, signals)
        if ranking == "weighted":
            words = len(asked.query.question.split())
            scores = weighted_sum(matrix, words, semantic=signals.semantics is not None)
        else:
            scores = reciprocal_rank(picked, LISTS[ranking])
        # Equal scores: the newest first.
        order = np.lexsort((-picked.rows, -scores))
        if ranking != "weighted":
            order = order[scores[order] > 0]
        budget.stages_ms["rank"] = budget.spent_ms - started_ms
        return Ranked(picked, signals, matrix, scores, order)

    def vector_of(self, asked: Asked) -> Vector | None:
        """Return the query's vector; None when there is none in time."""
        embedder = asked.vectors.embedder
        if embedder.state != "ready" or not asked.query.text.strip():
            return None
        pending = self._pool.submit(self._query_vectors.of, asked.query.text, embedder)
        try:
            return pending.result(asked.budget.left_of(TOPIC_SHARE)).vector
        except Exception:
            # The search itself says why there are no vectors.
            return None

    def _begin(self, asked: Asked) -> Future[SemanticScores] | None:
        """Start the vector search in another thread; None when there can be none."""
        vectors, snapshot, budget = asked.vectors, asked.snapshot, asked.budget
        embedder = vectors.embedder
        if embedder.state != "ready":
            budget.miss("semantic", embedder.reason)
            return None
        try:
            pending = vectors.backlog(asked.namespace, snapshot)
        except Exception as error:
            budget.miss("semantic", f"{type(error).__name__}: {error}")
            return None
        if pending.missing:
            budget.miss("semantic", f"{pending.missing} of {pending.total} {PARTLY}")
        if pending.missing == pending.total and pending.total:
            return None

        def search() -> SemanticScores:
            embedding = self._query_vectors.of(asked.query.text, embedder)
            # Here, since loading it for the first time can take longer than there is.
            index = vectors.index(asked.namespace, snapshot)
            return semantic_scores(index, embedding, asked.roster, snapshot.version)

        return self._pool.submit(_timed(search, budget, "semantic"))

    def _finish(self, semantic: Future[SemanticScores] | None, budget: Budget) -> SemanticScores | None:
        """Return what the vector search found, if it is there in time."""
        if semantic is None:
            return None
        try:
            return semantic.result(budget.left_of(SEMANTIC_SHARE))
        except FutureTimeout:
            semantic.cancel()
            budget.miss("semantic", "out of time")
        except Exception as error:
            budget.miss("semantic", f"{type(error).__name__}: {error}")
        return None


def _keywords(asked: Asked) -> KeywordScores:
    query = asked.query
    return keyword_scores(asked.snapshot, asked.held, query.words, german=query.german)


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


def _hints(asked: Asked, found: KeywordScores, excluded: Sequence[int]) -> _SearchHints:
    roster, budget, query, snapshot = asked.roster, asked.budget, asked.query, asked.snapshot
    lists: dict[str, Ints] = {}
    strength = budget.run("graph", snapshot, lambda: _related(asked)) if query.entities else None
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
    mask = allowed(roster, asked.request)
    mask[roster.rows_of(np.array(sorted(excluded), np.int64))] = False
    return _SearchHints(found, strength, np.empty(0, np.int64) if telling is None else telling, lists, mask)


def _closer(asked: Asked, hints: _SearchHints, near: SemanticScores | None) -> tuple[Candidates, SearchSignals]:
    """Return the candidates and their signals; those of keywords alone when vectors fail half way."""
    roster, query, budget = asked.roster, asked.query, asked.budget
    in_span = spans_of(roster, query.time_ranges)
    picked = select_candidates(hints.allowed, hints.keywords, near, hints.lists, in_span)
    values: Vector | None = None
    if near is not None:
        started_ms = budget.spent_ms
        try:
            values = _late(asked, near, hints.keywords, picked)
        except Exception as error:
            budget.miss("semantic", f"{type(error).__name__}: {error}")
            return _closer(asked, hints, None)
        budget.stages_ms["late"] = budget.spent_ms - started_ms
    return picked, SearchSignals(
        keywords=hints.keywords,
        semantics=near,
        late=values,
        graph=hints.graph,
        in_span=in_span,
        near_span=near_spans_of(roster, query.time_ranges),
        tells_of_span=hints.telling,
        ratings=asked.held.knowledge.episode_ratings,
        asked_at_us=asked.asked_at_us,
    )


def _late(asked: Asked, near: SemanticScores, found: KeywordScores, picked: Candidates) -> Vector:
    versions = asked.roster.versions[picked.rows]
    return late_interaction_scores(
        asked.vectors, asked.namespace, asked.snapshot, asked.query, near.embedding, found.idf, versions
    )


def _related(asked: Asked) -> NDArray[np.float64]:
    """Return the strength of what each episode names, for the entities of the query."""
    entities = asked.snapshot.entities
    found = episodes_naming(entities, spread_activation(entities, asked.query.entities))
    versions = np.fromiter(found, np.int64, len(found))
    order = np.argsort(versions)
    rows, here = asked.roster.live(versions[order])
    strength = np.zeros(len(asked.roster))
    strength[rows] = np.fromiter(found.values(), np.float64, len(found))[order][here]
    return strength


def allowed(roster: EpisodeArrays, request: RetrieveRequest) -> Mask:
    """Return which episodes a request may see."""
    mask = np.ones(len(roster), np.bool_)
    if request.since is not None:
        mask &= roster.occurred_at_us >= microseconds(request.since)
    if request.until is not None:
        mask &= roster.occurred_at_us < microseconds(request.until)
    if request.session_id is not None and request.mode == "active":
        session = [place for place, name in enumerate(roster.session_ids) if name == request.session_id]
        mask &= np.isin(roster.sessions, session)
    return mask


def _timed(search: Callable[[], SemanticScores], budget: Budget, part: str) -> Callable[[], SemanticScores]:
    def timed() -> SemanticScores:
        started_ms = budget.spent_ms
        try:
            return search()
        finally:
            budget.stages_ms[part] = budget.spent_ms - started_ms

    return timed
