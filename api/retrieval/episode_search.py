"""Episode search: scores every episode, selects candidates, measures their features and ranks them."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.api.retrieval.candidate_ranking import DatabaseSignals, ranked_candidates
from recollect.api.retrieval.contract.request import Ranking
from recollect.api.retrieval.contract.time_budget import PARTIAL_SUFFIX, TimeBudget
from recollect.api.retrieval.ranking.asked_time import versions_naming_dates
from recollect.api.retrieval.ranking.candidates import LIST_DEPTH, Mask
from recollect.api.retrieval.ranking.ranked_episodes import RankedEpisodes
from recollect.api.retrieval.requested_episodes import requested_episodes
from recollect.api.retrieval.search.entity_graph import episodes_naming, spread_activation
from recollect.api.retrieval.search.fact_answers import versions_stating_answers
from recollect.api.retrieval.search.keyword_search import KeywordScores, keyword_scores, substring_matches
from recollect.api.retrieval.search.score_background import ScoreBackground
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.api.retrieval.search.semantic_search import (
    QueryEmbeddings,
    SemanticScores,
    semantic_scores,
)
from recollect.api.retrieval.search.source_turns import best_summaries, keep_text_flags, with_source_turns
from recollect.projections.embeddings.model_runtime import PendingEmbedding
from recollect.projections.embeddings.stretches import TokenEmbedding
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.embeddings.vector_index import VectorIndex
from recollect.projections.embeddings.vectors import Vectors
from recollect.projections.queries.snapshot import QueryTimeout
from recollect.projections.search_index.episode_arrays import Ints

#: Loads of indexes, and embeddings of queries by models that need a thread, at once.
_THREADS = 8
#: The share of the time budget after which the vector search is not waited for; the rest is for the later stages.
SEMANTIC_SHARE = 0.8
#: The same for the query's vector alone, which passive mode compares with the topic before the search.
TOPIC_SHARE = 0.4

#: Messages with a question that are searched for one; more ids would not fit into a statement.
_ASKING_MAX = 10_000


class _PendingSearch(NamedTuple):
    """What a vector search waits for."""

    loaded: Future[VectorIndex]
    embedding: PendingEmbedding


class EpisodeSearch:
    """Searches the episodes of a namespace. Safe to use from many threads."""

    def __init__(self, background: ScoreBackground, query_embeddings: QueryEmbeddings) -> None:
        self._query_embeddings = query_embeddings
        self._background = background
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="recollect-semantic")

    def close(self) -> None:
        """Wait for running searches, then stop their threads."""
        self._pool.shutdown()

    def search(
        self, context: SearchContext, ranking: Ranking, excluded: Sequence[int] = (), *, by_vectors: bool = True
    ) -> RankedEpisodes | None:
        """Return the candidates for a query in their order; None without candidates or without keyword search.

        The turns that summaries stand for are ranked in place of the summaries, if they can be read in time.

        Parameters:
            excluded: versions of episodes to leave out.
            by_vectors: False for keywords alone.
        """
        summaries = self._best_summaries(context, by_vectors=by_vectors and ranking != "keyword")
        if summaries:
            expanded = context.budget.run("sources", context.snapshot, lambda: with_source_turns(context, summaries))
            if expanded is not None:
                ranked = self._search(expanded, ranking, excluded, by_vectors=by_vectors)
                keep_text_flags(context, expanded)
                return ranked
        return self._search(context, ranking, excluded, by_vectors=by_vectors)

    def _best_summaries(self, context: SearchContext, *, by_vectors: bool) -> list[int]:
        """Return the versions of the summaries whose sources to rank, best first; empty without keyword search."""
        if not context.episodes.has_summaries:
            return []
        pending = self._start_semantic_search(context, ()) if by_vectors else None
        keywords = context.budget.run("keyword", context.snapshot, lambda: _keyword_scores(context))
        semantics = self._await_semantic_search(context, pending)
        if keywords is None:
            return []
        allowed = (context.episodes.raw == 0) & requested_episodes(context, summaries=True)
        return best_summaries(context, allowed, keywords, semantics)

    def _search(
        self, context: SearchContext, ranking: Ranking, excluded: Sequence[int], *, by_vectors: bool
    ) -> RankedEpisodes | None:
        """Return the ranked candidates among the episodes of `context`."""
        budget = context.budget
        pending = self._start_semantic_search(context, excluded) if by_vectors and ranking != "keyword" else None
        keywords = budget.run("keyword", context.snapshot, lambda: _keyword_scores(context, excluded))
        # Before waiting for the vector search: the results of SQLite must not depend on its duration.
        database_signals = None if keywords is None else _database_signals(context, keywords, excluded)
        semantics = self._await_semantic_search(context, pending)
        if database_signals is None:
            return None
        return ranked_candidates(context, ranking, database_signals, semantics, self._background)

    def start_embedding(self, text: str, vectors: Vectors, budget: TimeBudget) -> PendingEmbedding | None:
        """Start to embed a query in parallel with this thread; None when there is no model, or nothing to embed."""
        if vectors.embedder.state != "ready" or not text.strip():
            return None
        started_ms = budget.spent_ms
        try:
            started = self._query_embeddings.start(text, vectors, lambda: budget.end_stage("embed", started_ms))
        except Exception:
            # The vector search records the reason, which the thread meets too.
            started = None
        if started is not None:
            return started

        def embed() -> TokenEmbedding:
            if not budget.left_seconds:
                # Nothing waits for it any more: queries would queue up for a slow model.
                raise QueryTimeout("the time of the query is over")
            try:
                return self._query_embeddings.get(text, vectors)
            finally:
                budget.end_stage("embed", started_ms)

        return self._pool.submit(embed)

    def _embedding(self, context: SearchContext) -> PendingEmbedding | None:
        return context.embedding or self.start_embedding(context.query.text, context.vectors, context.budget)

    def query_vector(self, context: SearchContext) -> Vector | None:
        """Return the query's vector, shape (dimensions,); None when it is not embedded in time."""
        pending = self._embedding(context)
        if pending is None:
            return None
        try:
            return pending.result(context.budget.share_left_seconds(TOPIC_SHARE)).vector
        except Exception:
            # The vector search records the reason.
            return None

    def _start_semantic_search(self, context: SearchContext, excluded: Sequence[int]) -> _PendingSearch | None:
        """Start the vector search; return None, and a note, when vectors are not available."""
        vectors, snapshot, budget = context.vectors, context.snapshot, context.budget
        embedder = vectors.embedder
        if embedder.state != "ready":
            budget.record_missing("semantic", embedder.reason)
            return None
        try:
            backlog = vectors.backlog(context.namespace, snapshot)
        except Exception as error:
            budget.record_missing("semantic", error)
            return None
        missing = backlog.missing
        if 0 < missing < backlog.total:
            # Episodes are embedded in the order of the log. Those that are left out anyway, such as the message itself,
            # are not missed.
            newest = context.episodes.versions[-missing:]
            missing -= int(np.isin(newest, np.array(excluded, np.int64)).sum())
        if missing:
            budget.record_missing("semantic", f"{missing} of {backlog.total} {PARTIAL_SUFFIX}")
        if backlog.missing == backlog.total and backlog.total:
            return None
        embedding = self._embedding(context)
        if embedding is None:
            return None

        # In another thread, since the first load of the index can take longer than the time budget.
        return _PendingSearch(self._pool.submit(vectors.index, context.namespace, snapshot), embedding)

    def _await_semantic_search(self, context: SearchContext, pending: _PendingSearch | None) -> SemanticScores | None:
        """Return the scores of the vector search; None, and a note, when it fails or is late."""
        if pending is None:
            return None
        budget, started_ms = context.budget, context.budget.spent_ms
        try:
            loaded = pending.loaded.result(budget.share_left_seconds(SEMANTIC_SHARE))
            embedding = pending.embedding.result(budget.share_left_seconds(SEMANTIC_SHARE))
            # In this thread: to hand the vector over to another one takes longer than a search of 50,000.
            return semantic_scores(
                context.vectors, loaded, embedding, context.episodes, context.snapshot.version, self._background
            )
        except FutureTimeout:
            pending.loaded.cancel()
            budget.record_missing("semantic", "out of time")
        except Exception as error:
            budget.record_missing("semantic", error)
        finally:
            budget.end_stage("semantic", started_ms)
        return None


