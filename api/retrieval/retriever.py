"""One question to one namespace: understand, search in parallel, fuse, fit the budget, render.

It never raises for any query and is never late: what is not there in time is left out and named in `degraded`. Without
vectors, for whatever reason, the answer is that of keyword search alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager
from typing import Any

import apsw
import uuid_utils

from recollect.api.retrieval.context import fit, render
from recollect.api.retrieval.deadline import Budget
from recollect.api.retrieval.expansion import expanded
from recollect.api.retrieval.fusion import Ranked, fuse
from recollect.api.retrieval.graph import graph_matches
from recollect.api.retrieval.keyword import (
    has_unspaced,
    rarest,
    substring_matches,
    turn_matches,
    window_matches,
)
from recollect.api.retrieval.query import Query, understand
from recollect.api.retrieval.request import RetrieveRequest
from recollect.api.retrieval.result import Item, RetrieveResult
from recollect.api.retrieval.scope import Scope, scope_of
from recollect.api.retrieval.semantic import QueryVectors, allowed_versions, semantic_matches
from recollect.events.errors import InvalidInput, RecollectError, StillBuilding, StorageError
from recollect.events.limits import check_namespace
from recollect.projections.history import History
from recollect.projections.models import ReadModels, Snapshot
from recollect.projections.tokens import estimate_tokens
from recollect.projections.vectors import VectorsInUse

_logger = logging.getLogger(__name__)

#: How deep each list goes, whatever the limit: so a larger limit shows more of the same order.
DEPTH = 200
#: How long a retrieval may take (`000`, `001`).
BUDGET_MS = 500.0
#: The part of the budget that catching up with the log may take.
_CATCH_UP_SHARE = 0.6
#: Entities in one answer; who names more asks about none in particular.
_ENTITIES_MAX = 3
#: Vector searches at once; they share one model, so more would only wait.
_THREADS = 4

_Lists = dict[str, list[int]]


class Retriever:
    """Answers questions from the read models and vectors. Safe to use from many threads.

    Parameters:
        history: answers what is asked as of a moment of the past.
        vectors_in_use: asked once for each retrieval, so that the query and what it is compared with are of one model.
        budget_ms: how long one retrieval may take.
    """

    def __init__(
        self, models: ReadModels, history: History, vectors_in_use: VectorsInUse, *, budget_ms: float = BUDGET_MS
    ) -> None:
        self._models = models
        self._history = history
        self._vectors_in_use = vectors_in_use
        self._query_vectors = QueryVectors()
        self._budget_ms = budget_ms
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="recollect-semantic")

    def retrieve(self, namespace: str, request: RetrieveRequest) -> RetrieveResult:
        """Return what the memory of `namespace` has for `request`.

        Raises:
            InvalidNamespace: the name is not allowed. InvalidInput: `as_of` is a moment that is not there. Nothing
            else, whatever the query.
        """
        check_namespace(namespace)
        budget = Budget(self._budget_ms)
        version, items = 0, list[Item]()
        try:
            if request.as_of is not None:
                version = self._history.version(namespace, request.as_of)
            with self._reading(namespace, None if request.as_of is None else version, budget) as snapshot:
                version = snapshot.version
                items = self._items(namespace, request, snapshot, budget)
        except InvalidInput:
            raise
        except StillBuilding as error:
            budget.miss("projection", error)
        except (RecollectError, apsw.Error) as error:
            _logger.warning("namespace %r cannot be read", namespace, exc_info=True)
            budget.miss("projection", error)
        fitting = fit(items, request.budget_tokens, request.query)
        context = render(fitting)
        return RetrieveResult(
            context=context,
            items=tuple(item for item, _ in fitting),
            tokens=estimate_tokens(context),
            latency_ms=budget.spent_ms,
            degraded=tuple(budget.degraded),
            trace_id=str(uuid_utils.uuid7()),
            version=version,
            stages_ms=budget.stages_ms,
        )

    def close(self) -> None:
        """Wait for running searches, then end their threads."""
        self._pool.shutdown()

    @contextmanager
    def _reading(self, namespace: str, past: int | None, budget: Budget) -> Generator[Snapshot]:
        """Lend the read model at the version `past`; the one of now, caught up, when it is None."""
        deadline = budget.started + self._budget_ms / 1_000 * _CATCH_UP_SHARE
        if past is None:
            self._catch_up(namespace, budget, deadline)
            with self._models.reading(namespace) as snapshot:
                yield snapshot
        else:
            with self._history.reading(namespace, past, deadline=deadline) as snapshot:
                budget.stages_ms["catch_up"] = budget.spent_ms
                yield snapshot

    def _catch_up(self, namespace: str, budget: Budget, deadline: float) -> None:
        try:
            progress = self._models.catch_up(namespace, deadline=deadline)
        except StorageError as error:
            # A full disk, say. What was folded before can still be read.
            budget.miss("projection", error)
            return
        finally:
            budget.stages_ms["catch_up"] = budget.spent_ms
        if progress.parked is not None:
            budget.miss("projection", f"parked at version {progress.parked.version}: {progress.parked.error}")
        elif progress.behind:
            budget.miss("projection", f"{progress.behind} of {progress.head} events not folded yet")

    def _items(self, namespace: str, request: RetrieveRequest, snapshot: Snapshot, budget: Budget) -> list[Item]:
        connection = snapshot.connection
        kinds = request.kinds or frozenset(("episode", "entity"))
        query = understand(request.query, connection)
        budget.stages_ms["understand"] = budget.spent_ms - budget.stages_ms["catch_up"]
        items = _entities(connection, query)[: request.limit] if "entity" in kinds else []
        if "episode" in kinds and request.query.strip():
            scope = scope_of(request)
            semantic = self._begin_semantic(namespace, query, scope, snapshot, budget)
            lists = _search(connection, query, scope, budget)
            lists |= self._finish_semantic(semantic, budget)
            ranked = fuse(_with_speakers(connection, query, lists))
            found = _episodes(connection, ranked[: request.limit - len(items)])
            items += expanded(found, snapshot, self._models.log, namespace) if request.expand else found
        return items

    def _begin_semantic(
        self, namespace: str, query: Query, scope: Scope, snapshot: Snapshot, budget: Budget
    ) -> Future[_Lists] | None:
        """Start the vector search in another thread; None when there can be none."""
        vectors = self._vectors_in_use()
        embedder = vectors.embedder
        if embedder.state != "ready":
            budget.miss("semantic", embedder.reason)
            return None
        try:
            pending = vectors.pending(namespace, snapshot)
            index = vectors.index(namespace, snapshot)
            allowed = allowed_versions(snapshot.connection, scope)
        except Exception as error:
            budget.miss("semantic", f"{type(error).__name__}: {error}")
            return None
        if pending.missing:
            budget.miss("semantic", f"{pending.missing} of {pending.total} not embedded yet")
        if pending.missing == pending.total and pending.total:
            return None

        def search() -> _Lists:
            vector = self._query_vectors.of(query.text, embedder)
            return semantic_matches(index, vector, snapshot.version, allowed, DEPTH)

        return self._pool.submit(_timed(search, budget, "semantic"))

    def _finish_semantic(self, semantic: Future[_Lists] | None, budget: Budget) -> _Lists:
        """Return what the vector search found, if it is there in time."""
        if semantic is None:
            return {}
        try:
            return semantic.result(budget.left_seconds)
        except FutureTimeout:
            semantic.cancel()
            budget.miss("semantic", "out of time")
        except Exception as error:
            budget.miss("semantic", f"{type(error).__name__}: {error}")
        return {}


def _timed(search: Callable[[], _Lists], budget: Budget, part: str) -> Callable[[], _Lists]:
    def timed() -> _Lists:
        started_ms = budget.spent_ms
        try:
            return search()
        finally:
            budget.stages_ms[part] = budget.spent_ms - started_ms

    return timed


def _search(connection: apsw.Connection, query: Query, scope: Scope, budget: Budget) -> _Lists:
    """Return the lists that SQLite finds."""
    lists: _Lists = {}
    words: list[str] = []

    def choose() -> list[int]:
        words.extend(rarest(connection, query.words))
        return []

    budget.run("words", connection, choose)
    if words:
        lists["keyword"] = budget.run("keyword", connection, lambda: turn_matches(connection, words, scope, DEPTH))
        lists["keyword_window"] = budget.run(
            "keyword_window", connection, lambda: window_matches(connection, words, scope, DEPTH)
        )
    if query.words and (not lists.get("keyword") or has_unspaced(query.words)):
        lists["substring"] = budget.run(
            "substring", connection, lambda: substring_matches(connection, query.words, scope, DEPTH)
        )
    if query.entities:
        lists["graph"] = budget.run(
            "graph", connection, lambda: graph_matches(connection, query.entities, scope, DEPTH)
        )
    return lists


def _with_speakers(connection: apsw.Connection, query: Query, lists: _Lists) -> _Lists:
    """Return `lists` and one more: what the people who are asked about said themselves, in the order found so far."""
    if not query.participants or not lists:
        return lists
    candidates = [candidate.version for candidate in fuse(lists)]
    names = _names(connection, query.participants)
    marks = ", ".join("?" * len(candidates))
    rows: list[tuple[Any, ...]] = connection.execute(
        f"SELECT version, speaker, tier FROM episodes WHERE version IN ({marks})", candidates
    ).fetchall()
    # A summary tells what several people said.
    spoken = {version for version, speaker, tier in rows if tier != "raw" or speaker.casefold() in names}
    return lists | {"speaker": [version for version in candidates if version in spoken]}


def _names(connection: apsw.Connection, entities: Sequence[int]) -> set[str]:
    marks = ", ".join("?" * len(entities))
    rows: list[tuple[Any, ...]] = connection.execute(
        f"SELECT name FROM entity_names WHERE entity_id IN ({marks})", entities
    ).fetchall()
    return {row[0] for row in rows}


def _entities(connection: apsw.Connection, query: Query) -> list[Item]:
    """Return what was described about the entities that the query names, at most three: they come before episodes."""
    items: list[Item] = []
    for rank, entity in enumerate((*query.entities, *query.participants)[:_ENTITIES_MAX], start=1):
        rows: list[tuple[Any, ...]] = connection.execute(
            "SELECT name, type, description, last_seen_us FROM entities WHERE id = ? AND description IS NOT NULL",
            (entity,),
        ).fetchall()
        for name, kind, description, last_seen_us in rows:
            items.append(
                Item(
                    id=name,
                    kind="entity",
                    text=f"**{name}** ({kind}): {description}",
                    score=1 / rank,
                    matched_by=("entity",),
                    ranks={"entity": rank},
                    source_events=(),
                    occurred_at_us=last_seen_us,
                    session_id=None,
                    speaker=None,
                )
            )
    return items


def _episodes(connection: apsw.Connection, ranked: Sequence[Ranked]) -> list[Item]:
    """Return the items of `ranked` episodes."""
    items: list[Item] = []
    find = "SELECT id, text, caption, occurred_at_us, session_id, speaker, tier FROM episodes WHERE version = ?"
    sources = "SELECT id FROM episode_sources WHERE version = ? ORDER BY source"
    for candidate in ranked:
        row: tuple[Any, ...] = connection.execute(find, (candidate.version,)).fetchall()[0]
        event_id, text, caption, occurred_at_us, session_id, speaker, tier = row
        behind: list[tuple[Any, ...]] = (
            [] if tier == "raw" else connection.execute(sources, (candidate.version,)).fetchall()
        )
        items.append(
            Item(
                id=event_id,
                kind="episode",
                text=f"{text} ({caption})" if caption else text,
                score=candidate.score,
                matched_by=tuple(sorted(candidate.ranks, key=lambda name: (candidate.ranks[name], name))),
                ranks=candidate.ranks,
                source_events=tuple(one[0] for one in behind) or (event_id,),
                occurred_at_us=occurred_at_us,
                session_id=session_id,
                speaker=speaker,
            )
        )
    return items
