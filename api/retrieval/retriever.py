"""One question to memory: understand, search in parallel, fuse, gate, fit the budget, render.

It never raises for any query and is never late: what is not there in time is left out and named in `degraded`. Without
vectors, for whatever reason, the answer is that of keyword search alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime

import uuid_utils

from recollect.api.retrieval.answer.answer_guidance import answer_guidance
from recollect.api.retrieval.answer.expansion import expand_summaries
from recollect.api.retrieval.answer.explanation import explanation
from recollect.api.retrieval.answer.prompt_context import Line, arrange, fit_to_budget
from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.api.retrieval.contract.result import AnswerGuidance, Item, RetrieveResult
from recollect.api.retrieval.contract.time_budget import TimeBudget
from recollect.api.retrieval.namespace_search import NamespaceSearch, Thresholds
from recollect.api.retrieval.ranking.ranked_episodes import RankedEpisodes
from recollect.api.retrieval.ranking.reranker import Reranker
from recollect.api.retrieval.ranking.search_result import SearchResult
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.api.retrieval.turn_context import ConversationState, conversation_state, standing_items
from recollect.api.retrieval.understanding.query import asked_at, present, understand
from recollect.api.settings import RETRIEVAL_BUDGET_MS
from recollect.events.envelope import datetime_of, microseconds
from recollect.events.errors import InvalidInput, RecollectError, StillBuilding, StorageError
from recollect.events.limits import check_namespace
from recollect.events.storage.database import DatabaseError
from recollect.projections.embeddings.vectors import CurrentVectors
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.read_models.history import History
from recollect.projections.read_models.read_models import ReadModels
from recollect.projections.search_index.index_cache import IndexCache
from recollect.projections.text.tokens import estimate_tokens

_logger = logging.getLogger(__name__)

#: The part of the budget that catching up with the log may take.
_CATCH_UP_SHARE = 0.6
#: "Remember when …" searches deeper, and may say more.
_DEEPER = 2
_NOWHERE = ConversationState("asked", (), ())


@dataclass(slots=True)
class _Answer:
    """What comes together for one request."""

    version: int = 0
    items: tuple[Item, ...] = ()
    #: What would be in the context if it had room for everything.
    wanted: tuple[Item, ...] = ()
    lines: tuple[Line, ...] = ()
    context: str = ""
    aids: AnswerGuidance = field(default_factory=AnswerGuidance)
    where: ConversationState = _NOWHERE
    found: tuple[SearchResult, ...] = ()


class Retriever:
    """Answers questions from the read models and vectors. Safe to use from many threads.

    Parameters:
        history: answers what is asked as of a moment of the past.
        vectors_in_use: asked once for each retrieval, so that the query and what it is compared with are of one model.
        budget_ms: how long one retrieval may take.
        thresholds: from which probability on something is said.
        reranker: looks at the first episodes again.
        clock: the present time, for questions that name no other.
    """

    def __init__(
        self,
        read_models: ReadModels,
        history: History,
        vectors_in_use: CurrentVectors,
        *,
        budget_ms: float = RETRIEVAL_BUDGET_MS,
        thresholds: Thresholds | None = None,
        reranker: Reranker | None = None,
        clock: Callable[[], datetime] = present,
    ) -> None:
        self._models = read_models
        self._clock = clock
        self._history = history
        self._vectors_in_use = vectors_in_use
        self._budget_ms = budget_ms
        self._memory = IndexCache()
        self._finder = NamespaceSearch(thresholds or Thresholds(), reranker)

    def retrieve(self, namespace: str, request: RetrieveRequest, *, exclude: Sequence[str] = ()) -> RetrieveResult:
        """Return what the memory of `namespace` has for `request`.

        Parameters:
            exclude: ids of episodes that are not wanted, such as the message that is asked with.

        Raises:
            InvalidNamespace: the name is not allowed. InvalidInput: `as_of` is a moment that is not there. Nothing
            else, whatever the query.
        """
        check_namespace(namespace)
        budget = TimeBudget(self._budget_ms)
        answer = _Answer()
        try:
            self._answer(answer, namespace, request, budget, exclude)
        except InvalidInput:
            raise
        except StillBuilding as error:
            budget.record_missing("projection", error)
        except (RecollectError, DatabaseError) as error:
            _logger.warning("namespace %r cannot be read", namespace, exc_info=True)
            budget.record_missing("projection", error)
        except Exception as error:
            # A bot's turn must not fail because of its memory (`001`); what is wrong is named, here and in the log.
            _logger.exception("a retrieval from namespace %r failed by an internal error", namespace)
            budget.record_missing("retrieval", f"{type(error).__name__}: {error}")
        return RetrieveResult(
            context=answer.context,
            items=answer.items,
            tokens=estimate_tokens(answer.context),
            latency_ms=budget.spent_ms,
            degraded=tuple(dict.fromkeys(budget.degraded)),
            trace_id=str(uuid_utils.uuid7()),
            version=answer.version,
            trigger=answer.where.trigger,
            aids=answer.aids,
            stages_ms=budget.stages_ms,
            explain=lambda: explanation(answer.found, answer.wanted, answer.lines, answer.items),
        )

    def rank(self, namespace: str, request: RetrieveRequest) -> tuple[SearchContext, RankedEpisodes | None]:
        """Return how the episodes of a namespace come out for a request: what weights are fitted to."""
        budget = TimeBudget(self._budget_ms)
        with self._reading(namespace, None, budget) as snapshot:
            asked = self._asked(namespace, request, snapshot, budget)
            if asked is None:
                raise StillBuilding(f"the read model of namespace {namespace!r} was not ready in time")
            return asked, self._finder.episodes.search(asked, request.ranking)

    def close(self) -> None:
        """Wait for running searches, then end their threads."""
        self._finder.close()

    def _answer(
        self, answer: _Answer, namespace: str, request: RetrieveRequest, budget: TimeBudget, exclude: Sequence[str]
    ) -> None:
        """Put together what there is, a part after the other: what fails leaves what was there before."""
        past = None if request.as_of is None else self._history.version(namespace, request.as_of)
        then = None if past is None else self._moment(namespace, request, past)
        answer.version = past or 0
        with self._reading(namespace, past, budget) as snapshot:
            answer.version = snapshot.version
            asked = self._asked(namespace, request, snapshot, budget, then)
            if asked is None:
                return
            extra: list[Item] = []
            if request.mode == "passive":
                answer.where = conversation_state(asked, self._finder.episodes.vector_of(asked), exclude)
                extra = standing_items(asked, answer.where)
                request = _deeper(request, answer.where)
                asked = replace(asked, request=request)
            found = [self._find(asked, answer.where.visible)]
            others = [name for name in dict.fromkeys(request.also) if name != namespace]
            found += [one for name in others if (one := self._find_also(name, request, budget, then)) is not None]
            if answer.where.trigger == "topic change" and budget.failed("semantic"):
                # By keywords alone nobody would have noticed.
                answer.where = replace(answer.where, trigger="message")
            answer.found = tuple(found)
            self._assemble(answer, asked, found, extra)

    def _assemble(
        self, answer: _Answer, context: SearchContext, found: Sequence[SearchResult], extra: Sequence[Item]
    ) -> None:
        started_ms = context.budget.spent_ms
        request = context.request
        ranked = [item for one in found for item in one.items]
        if len(found) > 1:
            ranked.sort(key=lambda item: -item.score)
        ranked = ranked[: request.limit]
        names = {(item.namespace, item.id) for item in ranked}
        items = [*ranked, *(item for item in extra if (item.namespace, item.id) not in names)]
        answer.wanted = tuple(items)
        lines = fit_to_budget(items, request.budget_tokens, context.query.words)
        lines, answer.context = arrange(lines, answer.where.observations, request.format, request.budget_tokens)
        kept = {id(line.item) for line in lines}
        answer.lines = tuple(lines)
        answer.items = tuple(item for item in items if id(item) in kept)
        cited = [item for item in ranked if id(item) in kept]
        answer.aids = answer_guidance(context, cited, max((one.grounding for one in found), default=0.0))
        context.budget.stages_ms["assemble"] = context.budget.spent_ms - started_ms

    def _find(self, context: SearchContext, excluded: Sequence[int]) -> SearchResult:
        found = self._finder.search(context, excluded)
        if not context.request.expand:
            return found
        return replace(found, items=expand_summaries(found.items, context.snapshot, context.log, context.namespace))

    def _moment(self, namespace: str, request: RetrieveRequest, past: int) -> datetime:
        """Return the moment that the version `past` stands for: the one asked for, or when it was recorded."""
        if isinstance(request.as_of, datetime):
            return request.as_of
        events = self._models.log.read(namespace, after=past - 1, limit=1) if past else []
        return datetime_of(events[0].recorded_at_us if events else 0)

    def _find_also(
        self, namespace: str, request: RetrieveRequest, budget: TimeBudget, then: datetime | None
    ) -> SearchResult | None:
        """Return what another namespace has; None, and a note, when it cannot be read in time.

        Parameters:
            then: as it was at this moment; as it is now for None.
        """
        if budget.left_seconds == 0:
            budget.record_missing(f"also {namespace}", "out of time")
            return None
        try:
            past = None if then is None else self._history.version(namespace, then)
            with self._reading(namespace, past, budget) as snapshot:
                asked = self._asked(namespace, request, snapshot, budget, then)
                return None if asked is None else self._find(asked, ())
        except (RecollectError, DatabaseError) as error:
            budget.record_missing(f"also {namespace}", error)
            return None

    def _asked(
        self,
        namespace: str,
        request: RetrieveRequest,
        snapshot: Snapshot,
        budget: TimeBudget,
        then: datetime | None = None,
    ) -> SearchContext | None:
        at = asked_at(then, request.until, self._clock)
        started_ms = budget.spent_ms
        query = understand(request.query, snapshot, asked_at=at, session_id=request.session_id)
        budget.stages_ms["understand"] = budget.spent_ms - started_ms
        held = budget.run("memory", snapshot, lambda: self._memory.get(snapshot))
        if held is None:
            return None
        vectors = self._vectors_in_use()
        return SearchContext(
            namespace, request, snapshot, held, query, microseconds(at), vectors, self._models.log, budget
        )

    @contextmanager
    def _reading(self, namespace: str, past: int | None, budget: TimeBudget) -> Generator[Snapshot]:
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

    def _catch_up(self, namespace: str, budget: TimeBudget, deadline: float) -> None:
        started_ms = budget.spent_ms
        try:
            progress = self._models.catch_up(namespace, deadline=deadline)
        except StorageError as error:
            # A full disk, say. What was folded before can still be read.
            budget.record_missing("projection", error)
            return
        finally:
            budget.stages_ms["catch_up"] = budget.spent_ms - started_ms
        if progress.parked is not None:
            budget.record_missing("projection", f"parked at version {progress.parked.version}: {progress.parked.error}")
        elif progress.behind:
            budget.record_missing("projection", f"{progress.behind} of {progress.head} events not folded yet")


def _deeper(request: RetrieveRequest, where: ConversationState) -> RetrieveRequest:
    """Return what a passive retrieval asks for: more to remember something by, less when the window is full."""
    if where.trigger == "remember":
        wider = {
            "limit": min(100, _DEEPER * request.limit),
            "budget_tokens": min(100_000, _DEEPER * request.budget_tokens),
        }
        return request.model_copy(update=wider)
    if where.trigger == "window full":
        return request.model_copy(update={"budget_tokens": request.budget_tokens // _DEEPER})
    return request
