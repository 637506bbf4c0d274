"""Recollect in process: the memory as a Python object."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from recollect.api.as_of import AsOf, parse_as_of, parse_past_us
from recollect.api.assembly.memory_parts import open_parts
from recollect.api.memory.references import check_references, has_references
from recollect.api.operations.model_change import change_model, embed_missing, no_progress, undo_change, wait_for_model
from recollect.api.pages.entity_neighbourhood import entity_neighbourhood
from recollect.api.pages.list_pages import PAGE_ITEMS, Page, checked_limit, list_events, list_namespaces, list_rows
from recollect.api.retrieval.answer.expansion import read_sources
from recollect.api.retrieval.answer.trace_store import find_trace, list_traces
from recollect.api.retrieval.append_retrieval import turn_request
from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.api.retrieval.contract.result import RetrieveResult, Source
from recollect.api.retrieval.understanding.query import present
from recollect.api.settings import Settings, load_settings
from recollect.events.backends.log import each_head
from recollect.events.catalogue import Envelope
from recollect.events.envelope import Appended, EventDraft
from recollect.events.errors import InvalidInput, NotFound, first_problem
from recollect.events.integrity.verify import VerifyResult, verify
from recollect.events.limits import check_namespace
from recollect.events.progress import OnPartProgress
from recollect.events.validation import producer_drafts
from recollect.jobs.conversation.window import Window, fit_window
from recollect.jobs.queue.nightly import Compaction, compact_steps, preview
from recollect.jobs.queue.settling import settle
from recollect.projections.queries.episode_queries import TierTotals
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.read_models.read_models import ReplayCheck

#: An event, as a mapping in the shape of the catalogue or as an instance of it.
Event = Mapping[str, Any] | Envelope


#: What a window can be fitted to, in tokens.
WINDOW_TOKENS_MIN = 64
WINDOW_TOKENS_MAX = 1_000_000


class Recollect:
    """The memory in a data folder. Safe to use from many threads; use it with ``with``, or call `close`.

    >>> with Recollect("./recollect-data") as memory:
    ...     memory.append("ann", {"type": "message.added", "payload": {"role": "user", "text": "I love tea"}})
    ...     print(memory.retrieve("ann", "what does she drink?").context)

    Parameters:
        data: the data folder; the one of `settings` when None.
        settings: everything else; from the environment when None.
        workers: run worker threads, which embed and extract in the background. Without them an event is found in the
            very next call just the same, by its words.
        schedule: run the scheduler, which begins the nightly work; with the workers when None.
        clock: the present time of questions that name no other; jobs and the log have the system's.

    Raises:
        InvalidInput: a setting is wrong. StorageError: the folder or the log cannot be used; `LogMissing` when
            the folder was made from a log that is not there.
    """

    def __init__(
        self,
        data: Path | str | None = None,
        *,
        settings: Settings | None = None,
        workers: bool = True,
        schedule: bool | None = None,
        clock: Callable[[], datetime] = present,
    ) -> None:
        if settings is None:
            settings = load_settings() if data is None else load_settings(data=Path(data))
        elif data is not None:
            storage = settings.storage.model_copy(update={"data": Path(data)})
            settings = settings.model_copy(update={"storage": storage})
        #: Everything that works on the folder; see `MemoryParts`.
        self.parts = open_parts(settings, workers=workers, schedule=schedule, clock=clock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def append(
        self, namespace: str, events: Event | Sequence[Event], *, expected_version: int | None = None
    ) -> list[Appended]:
        """Record one event or a batch, all or none, and return where each one is once they are on disk.

        Raises:
            InvalidEvent: an event does not fit the catalogue, or only jobs may record it. TooLarge: over a limit.
            NotSupported: nothing acts on an event of this type yet. InvalidNamespace: the name.
            NotFound: a memory that an event names by id is not there.
            EventIdConflict: an id is taken by other content. VersionConflict: the head is not `expected_version`.
            StorageError: the disk failed.
        """
        return self.append_drafts(namespace, producer_drafts(listed(events)), expected_version=expected_version)

    def append_drafts(
        self, namespace: str, validated: Sequence[EventDraft], *, expected_version: int | None = None
    ) -> list[Appended]:
        """Do what `append` does with events that were validated already."""
        if has_references(validated):
            check_references(self.parts.log, self.parts.read_models, namespace, validated)
        return self.parts.log.append(namespace, validated, expected_version=expected_version)

    def retrieve(self, namespace: str, query: str | RetrieveRequest, **options: Any) -> RetrieveResult:
        """Return what the memory has for `query`.

        Parameters:
            options: the other fields of `RetrieveRequest`, such as ``limit=5``, or ``as_of=`` a version or an aware
                time: what the memory would have answered then.

        Raises:
            InvalidInput: an option is wrong, or `as_of` is not there yet. InvalidNamespace: the name. Nothing else.
        """
        check_namespace(namespace)
        request = query if isinstance(query, RetrieveRequest) else _request({"query": query, **options})
        return self._traced(namespace, request)

    def append_and_retrieve(
        self, namespace: str, events: Event | Sequence[Event], *, expected_version: int | None = None, **options: Any
    ) -> tuple[list[Appended], RetrieveResult | None]:
        """Record events, and return what belongs to the last message among them: in one call for one turn of a bot.

        The retrieval is a passive one: its query is the message, its session the message's.

        Parameters:
            options: other fields of `RetrieveRequest`, such as ``budget_tokens=1_000``.

        Returns:
            where the events are; the retrieval, None when none of them is a message.

        Raises:
            what `append` raises, before anything is recorded; InvalidInput: an option is wrong, likewise.
        """
        made = producer_drafts(listed(events))
        asked = turn_request(made, options)
        recorded = self.append_drafts(namespace, made, expected_version=expected_version)
        return recorded, None if asked is None else self.retrieve_for(namespace, asked, recorded)

    def retrieve_for(self, namespace: str, request: RetrieveRequest, recorded: Sequence[Appended]) -> RetrieveResult:
        """Return what belongs to a turn that was just recorded; the turn itself is not among it."""
        return self._traced(namespace, request, exclude=[one.id for one in recorded])

    def trace(self, namespace: str, trace_id: str) -> dict[str, Any]:
        """Return how a retrieval came about.

        Raises:
            NotFound: there is no such trace, or it has given way to newer ones. InvalidNamespace: the name.
        """
        self.parts.trace_store.flush()
        found = find_trace(self.parts.settings.storage.data / "traces", check_namespace(namespace), trace_id)
        if found is None:
            raise NotFound("there is no such trace here; old ones give way to new ones", field="trace_id")
        return found

    def traces(self, namespace: str, *, after: str = "", limit: int = PAGE_ITEMS) -> Page:
        """Return a page of the latest retrievals, newest first; `after` is the id of the last one before."""
        check_namespace(namespace)
        self.parts.trace_store.flush()
        items = list_traces(self.parts.settings.storage.data / "traces", namespace, after, checked_limit(limit))
        return {"items": items, "next": items[-1]["trace_id"] if len(items) == limit else None}

    def events(self, namespace: str, *, after: int = 0, limit: int = PAGE_ITEMS, as_of: AsOf = None) -> Page:
        """Return a page of the log: events with versions over `after`, recorded up to `as_of`."""
        check_namespace(namespace)
        return list_events(self.parts.log, namespace, str(after), limit, self.version(namespace, as_of))

    def episodes(self, namespace: str, *, after: str = "", limit: int = PAGE_ITEMS, as_of: AsOf = None) -> Page:
        """Return a page of episodes, in the order of the log."""
        return self.list(namespace, "episodes", after=after, limit=limit, as_of=as_of)

    def sessions(self, namespace: str, *, after: str = "", limit: int = PAGE_ITEMS, as_of: AsOf = None) -> Page:
        """Return a page of sessions, by id."""
        return self.list(namespace, "sessions", after=after, limit=limit, as_of=as_of)

    def entities(self, namespace: str, *, after: str = "", limit: int = PAGE_ITEMS, as_of: AsOf = None) -> Page:
        """Return a page of entities, by first appearance."""
        return self.list(namespace, "entities", after=after, limit=limit, as_of=as_of)

    def facts(self, namespace: str, *, after: str = "", limit: int = PAGE_ITEMS, as_of: AsOf = None) -> Page:
        """Return a page of facts, in the order of the log; what no longer holds has another status than active."""
        return self.list(namespace, "facts", after=after, limit=limit, as_of=as_of)

    def graph(self, namespace: str, entity: str, *, depth: int = 2, as_of: AsOf = None) -> dict[str, Any]:
        """Return what is related to an entity within `depth` steps, 1 to 5; errors are those of `list`."""
        with self._reading(namespace, as_of) as snapshot:
            return entity_neighbourhood(snapshot, entity, depth)

    def namespaces(self, *, after: str = "", limit: int = PAGE_ITEMS) -> Page:
        """Return a page of namespaces with their heads, by name."""
        return list_namespaces(self.parts.log, after, limit)

    def list(self, namespace: str, name: str, *, after: str = "", limit: int = PAGE_ITEMS, as_of: AsOf = None) -> Page:
        """Return a page of one of `page_queries.LISTS`, caught up with the log, or as it was.

        Parameters:
            as_of: a version, an aware time, or either as text: only what was recorded by then. The first call for a
                moment builds its read model, which takes as long as a replay; those after it find it.

        Raises:
            InvalidInput: a parameter is wrong, or there is no such version or time yet. InvalidNamespace: the name.
            ProjectionFailed: the read model of that moment cannot be built. StorageError: the disk.
        """
        with self._reading(namespace, as_of) as snapshot:
            return list_rows(snapshot, name, after, limit)

    def version(self, namespace: str, as_of: AsOf) -> int | None:
        """Return the version that `as_of` means: the last one recorded by then, 0 before the first; None for None.

        Raises:
            InvalidInput: it is neither a version nor a time, or not there yet.
        """
        named = parse_as_of(as_of)
        return None if named is None else self.parts.history.version(check_namespace(namespace), named)

    def compact(self, namespace: str, *, now: datetime | str | None = None, dry_run: bool = False) -> Compaction:
        """Do the nightly work on `namespace`; return the events it appended, by step.

        Parameters:
            now: do what was due at this time, aware or as text; what is due at present when None.
            dry_run: append nothing, and return what each step would append first.

        Raises:
            InvalidInput: `now` is no time, or lies in the future. InvalidNamespace: the name. StorageError: the disk.
        """
        at_us = parse_past_us(now, field="now")
        work = preview if dry_run else compact_steps
        return work(self.parts.job_context, check_namespace(namespace), at_us)

    def settle(self, namespace: str, *, now: datetime | str | None = None) -> None:
        """Bring the background work on `namespace` to its end in this thread: catch up, extract, observe, embed.

        It waits until the embedding model is loaded. Afterwards the memory is as the workers leave it at `now`:
        messages that a job holds back until more are said are still held back.

        Parameters:
            now: the time that jobs work for, aware or as text; the present when None.

        Raises:
            InvalidInput: `now` is no time, or lies in the future; or the model cannot be loaded. InvalidNamespace: the
            name. ProjectionFailed: the namespace is parked. NotSettled: others keep appending. StorageError: the disk.
        """
        now_us = parse_past_us(now, field="now")
        check_namespace(namespace)
        if self.parts.vectors.embedder.state != "off":
            wait_for_model(self.parts.vectors.embedder, no_progress)
        settle(self.parts.job_context, self.parts.backlog, namespace, now_us)

    def window(self, namespace: str, session_id: str, *, budget_tokens: int) -> Window:
        """Fit a running conversation to a budget; when it is nearly full, its oldest turns are summed up for good.

        Raises:
            InvalidInput: the budget is not from 64 to 1,000,000. InvalidNamespace: the name. StorageError: the disk.
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
        """Return the exact words behind a summary, in order, expired or not; nothing for an episode that is none.

        Raises:
            InvalidNamespace: the name. StorageError: the disk.
        """
        with self._reading(namespace) as snapshot:
            return [*read_sources(episode_id, snapshot, self.parts.log, namespace)]

    def replay(self, namespace: str) -> int:
        """Rebuild the read model of `namespace` from the log; return the events folded.

        Raises:
            ProjectionFailed: an event cannot be folded; the read model stays as it was.
        """
        return self.parts.read_models.replay(check_namespace(namespace))

    def check(self, namespace: str) -> ReplayCheck:
        """Rebuild the read model beside the live one and compare the two."""
        return self.parts.read_models.check(check_namespace(namespace))

    def verify(self, namespace: str) -> VerifyResult:
        """Recompute the hash chain of `namespace` and compare it with what is stored."""
        return verify(self.parts.log, check_namespace(namespace))

    def embed(
        self, model: str | None = None, *, namespace: str | None = None, on_progress: OnPartProgress = no_progress
    ) -> int:
        """Embed what has no vectors yet, with the model in use or with another one; return how many episodes.

        With `model`, every namespace is embedded anew while all who use the folder go on with the vectors they have;
        when that is done they change over, in this process at once, in others as soon as the model is loaded there.
        Called again after it was stopped, it goes on where it was.

        Parameters:
            model: a name or a path; the one in use when None.
            namespace: only this one; a model is changed for all of them.
            on_progress: called with (what is done, steps done, steps in all) now and then.

        Raises:
            InvalidInput: the model cannot be loaded; nothing has changed. FolderInUse: another process changes it.
            InvalidNamespace: the name. StorageError: the folder cannot be read or written.
        """
        if model is None:
            vectors = self.parts.active_model.vectors()
            wait_for_model(vectors.embedder, on_progress)
            names = (head.namespace for head in each_head(self.parts.log))
            chosen = names if namespace is None else [check_namespace(namespace)]
            return embed_missing(self.parts.read_models, vectors, chosen, on_progress)
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
        """Go back to the model before the last change, whose vectors are still there; return its name.

        What was appended since has no vectors of that model yet: workers, or `embed`, make them.

        Raises:
            InvalidInput: no model came before, or its files are not what they were; nothing has changed.
            FolderInUse: another process changes the model. StorageError: the folder cannot be read or written.
        """
        return undo_change(self.parts.settings.storage.data)

    def close(self) -> None:
        """Finish what was begun and release the files."""
        self.parts.close()

    @contextmanager
    def _reading(self, namespace: str, as_of: AsOf = None) -> Generator[Snapshot]:
        """Lend the read model, caught up with the log, or as it was."""
        version = self.version(check_namespace(namespace), as_of)
        if version is None:
            self.parts.read_models.catch_up(namespace)
        reading = (
            self.parts.read_models.reading(namespace)
            if version is None
            else self.parts.history.reading(namespace, version)
        )
        with reading as snapshot:
            yield snapshot

    def _traced(self, namespace: str, request: RetrieveRequest, *, exclude: Sequence[str] = ()) -> RetrieveResult:
        self.parts.vectors.embedder.start()
        if self.parts.reranker is not None:
            self.parts.reranker.start()
        result = self.parts.retriever.retrieve(namespace, request, exclude=exclude)
        self.parts.trace_store.add(namespace, request, result)
        return result


def listed(events: Event | Sequence[Event]) -> Sequence[Event]:
    """Return `events` as a sequence, one event too."""
    return [events] if isinstance(events, Mapping | Envelope) else events


def _request(fields: Mapping[str, Any]) -> RetrieveRequest:
    try:
        return RetrieveRequest.model_validate(fields)
    except ValidationError as error:
        raise first_problem(error) from None