def _keyword_scores(context: SearchContext, excluded: Sequence[int] = ()) -> KeywordScores:
    """Return the keyword scores of every episode; `excluded` as in `EpisodeSearch.search`."""
    query = context.query
    return keyword_scores(context.snapshot, context.index, query.words, excluded, german=query.german)


def _database_signals(context: SearchContext, keywords: KeywordScores, excluded: Sequence[int]) -> DatabaseSignals:
    """Return the signals from SQLite: entity graph, substring matches, dates, and the mask of the request."""
    episodes, budget, query, snapshot = context.episodes, context.budget, context.query, context.snapshot
    lists: dict[str, Ints] = {}
    strength = budget.run("graph", snapshot, lambda: _graph_strength(context)) if query.entities else None
    if strength is not None:
        rows = np.flatnonzero(strength)
        lists["graph"] = rows[np.lexsort((-rows, -strength[rows]))]
    if query.words and not keywords.turn.any():
        matches = budget.run(
            "substring",
            snapshot,
            lambda: substring_matches(snapshot.episodes, query.words, LIST_DEPTH),
        )
        if matches is not None:
            lists["substring"] = episodes.rows_of(matches)
    naming_span: dict[int, float] | None = None
    if query.time_ranges:
        naming_span = budget.run("dates", snapshot, lambda: versions_naming_dates(snapshot.dates, query.time_ranges))
    if naming_span:
        lists["date"] = episodes.rows_of(np.array(sorted(naming_span), np.int64))
    answering = budget.run("facts", snapshot, lambda: versions_stating_answers(context))
    answering_versions = np.empty(0, np.int64) if answering is None else answering
    if len(answering_versions):
        lists["fact"] = episodes.rows_of(answering_versions)
    mask = requested_episodes(context)
    if excluded:
        mask[episodes.rows_of(np.array(sorted(excluded), np.int64))] = False
    if query.intent.own_question:
        asking = budget.run("questions", snapshot, lambda: _asking(context, mask))
        mask = mask if asking is None else asking
    return DatabaseSignals(
        keywords=keywords,
        graph=strength,
        naming_span=naming_span or {},
        answering_versions=answering_versions,
        lists=lists,
        allowed=mask,
    )


def _asking(context: SearchContext, allowed: Mask) -> Mask:
    """Return the mask of the allowed messages in which a user asks something; `allowed` when there is none."""
    ids = context.snapshot.sessions.asking_messages(limit=_ASKING_MAX)
    asking = np.zeros(len(context.episodes), np.bool_)
    asking[context.episodes.rows_of(np.array(sorted(context.snapshot.episodes.versions_of(ids)), np.int64))] = True
    asking &= allowed
    return asking if asking.any() else allowed


def _graph_strength(context: SearchContext) -> NDArray[np.float64]:
    """Return the activation of each episode by the entities that it names, shape (episodes,)."""
    entities = context.snapshot.entities
    versions, values = episodes_naming(entities, spread_activation(entities, context.query.entities))
    rows, live = context.episodes.live_rows(versions)
    strength = np.zeros(len(context.episodes))
    strength[rows] = values[live]
    return strength
