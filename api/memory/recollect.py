"""Recollect: the memory in a data folder, as a Python object."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Self, Unpack, cast

from recollect.api.as_of import AsOf, parse_as_of, parse_past_us
from recollect.api.assembly.memory_parts import MemoryParts, closed_parts, open_parts
from recollect.api.assembly.read_model_access import reading
from recollect.api.knowledge_types import PreferenceValue
from recollect.api.memory.answer_judging import AnswerJudging
from recollect.api.memory.append_telemetry import note_appended, operation_of
from recollect.api.memory.embedding_wait import EmbeddingWait
from recollect.api.memory.forget_answer import forget_answer, with_forgotten
from recollect.api.memory.memory_editing import MemoryEditing
from recollect.api.memory.memory_erasing import MemoryErasing
from recollect.api.memory.memory_following import MemoryFollowing
from recollect.api.memory.memory_lists import MemoryLists
from recollect.api.memory.memory_rereading import MemoryRereading
from recollect.api.memory.memory_review import MemoryReview
from recollect.api.memory.references import check_references
from recollect.api.memory.subject_export import SubjectExporting
from recollect.api.memory.turn import Turns
from recollect.api.operations.model_change import change_model, embed_missing, undo_change, wait_for_model
from recollect.api.pages.entity_map import entity_neighbourhood
from recollect.api.pages.list_pages import (
    PAGE_ITEMS,
    checked_limit,
    list_events,
    list_fact_history,
    list_namespaces,
    list_preference_history,
)
from recollect.api.result_types import EventItem, FactValue, NamespaceItem, Neighbourhood, Page, Trace, TraceSummary
from recollect.api.retrieval.answer.expansion import read_sources
from recollect.api.retrieval.answer.trace_store import find_trace, list_traces, unknown_trace
from recollect.api.retrieval.append_retrieval import turn_request
from recollect.api.retrieval.contract.options import RetrieveOptions, TurnOptions
from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.api.retrieval.contract.result import RetrieveResult, Source
from recollect.api.retrieval.understanding.query import utc_now
from recollect.api.retrieval.understanding.question_extraction import extract_question
from recollect.api.retrieval.understanding.question_intent import asks_for_several
from recollect.api.settings import Settings, load_settings
from recollect.events.backends.log import each_head
from recollect.events.catalogue import Envelope
from recollect.events.envelope import Appended, EventDraft
from recollect.events.errors import InvalidInput
from recollect.events.intake.screening import screen_text
from recollect.events.integrity.verify import VerifyResult, verify
from recollect.events.limits import check_namespace
from recollect.events.progress import OnPartProgress, no_progress
from recollect.events.tracing import memory_span
from recollect.events.validation import producer_drafts
from recollect.jobs.conversation.window import Window, fit_window
from recollect.jobs.queue.nightly import Compaction, compact_steps, preview
from recollect.jobs.queue.settle import settle
from recollect.jobs.queue.settle_result import SettleResult
from recollect.projections.queries.queried_episodes import TierTotals
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.read_models.replays import ReplayCheck

#: An event, as a mapping in the shape of the catalogue or as an instance of it.
Event = Mapping[str, Any] | Envelope

#: Smallest and largest budget of a window, in tokens; language models have contexts of up to a million.
WINDOW_TOKENS_MIN = 64
WINDOW_TOKENS_MAX = 1_000_000


class Recollect(
    MemoryLists,
    MemoryEditing,
    MemoryErasing,
    MemoryFollowing,
    MemoryRereading,
    MemoryReview,
    AnswerJudging,
    SubjectExporting,
    Turns,
):
    """The memory in a data folder. Safe to use from many threads; use it with ``with``, or call `close`.

    >>> with Recollect("./recollect-data") as memory:
    ...     memory.append("ann", {"type": "message.added", "payload": {"role": "user", "text": "I love tea"}})
    ...     print(memory.retrieve("ann", "what does she drink?").context)

    Parameters:
        data: the data folder; that of `settings` when None.
        settings: all other settings; from the environment when None.
        workers: run worker threads, which embed and extract in the background. Without them, a retrieval embeds new
            messages itself, and nothing is extracted.
        schedule: run the scheduler, which starts the nightly jobs; with the workers when None.
        clock: the present time of retrievals that give none; jobs and the log use the system's clock.

    Raises:
        InvalidInput: a setting is wrong. StorageError: the folder or the log cannot be used; `LogMissing` when the
            log that the folder was derived from is missing.
        All methods raise InvalidNamespace for a wrong name, and StorageError when the disk fails. Those that take the
        id of a memory raise NotFound when no memory has it, and those that append raise the errors of `append`.
    """

    def __init__(
        self,
        data: Path | str | None = None,
        *,
        settings: Settings | None = None,
        workers: bool = True,
        schedule: bool | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        if "://" in str(data):
            raise InvalidInput("give a folder; a server is reached by recollect.Client", field="data")
        if settings is None:
            settings = load_settings() if data is None else load_settings(data=Path(data))
        elif data is not None:
            storage = settings.storage.model_copy(update={"data": Path(data)})
            settings = settings.model_copy(update={"storage": storage})
        #: The components that work on the folder; see `MemoryParts`.
        self.parts: MemoryParts = open_parts(settings, workers=workers, schedule=schedule, clock=clock)
        #: Waits for the model before a retrieval.
        self.embedding_wait = EmbeddingWait(self.parts)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def append(
        self, namespace: str, events: Event | Sequence[Event], *, expected_version: int | None = None
    ) -> list[Appended]:
        """Append one event, or a batch all or none; return the version of each once they are on disk.

        Raises:
            InvalidEvent: an event does not fit the catalogue, or only jobs may record it. TooLarge: over a limit.
            NotSupported: this version does not apply events of this type.
            NotFound: a memory that an event names by id does not exist.
            EventIdConflict: an id is taken by other content. VersionConflict: the head is not `expected_version`.
        """
        return self.append_drafts(namespace, producer_drafts(listed(events)), expected_version=expected_version)

    def append_drafts(
        self, namespace: str, validated: Sequence[EventDraft], *, expected_version: int | None = None
    ) -> list[Appended]:
        """Append validated events after their screening; errors are those of `append` after validation."""
        return self._append(namespace, self.parts.screened(namespace, validated), expected_version)

    def retrieve(
        self, namespace: str, query: str | RetrieveRequest, *, wait: bool = True, **options: Unpack[RetrieveOptions]
    ) -> RetrieveResult:
        """Return the memories for `query`, best first, and a context for the prompt.

        Parameters:
            wait: whether to wait for the embedding model, at most `retrieval.model_wait_seconds` in a process, and to
                embed new messages first; without waiting, `degraded` names what is missing.
            options: the other fields of `RetrieveRequest`, such as ``limit=5``, or ``as_of=`` a version or an aware
                time: the answer as of then.

        Raises:
            InvalidInput: an option is wrong, or `as_of` lies in the future. Other failures are reported in `degraded`.
        """
        check_namespace(namespace)
        request = query if isinstance(query, RetrieveRequest) else RetrieveRequest.checked({"query": query, **options})
        if wait:
            # A read model of the past has no new messages.
            self.embedding_wait.wait(() if request.as_of is not None else (namespace, *request.also))
        return self._retrieve(namespace, request)

    def append_and_retrieve(
        self,
        namespace: str,
        events: Event | Sequence[Event],
        *,
        expected_version: int | None = None,
        wait: bool = True,
        **options: Unpack[TurnOptions],
    ) -> tuple[list[Appended], RetrieveResult | None]:
        """Append events and return the memories for the last message among them, in one call for one turn of a bot.

        The retrieval is passive: its query is the text of the message, its session that of the message.

        Parameters:
            wait: as in `retrieve`.
            options: other fields of `RetrieveRequest`, such as ``budget_tokens=1_000``; with ``no_store=True``
                nothing is appended.

        Returns:
            the appended events; the retrieval, None when none of them is a message.

        Raises:
            InvalidInput: an option is wrong; no event is appended then.
        """
        screened = self.parts.screened(check_namespace(namespace), producer_drafts(listed(events)))
        request = turn_request(screened, options)
        if wait and request is not None:
            # Before the append, so that workers learn nothing from the message before its memories are searched.
            self.embedding_wait.wait((namespace, *request.also))
        recorded = [] if options.get("no_store") else self._append(namespace, screened, expected_version)
        return recorded, None if request is None else self.retrieve_for(namespace, request, recorded)

    def retrieve_for(self, namespace: str, request: RetrieveRequest, recorded: Sequence[Appended]) -> RetrieveResult:
        """Return the memories for a turn that was just appended, without the turn itself. It does not wait."""
        return self._retrieve(namespace, request, exclude=[event.id for event in recorded])

    def trace(self, namespace: str, trace_id: str) -> Trace:
        """Return the trace of a retrieval: candidates, features, gate, budget, and the reason of every drop.

        Raises:
            NotFound: no such trace is stored; old traces are removed for new ones.
        """
        self.parts.trace_store.flush()
        trace = find_trace(self.parts.settings.storage.data / "traces", check_namespace(namespace), trace_id)
        if trace is None:
            raise unknown_trace()
        return cast("Trace", trace)

    def traces(self, namespace: str, *, after: str = "", limit: int = PAGE_ITEMS) -> Page[TraceSummary]:
        """Return a page of the latest retrievals, newest first; `after` is the last trace id of the page before."""
        check_namespace(namespace)
        self.parts.trace_store.flush()
        folder = self.parts.settings.storage.data / "traces"
        items = cast("list[TraceSummary]", list_traces(folder, namespace, after, checked_limit(limit)))
        return {"items": items, "next": items[-1]["trace_id"] if len(items) == limit else None}

    def events(self, namespace: str, *, after: int = 0, limit: int = PAGE_ITEMS, as_of: AsOf = None) -> Page[EventItem]:
        """Return a page of the log: events with versions over `after`, recorded up to `as_of`."""
        check_namespace(namespace)
        return list_events(self.parts.log, namespace, str(after), limit, self.version(namespace, as_of))

    def fact_history(self, namespace: str, fact_id: str, *, as_of: AsOf = None) -> Page[FactValue]:
        """Return the values that held in turn with a fact, oldest first, each with its validity and status.

        Raises:
            NotFound: there is no such fact; other errors are those of `list`.
        """
        with self._reading(namespace, as_of) as snapshot:
            return list_fact_history(snapshot, fact_id)

    def preference_history(self, namespace: str, preference_id: str, *, as_of: AsOf = None) -> Page[PreferenceValue]:
        """Return the values that held in turn of a preference, oldest first, each with its validity and status.

        Raises:
            NotFound: there is no such preference; other errors are those of `list`.
        """
        with self._reading(namespace, as_of) as snapshot:
            return list_preference_history(snapshot, preference_id)

    def graph(self, namespace: str, entity: str, *, depth: int = 2, as_of: AsOf = None) -> Neighbourhood:
        """Return the entities and documents within `depth` steps (1 to 5) of an entity; errors are those of `list`."""
        with self._reading(namespace, as_of) as snapshot:
            return entity_neighbourhood(snapshot, entity, depth)

    def namespaces(self, *, after: str = "", limit: int = PAGE_ITEMS) -> Page[NamespaceItem]:
        """Return a page of namespaces with their heads, by name."""
        return list_namespaces(self.parts.log, after, limit)

    def version(self, namespace: str, as_of: AsOf) -> int | None:
        """Return the version of `as_of`: the last one recorded by then, 0 before the first event; None for None.

        Raises:
            InvalidInput: it is neither a version nor a time, or lies in the future.
        """
        moment = parse_as_of(as_of)
        return None if moment is None else self.parts.history.version(check_namespace(namespace), moment)

    def compact(
        self,
        namespace: str,
        *,
        now: datetime | str | None = None,
        dry_run: bool = False,
        on_progress: OnPartProgress = no_progress,
    ) -> Compaction:
        """Run the nightly jobs on `namespace`; return the number of appended events by step, and the tiers.

        Parameters:
            now: the time that is compared with due times, aware or as text; the present when None.
            dry_run: append nothing, and return what the same call without `dry_run` would append. A language model is
                not asked; the counts are those of summaries and extractions by rules.
            on_progress: called with (name of the step, steps done, steps) before each step.

        Raises:
            InvalidInput: `now` is not a time, or lies in the future.
        """
        now_us = parse_past_us(now, field="now")
        run = preview if dry_run else compact_steps
        return run(self.parts.job_context, check_namespace(namespace), now_us, on_progress)

    def settle(
        self, namespace: str, *, timeout_seconds: float | None = None, now: datetime | str | None = None
    ) -> SettleResult:
        """Complete the background work on `namespace` in this thread: catch up, extract, observe, embed.

        It waits until the embedding model is loaded. Afterwards the memory is as the workers leave it at `now`:
        messages that a job defers until more messages follow are still deferred.

        Parameters:
            timeout_seconds: the time after which no further step begins; a step that has begun is completed. None: it
                takes as long as the work.
            now: the present time of the jobs, aware or as text; the system's when None.

        Returns:
            whether the namespace is settled, and otherwise what is missing, in `missing`.

        Raises:
            InvalidInput: `now` is not a time, or lies in the future; `timeout_seconds` is negative; or the model cannot
            be loaded. ProjectionFailed: the namespace is parked. NotSettled: other callers keep appending.
        """
        now_us = parse_past_us(now, field="now")
        if timeout_seconds is not None and not timeout_seconds >= 0:
            raise InvalidInput("give a number of seconds from 0", field="timeout_seconds")
        deadline = math.inf if timeout_seconds is None else time.monotonic() + timeout_seconds
        check_namespace(namespace)
        return settle(self.parts.job_context, self.parts.backlog, namespace, now_us, deadline=deadline)

    def window(self, namespace: str, session_id: str, *, budget_tokens: int) -> Window:
        """Fit a running conversation to a token budget. When nearly full, its oldest turns are summarised for good.

        Raises:
            InvalidInput: the budget is not from 64 to 1,000,000.
        """
        if not WINDOW_TOKENS_MIN <= budget_tokens <= WINDOW_TOKENS_MAX:
            raise InvalidInput(
                f"give a number from {WINDOW_TOKENS_MIN} to {WINDOW_TOKENS_MAX:,}", field="budget_tokens"
            )
        return fit_window(self.parts.job_context, check_namespace(namespace), session_id, budget_tokens)

    def tiers(self, namespace: str) -> dict[str, TierTotals]:
        """Return how many episodes and tokens the memory holds, by tier."""
        with self._reading(namespace) as snapshot:
            return snapshot.episodes.tier_totals()

    def sources(self, namespace: str, episode_id: str) -> list[Source]:
        """Return the original messages of a summary, in order, expired or not; an empty list if it is no summary."""
        with self._reading(namespace) as snapshot:
            return [*read_sources(episode_id, snapshot, self.parts.log, namespace)]

    def replay(self, namespace: str, *, parks: bool = False) -> int:
        """Rebuild the read model of `namespace` from the log; return the number of events applied.

        Raises:
            ProjectionFailed: an event cannot be projected; the read model in use stays. With `parks`, the new one is
                used and parked there, in place of the error.
        """
        return self.parts.read_models.replay(check_namespace(namespace), parks=parks)

    def check(self, namespace: str) -> ReplayCheck:
        """Rebuild the read model in a second file and compare it with the one in use."""
        return self.parts.read_models.check(check_namespace(namespace))

    def verify(self, namespace: str) -> VerifyResult:
        """Recompute the hash chain of `namespace` and compare it with what is stored."""
        return verify(self.parts.log, check_namespace(namespace))

    def embed(
        self, model: str | None = None, *, namespace: str | None = None, on_progress: OnPartProgress = no_progress
    ) -> int:
        """Embed episodes without vectors, with the embedding model in use or another; return how many episodes.

        With `model`, every namespace is embedded with it while every process keeps using the vectors of the old model.
        Then this process changes to the new vectors at once, other processes as soon as they have loaded the model.
        A call after an interrupted one continues its work.

        Parameters:
            model: a name or a path; the model in use when None.
            namespace: embed only this namespace; not allowed with `model`, which is changed for all.
            on_progress: called with (name of the step, done, total) after each batch.

        Raises:
            InvalidInput: the model cannot be loaded; nothing has changed. FolderInUse: another process changes it.
        """
        if model is None:
            vectors = self.parts.active_model.vectors()
            wait_for_model(vectors.embedder, on_progress)
            names = (head.namespace for head in each_head(self.parts.log))
            namespaces = names if namespace is None else [check_namespace(namespace)]
            return embed_missing(self.parts.read_models, vectors, namespaces, on_progress)
        if namespace is not None:
            raise InvalidInput("a model is changed for all namespaces; leave it out", field="namespace")
        return change_model(
            self.parts.settings.storage.data,
            self.parts.log,
            self.parts.read_models,
            self.parts.active_model,
            model,
            on_progress,
        )

    def undo_embed(self) -> str:
        """Return to the embedding model before the last change, whose vectors are kept; return its name.

        Events appended since have no vectors of that model yet: workers, or `embed`, compute them.

        Raises:
            InvalidInput: the model was never changed, or its files have changed; nothing has changed.
            FolderInUse: another process changes the model.
        """
        return undo_change(self.parts.settings.storage.data)

    def close(self) -> None:
        """Finish running work and release the files; later calls raise `MemoryClosed`. A second call does nothing."""
        self.parts = closed_parts(self.parts)
        self.embedding_wait = EmbeddingWait(self.parts)

    @contextmanager
    def _reading(self, namespace: str, as_of: AsOf = None) -> Generator[Snapshot]:
        """Open the read model: caught up with the log, or as of a past version."""
        with reading(self.parts, namespace, as_of) as snapshot:
            yield snapshot

    def _append(self, namespace: str, screened: Sequence[EventDraft], expected: int | None) -> list[Appended]:
        """Append screened events; errors are those of `append_drafts`."""
        with memory_span(operation_of(screened), namespace) as span:
            prepared = self.parts.prepared(namespace, screened)
            check_references(self.parts.log, self.parts.read_models, namespace, screened)
            recorded = self.parts.log.append(namespace, prepared, expected_version=expected)
            own = with_forgotten(recorded, prepared, len(screened))
            note_appended(span, own)
            return own

    def _retrieve(self, namespace: str, request: RetrieveRequest, *, exclude: Sequence[str] = ()) -> RetrieveResult:
        self.parts.vectors.embedder.start()
        if self.parts.reranker is not None:
            self.parts.reranker.start()
        several = asks_for_several(extract_question(request.query))
        request = request.with_defaults(self.parts.settings.retrieval, asks_for_several=several)
        # The trace keeps the query, and the words that were understood of it.
        query = screen_text(request.query, self.parts.settings.privacy.policies(namespace))
        request = request if query == request.query else request.model_copy(update={"query": query})
        turn = forget_answer(self.parts, namespace, request, exclude)
        result = turn.added_to(self.parts.retriever.retrieve(namespace, request, exclude=exclude, notes=turn.notes))
        self.parts.recall_echoes.add(namespace, request.session_id, result.items)
        if not request.no_store:
            self.parts.trace_store.add(namespace, request, result)
        return result


def listed(events: Event | Sequence[Event]) -> Sequence[Event]:
    """Return `events` as a sequence; a single event becomes a sequence of one."""
    return [events] if isinstance(events, Mapping | Envelope) else events
