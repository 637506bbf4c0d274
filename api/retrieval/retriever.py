"""Retriever: answers a query from the read models and vectors of one or more namespaces.

A retrieval runs these stages; the methods of `Retriever` are in the same order.

1. Resolve `as_of` to a version (`_as_of_time`; `projections.read_models.history`).
2. Catch the read model up with the log, or open the past version (`_snapshot`; `projections.read_models`).
3. Understand the query: question, words, entities, times, intent (`_search_context`; `understanding.query`).
4. In passive mode, read the state of the conversation and the items of every turn (`_run_stages`; `turn_context`,
   `standing_memories`).
5. Search each namespace (`_search`, `_search_other_namespace`; `namespace_search`):
   - episodes (`episode_search`): scores by keyword, vector and entity graph (`search.keyword_search`,
     `search.semantic_search`, `search.entity_graph`), the candidates of every list (`ranking.candidates`), their
     features (`ranking.features`) and the weighted sum (`ranking.weighted_sum`); turns from the log take the place of
     summaries (`search.source_turns`);
   - knowledge (`knowledge_search`);
   - the relevance gate (`ranking.relevance_gate`), the optional reranker (`ranking.reranker`) and the merge.
6. Add all messages of the summaries behind items when `expand` is set (`_search`; `answer.expansion`).
7. Fit the items to the token budget and render the context (`_assemble`; `answer.prompt_context`).
8. Derive guidance for the answer (`_assemble`; `answer.answer_guidance`).
9. Explain the result for its trace, lazily (`RetrieveResult.explain`; `answer.explanation`, `answer.trace_store`).

No query raises an error, and the time budget limits every stage (`contract.time_budget`): a stage that fails or is late
is left out and named in `degraded`. Without vectors, the result is that of keyword search alone.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import datetime, tzinfo
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from recollect.api.retrieval.answer.answer_guidance import answer_guidance
from recollect.api.retrieval.answer.best_sentences import cut_long_text
from recollect.api.retrieval.answer.expansion import expand_summaries
from recollect.api.retrieval.answer.explanation import explanation
from recollect.api.retrieval.answer.fence_names import random_part
from recollect.api.retrieval.answer.left_out_items import (
    without_orders,
    without_rules_of_others,
    without_sources,
    without_standing,
)
from recollect.api.retrieval.answer.prompt_context import PASSIVE_LINE_TOKENS, Line, fit_to_budget, render_within_budget
from recollect.api.retrieval.answer.rendered_dates import RenderContext
from recollect.api.retrieval.answer.withheld_secrets import SecretFilter, SecretOwners
from recollect.api.retrieval.asker_context import for_asker
from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.api.retrieval.contract.result import AnswerGuidance, Item, RetrieveResult
from recollect.api.retrieval.contract.time_budget import BEHIND_SUFFIX, TimeBudget
from recollect.api.retrieval.namespace_search import NamespaceSearch
from recollect.api.retrieval.ranking.ranked_episodes import RankedEpisodes
from recollect.api.retrieval.ranking.reranker import Reranker
from recollect.api.retrieval.ranking.search_result import SearchResult, shared_reason
from recollect.api.retrieval.recall_telemetry import TraceIds, record_recall, trace_recall
from recollect.api.retrieval.repeated_statements import without_repetitions
from recollect.api.retrieval.restricted_memories import without_hidden
from recollect.api.retrieval.result_items import named_dates
from recollect.api.retrieval.retrieval_models import load_models
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.api.retrieval.standing_memories import standing_items
from recollect.api.retrieval.turn_context import ConversationState, adjusted_request, conversation_state
from recollect.api.retrieval.understanding.query import question_time, read_question, understand, utc_now
from recollect.api.settings import RETRIEVAL_BUDGET_MS, PrivacySettings, RetrievalSettings
from recollect.events.backends.answer_deadline import answers_by
from recollect.events.envelope import datetime_of
from recollect.events.errors import InvalidInput, RecollectError, StillBuilding, StorageError
from recollect.events.limits import check_namespace
from recollect.events.local_time import zone_named
from recollect.events.storage.database import DatabaseError
from recollect.events.storage.namespace_folder import folder_name
from recollect.events.tracing import memory_span
from recollect.projections.embeddings.vectors import CurrentVectors, Vectors
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.read_models.history import History
from recollect.projections.read_models.read_models import ReadModels
from recollect.projections.search_index.index_cache import IndexCache
from recollect.projections.text.tokens import estimate_tokens

_logger = logging.getLogger(__name__)

_Read = TypeVar("_Read")

#: The share of the time budget that catching up with the log may take; the rest is for the search.
_CATCH_UP_SHARE = 0.6
_NO_CONVERSATION = ConversationState("asked", (), ())


class _Answer(Struct):
    """The results of the stages of one retrieval, so far."""

    #: Lines for the context about the turn itself.
    notes: tuple[str, ...] = ()
    #: The version of the namespace that is searched.
    version: int = 0
    #: The items in the context.
    items: tuple[Item, ...] = ()
    #: The items that the context would hold without a token budget.
    selected: tuple[Item, ...] = ()
    #: The lines of the context.
    lines: tuple[Line, ...] = ()
    #: The text for the prompt.
    context: str = ""
    guidance: AnswerGuidance = field(default_factory=AnswerGuidance)
    #: The state of the conversation, in passive mode.
    state: ConversationState = _NO_CONVERSATION
    #: The search results, one per namespace.
    results: tuple[SearchResult, ...] = ()


class Retriever:
    """Answers queries from the read models and vectors. Safe to use from many threads.

    Parameters:
        read_models: the current read models, which each retrieval catches up with the log.
        history: the read models of past versions, for requests with `as_of`.
        current_vectors: returns the active vectors; called once per search, so that the query and the passages it is
            compared with are embedded by the same model.
        settings: how much is searched, and how it is ranked and rendered; the defaults when None.
        budget_ms: the time limit of one retrieval, in milliseconds.
        privacy: which secrets a context does not show.
        fence_key: of the random names of the tags around contexts; a key of this object when None.
        reranker: reorders the first episodes; None leaves their order.
        clock: returns the present time, for queries without `as_of` and `until`.
        on_degraded: called with the namespaces of a retrieval that lacked events, or their vectors.
        indexes: the in-memory indexes of read models; those of this object when None.
    """

    def __init__(
        self,
        read_models: ReadModels,
        history: History,
        current_vectors: CurrentVectors,
        *,
        settings: RetrievalSettings | None = None,
        budget_ms: float = RETRIEVAL_BUDGET_MS,
        privacy: PrivacySettings | None = None,
        fence_key: bytes | None = None,
        reranker: Reranker | None = None,
        clock: Callable[[], datetime] = utc_now,
        on_degraded: Callable[[str], None] | None = None,
        indexes: IndexCache | None = None,
    ) -> None:
        self._read_models = read_models
        self._on_degraded = on_degraded
        self._clock = clock
        self._history = history
        self._current_vectors = current_vectors
        self._settings = settings or RetrievalSettings()
        self._fence_key = fence_key or os.urandom(32)
        self._privacy = privacy or PrivacySettings()
        self._budget_ms = budget_ms
        self._index_cache = indexes or IndexCache()
        read_models.purges.listen(process=lambda _: self._index_cache.drop_removed())
        self._namespace_search = NamespaceSearch(reranker)
        self._trace_ids = TraceIds()

    def size_bytes(self) -> dict[str, int]:
        """Return the memory of the indexes and caches of retrievals, by part."""
        return self._index_cache.size_bytes() | self._current_vectors().size_bytes()

    def prepare(self, vectors: Vectors) -> None:
        """Compute what retrievals need once for the model of `vectors`, which must be ready."""
        self._namespace_search.background.prepare(vectors)
        load_models(vectors.embedder.name)

    def retrieve(
        self, namespace: str, request: RetrieveRequest, *, exclude: Sequence[str] = (), notes: Sequence[str] = ()
    ) -> RetrieveResult:
        """Return the memories of `namespace` for `request`, and the context for the prompt.

        Parameters:
            exclude: ids of episodes to leave out, such as the message that is the query.
            notes: lines for the context about the turn itself.

        Raises:
            InvalidNamespace: the name is not allowed.
            InvalidInput: `as_of` names a version or a time outside the history of the namespace.
            No query raises any other error.
        """
        check_namespace(namespace)
        with memory_span("search_memory", namespace) as span:
            budget = TimeBudget(self._budget_ms)
            with answers_by(budget.deadline):
                result = self._result(_Answer(notes=tuple(notes)), namespace, request, budget, exclude)
            record_recall(budget, len(result.items))
            trace_recall(span, budget, request.query, [item.id for item in result.items], result.trace_id)
            return result

    def _result(
        self, answer: _Answer, namespace: str, request: RetrieveRequest, budget: TimeBudget, exclude: Sequence[str]
    ) -> RetrieveResult:
        """Return the result of `retrieve`, which is one without items after an error."""
        try:
            self._run_stages(answer, namespace, request, budget, exclude)
        except InvalidInput:
            raise
        except StillBuilding as error:
            budget.record_missing("projection", error)
        except (RecollectError, DatabaseError) as error:
            _logger.warning("namespace %.12s cannot be read", folder_name(namespace), exc_info=True)
            budget.record_missing("projection", error)
        except Exception as error:
            # A bot's turn must not fail because of its memory (`001`); `degraded` and the log name the error.
            _logger.exception("a retrieval from namespace %.12s failed by an internal error", folder_name(namespace))
            budget.record_missing("retrieval", error)
        if self._on_degraded is not None and request.as_of is None and budget.is_behind:
            for name in (namespace, *request.also):
                self._on_degraded(name)
        return RetrieveResult(
            context=answer.context,
            items=answer.items,
            tokens=estimate_tokens(answer.context),
            latency_ms=budget.spent_ms,
            degraded=tuple(dict.fromkeys(budget.degraded)),
            reason=shared_reason(answer.results),
            trace_id=self._trace_ids.next(),
            version=answer.version,
            trigger=answer.state.trigger,
            answer=answer.guidance,
            stages_ms=budget.stages_ms,
            explain=lambda: explanation(answer.results, answer.selected, answer.lines, answer.items),
        )

    def rank(
        self,
        namespace: str,
        request: RetrieveRequest,
        read: Callable[[RankedEpisodes], _Read],
        excluded: Sequence[int] = (),
    ) -> _Read | None:
        """Return what `read` returns of the ranked episodes, to fit weights to; None without candidates."""
        budget = TimeBudget(self._budget_ms)
        with self._snapshot(namespace, None, budget) as snapshot:
            context = self._search_context(namespace, request, snapshot, budget)
            if context is None:
                raise StillBuilding(f"the read model of namespace {namespace!r} was not ready in time")
            ranked = self._namespace_search.episodes.search(for_asker(context), request.ranking, excluded)
            return None if ranked is None else read(ranked)

    def close(self) -> None:
        """Wait for running searches, then stop their threads."""
        self._namespace_search.close()

    def _run_stages(
        self, answer: _Answer, namespace: str, request: RetrieveRequest, budget: TimeBudget, exclude: Sequence[str]
    ) -> None:
        """Run the stages and fill `answer`; after an error, `answer` keeps the results of the earlier stages."""
        past_version = None if request.as_of is None else self._history.version(namespace, request.as_of)
        as_of = None if past_version is None else self._as_of_time(namespace, request, past_version)
        answer.version = past_version or 0
        with self._snapshot(namespace, past_version, budget) as snapshot:
            answer.version = snapshot.version
            context = self._search_context(namespace, request, snapshot, budget, as_of)
            if context is None:
                return
            context = for_asker(context)
            if request.mode == "passive":
                message_vector = self._namespace_search.episodes.query_vector(context)
                answer.state = conversation_state(context, message_vector, exclude)
                if answer.state.silent:
                    answer.results = (SearchResult(context, (), 0.0, None, ()),)
                    if answer.notes:
                        self._assemble(answer, context, answer.results, ())
                    return
                request = adjusted_request(request, answer.state)
                # An entity that only the message and the visible turns name is nothing that memory knows.
                query = replace(context.query, entities=answer.state.entities)
                context = replace(context, request=request, query=query)
            results = [self._search(context, answer.state.visible)]
            other_namespaces = [name for name in dict.fromkeys(request.also) if name != namespace]
            results += [
                result
                for name in other_namespaces
                if (result := self._search_other_namespace(name, context, as_of)) is not None
            ]
            if answer.state.by_vector and budget.failed("semantic"):
                # The topic was compared by a vector, but the search has none: the trigger must match the search.
                answer.state = replace(answer.state, trigger="message")
            # Workers may have learned something from the message before this search.
            if exclude:
                results = [replace(result, items=without_sources(result.items, exclude)) for result in results]
            answer.results = tuple(results)
            helps = answer.state.greets or any(result.helps for result in results)
            standing = standing_items(context, answer.state, helps=helps) if request.mode == "passive" else []
            self._assemble(answer, context, results, without_sources(standing, exclude))

    def _as_of_time(self, namespace: str, request: RetrieveRequest, version: int) -> datetime:
        """Return the time that `as_of` names: as requested, or when the event `version` was recorded."""
        if isinstance(request.as_of, datetime):
            return request.as_of
        events = self._read_models.log.read(namespace, after=version - 1, limit=1) if version else []
        return datetime_of(events[0].recorded_at_us if events else 0)

    @contextmanager
    def _snapshot(self, namespace: str, past_version: int | None, budget: TimeBudget) -> Generator[Snapshot]:
        """Yield the read model at `past_version`; the current one, caught up with the log, for None."""
        deadline = budget.started + self._budget_ms / 1_000 * _CATCH_UP_SHARE
        if past_version is None:
            has_events = self._catch_up(namespace, budget, deadline)
            with self._read_models.reading(namespace, has_events=has_events) as snapshot:
                yield snapshot
        else:
            with self._history.reading(namespace, past_version, deadline=deadline) as snapshot:
                budget.end_stage("catch_up", 0.0)
                yield snapshot

    def _catch_up(self, namespace: str, budget: TimeBudget, deadline: float) -> bool:
        """Apply the new events of the log until `deadline`, and record missing ones; return whether it has events."""
        started_ms = budget.spent_ms
        try:
            progress = self._read_models.catch_up(namespace, deadline=deadline)
        except StorageError as error:
            # Such as a full disk. The events that were applied before can still be read.
            budget.record_missing("projection", error)
            return False
        finally:
            budget.end_stage("catch_up", started_ms)
        if progress.parked is not None:
            budget.record_missing("projection", f"parked at version {progress.parked.version}: {progress.parked.error}")
        elif progress.behind:
            budget.record_missing("projection", f"{progress.behind} of {progress.head} events {BEHIND_SUFFIX}")
        return progress.head > 0

    def _search_context(
        self,
        namespace: str,
        request: RetrieveRequest,
        snapshot: Snapshot,
        budget: TimeBudget,
        as_of: datetime | None = None,
        asker_zone: tzinfo | None = None,
    ) -> SearchContext | None:
        """Return the search context with the understood query; None, and a note, without the in-memory index.

        Parameters:
            as_of: the time that the request is asked as of; None for the present.
            asker_zone: the zone of the asker, when another namespace says it.
        """
        zone = zone_named(request.timezone or "") or asker_zone or snapshot.days.of_user(request.speaker)
        asked_at = question_time(as_of, request.until, zone, self._clock)
        started_ms = budget.spent_ms
        vectors, episodes = self._current_vectors(), self._namespace_search.episodes
        question = read_question(request.query, snapshot, session_id=request.session_id)
        # The model reads the query while the rest of it is understood, and the keywords are searched.
        is_embedded = bool(snapshot.version) and request.ranking != "keyword"
        embedding = episodes.start_embedding(question.text, vectors, budget) if is_embedded else None
        query = understand(question, snapshot, asked_at=asked_at)
        budget.end_stage("understand", started_ms)
        index = budget.run("memory", snapshot, lambda: self._index_cache.get(snapshot))
        if index is None:
            return None
        return SearchContext(
            namespace,
            request,
            snapshot,
            index,
            query,
            asked_at,
            vectors,
            embedding,
            self._read_models.log,
            budget,
            self._settings,
        )

    def _search(self, context: SearchContext, excluded: Sequence[int]) -> SearchResult:
        """Return the search result of one namespace without the versions `excluded`, with sources when requested."""
        result = self._namespace_search.search(context, excluded)
        items = without_rules_of_others(context, without_hidden(result.items, context.hidden))
        if waiting := context.snapshot.quarantine.documents():
            items = [without_orders(item, waiting) for item in items]
        if context.request.expand:
            try:
                expanded = expand_summaries(items, context.snapshot, context.log, context.namespace)
                items = without_hidden(expanded, context.hidden)
            except StorageError as error:
                context.budget.record_missing("sources", error)
        return replace(result, items=items)

    def _search_other_namespace(
        self, namespace: str, own: SearchContext, as_of: datetime | None
    ) -> SearchResult | None:
        """Return the search result of another namespace; None, and a note, when it cannot be read in time.

        Its standing instructions are left out: only the namespace of the request sets the bot's behaviour. Its
        pinned memories are returned when the query finds them, as any others.

        Parameters:
            own: the search of the request's namespace.
            as_of: the time whose version is searched; None for the present version.
        """
        request, budget = own.request, own.budget
        if budget.left_seconds == 0:
            budget.record_missing(f"also {namespace}", "out of time")
            return None
        try:
            past_version = None if as_of is None else self._history.version(namespace, as_of)
            with self._snapshot(namespace, past_version, budget) as snapshot:
                context = self._search_context(namespace, request, snapshot, budget, as_of, own.asked_at.tzinfo)
                if context is not None:
                    return without_standing(context, self._search(for_asker(context, is_own=False), ()))
                return None
        except (RecollectError, DatabaseError) as error:
            budget.record_missing(f"also {namespace}", error)
            return None

    def _assemble(
        self, answer: _Answer, context: SearchContext, results: Sequence[SearchResult], standing: Sequence[Item]
    ) -> None:
        """Merge the results with the `standing` items of every turn, fit them to the token budget, and render them."""
        started_ms = context.budget.spent_ms
        request, ranked = context.request, [item for result in results for item in result.items]
        if len(results) > 1:
            ranked.sort(key=lambda item: -item.score)
        ranked = ranked[: request.limit]
        ranked_ids = {(item.namespace, item.id) for item in ranked}
        owners = SecretOwners(context)
        secret_filter = SecretFilter(self._privacy.policies(context.namespace), request.query, owns=owners.owns)
        others = [item for item in standing if (item.namespace, item.id) not in ranked_ids]
        candidates, repetitions = without_repetitions([*ranked, *others])
        if repetitions:
            answer.results = (replace(results[0], dropped=[*results[0].dropped, *repetitions]), *results[1:])
        items = secret_filter.items([cut_long_text(item, context.query.words) for item in candidates])
        answer.selected = tuple(items)
        rendering = RenderContext(now=context.asked_at, channel=answer.state.channel, dates=named_dates(context, items))
        line_tokens_max = PASSIVE_LINE_TOKENS if request.mode == "passive" else None
        words, tokens = context.query.words, request.budget_tokens
        lines = fit_to_budget(items, tokens, words, rendering, line_tokens_max=line_tokens_max)
        about_turn = (*answer.notes, *answer.state.observations)
        observations = [secret_filter.text(line, is_own=lambda: owners.is_alone) for line in about_turn]
        contents = [*(line.text for line in lines), *observations]
        part = random_part(self._fence_key, context.namespace, request.session_id, contents)
        rendering = replace(rendering, random_part=part)
        lines, answer.context = render_within_budget(lines, observations, request.format, tokens, rendering)
        line_items = {id(line.item) for line in lines}
        answer.lines = tuple(lines)
        answer.items = tuple(item for item in items if id(item) in line_items)
        cited = [item for item in answer.items if (item.namespace, item.id) in ranked_ids]
        answer.guidance = answer_guidance(context, cited, max((result.grounding for result in results), default=0.0))
        context.budget.end_stage("assemble", started_ms)
