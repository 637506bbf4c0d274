"""Asynchronous memory: the methods of `Recollect` for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Self, Unpack, overload

from recollect.api.as_of import AsOf
from recollect.api.knowledge_types import (
    DateMention,
    Document,
    ForgottenItem,
    Observation,
    Preference,
    PreferenceValue,
    Procedure,
    Question,
    Relationship,
)
from recollect.api.memory.append_telemetry import note_appended, operation_of
from recollect.api.memory.async_memory_editing import AsyncMemoryEditing
from recollect.api.memory.forget_answer import with_forgotten
from recollect.api.memory.recollect import Event, Recollect, listed
from recollect.api.memory.references import check_references, has_references
from recollect.api.memory.turn import AsyncTurns
from recollect.api.pages.list_pages import PAGE_ITEMS, Filters, ListOptions
from recollect.api.receipt_types import ErasurePreview, Receipt
from recollect.api.result_types import (
    Entity,
    Episode,
    EventItem,
    Fact,
    FactValue,
    NamespaceItem,
    Neighbourhood,
    Page,
    Session,
    Trace,
    TraceSummary,
)
from recollect.api.retrieval.contract.options import RetrieveOptions, TurnOptions
from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.api.retrieval.contract.result import RetrieveResult, Source
from recollect.api.retrieval.understanding.query import utc_now
from recollect.api.settings import Settings
from recollect.events.envelope import Appended, EventDraft
from recollect.events.integrity.verify import VerifyResult
from recollect.events.progress import OnPartProgress, no_progress
from recollect.events.tracing import memory_span
from recollect.events.validation import producer_drafts
from recollect.jobs.conversation.window import Window
from recollect.jobs.llm_reading.llm_rereading import Rereading
from recollect.jobs.queue.nightly import Compaction
from recollect.jobs.queue.settlement import Settlement
from recollect.projections.queries.queried_episodes import TierTotals
from recollect.projections.read_models.read_models import ReplayCheck

#: Bytes of payloads that are screened on the event loop, which takes up to 20 ms; more are screened by a thread.
_LOOP_BYTES_MAX = 64 << 10


async def screened_off_loop(
    screen: Callable[[str, Sequence[EventDraft]], list[EventDraft]], namespace: str, drafts: Sequence[EventDraft]
) -> list[EventDraft]:
    """Return `screen(namespace, drafts)`; large drafts do not hold up the event loop, for 0.4 s with 1 MiB."""
    if sum(len(draft.payload) for draft in drafts) <= _LOOP_BYTES_MAX:
        return screen(namespace, drafts)
    return await asyncio.to_thread(screen, namespace, drafts)


class AsyncRecollect(AsyncMemoryEditing, AsyncTurns):
    """The methods of `Recollect` as coroutines. Use it with ``async with``, or await `close`."""

    def __init__(
        self,
        data: Path | str | None = None,
        *,
        settings: Settings | None = None,
        workers: bool = True,
        schedule: bool | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self.memory: Recollect = Recollect(data, settings=settings, workers=workers, schedule=schedule, clock=clock)

    @classmethod
    def over(cls, memory: Recollect) -> Self:
        """Return the asynchronous form of an open memory. Closing either closes both."""
        twin = cls.__new__(cls)
        twin.memory = memory
        return twin

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def append(
        self, namespace: str, events: Event | Sequence[Event], *, expected_version: int | None = None
    ) -> list[Appended]:
        """Do what `Recollect.append` does; concurrent calls share one transaction."""
        return await self.append_drafts(namespace, producer_drafts(listed(events)), expected_version=expected_version)

    async def append_drafts(
        self, namespace: str, validated: Sequence[EventDraft], *, expected_version: int | None = None
    ) -> list[Appended]:
        """Do what `Recollect.append_drafts` does; concurrent calls share one transaction."""
        parts = self.memory.parts
        with memory_span(operation_of(validated), namespace) as span:
            prepared = await screened_off_loop(parts.prepared, namespace, validated)
            if has_references(validated):
                await asyncio.to_thread(check_references, parts.log, parts.read_models, namespace, validated)
            recorded = await parts.log.append_async(namespace, prepared, expected_version=expected_version)
            own = with_forgotten(recorded, prepared, len(validated))
            note_appended(span, own)
            return own

    async def retrieve(
        self, namespace: str, query: str | RetrieveRequest, *, wait: bool = True, **options: Unpack[RetrieveOptions]
    ) -> RetrieveResult:
        """Do what `Recollect.retrieve` does."""
        return await asyncio.to_thread(self.memory.retrieve, namespace, query, wait=wait, **options)

    async def append_and_retrieve(
        self,
        namespace: str,
        events: Event | Sequence[Event],
        *,
        expected_version: int | None = None,
        wait: bool = True,
        **options: Unpack[TurnOptions],
    ) -> tuple[list[Appended], RetrieveResult | None]:
        """Do what `Recollect.append_and_retrieve` does."""
        return await asyncio.to_thread(
            self.memory.append_and_retrieve,
            namespace,
            events,
            expected_version=expected_version,
            wait=wait,
            **options,
        )

    async def retrieve_for(
        self, namespace: str, request: RetrieveRequest, recorded: Sequence[Appended]
    ) -> RetrieveResult:
        """Do what `Recollect.retrieve_for` does."""
        return await asyncio.to_thread(self.memory.retrieve_for, namespace, request, recorded)

    async def trace(self, namespace: str, trace_id: str) -> Trace:
        """Do what `Recollect.trace` does."""
        return await asyncio.to_thread(self.memory.trace, namespace, trace_id)

    async def traces(self, namespace: str, *, after: str = "", limit: int = PAGE_ITEMS) -> Page[TraceSummary]:
        """Do what `Recollect.traces` does."""
        return await asyncio.to_thread(self.memory.traces, namespace, after=after, limit=limit)

    async def events(
        self, namespace: str, *, after: int = 0, limit: int = PAGE_ITEMS, as_of: AsOf = None
    ) -> Page[EventItem]:
        """Do what `Recollect.events` does."""
        return await asyncio.to_thread(self.memory.events, namespace, after=after, limit=limit, as_of=as_of)

    async def episodes(
        self,
        namespace: str,
        *,
        after: str = "",
        limit: int = PAGE_ITEMS,
        as_of: AsOf = None,
        filters: Filters | None = None,
    ) -> Page[Episode]:
        """Do what `Recollect.episodes` does."""
        return await asyncio.to_thread(
            self.memory.episodes, namespace, after=after, limit=limit, as_of=as_of, filters=filters
        )

    async def sessions(
        self,
        namespace: str,
        *,
        after: str = "",
        limit: int = PAGE_ITEMS,
        as_of: AsOf = None,
        filters: Filters | None = None,
    ) -> Page[Session]:
        """Do what `Recollect.sessions` does."""
        return await asyncio.to_thread(
            self.memory.sessions, namespace, after=after, limit=limit, as_of=as_of, filters=filters
        )

    async def entities(
        self,
        namespace: str,
        *,
        after: str = "",
        limit: int = PAGE_ITEMS,
        as_of: AsOf = None,
        filters: Filters | None = None,
    ) -> Page[Entity]:
        """Do what `Recollect.entities` does."""
        return await asyncio.to_thread(
            self.memory.entities, namespace, after=after, limit=limit, as_of=as_of, filters=filters
        )

    async def facts(
        self,
        namespace: str,
        *,
        after: str = "",
        limit: int = PAGE_ITEMS,
        as_of: AsOf = None,
        filters: Filters | None = None,
    ) -> Page[Fact]:
        """Do what `Recollect.facts` does."""
        return await asyncio.to_thread(
            self.memory.facts, namespace, after=after, limit=limit, as_of=as_of, filters=filters
        )

    async def fact_history(self, namespace: str, fact_id: str, *, as_of: AsOf = None) -> Page[FactValue]:
        """Do what `Recollect.fact_history` does."""
        return await asyncio.to_thread(self.memory.fact_history, namespace, fact_id, as_of=as_of)

    async def preference_history(
        self, namespace: str, preference_id: str, *, as_of: AsOf = None
    ) -> Page[PreferenceValue]:
        """Do what `Recollect.preference_history` does."""
        return await asyncio.to_thread(self.memory.preference_history, namespace, preference_id, as_of=as_of)

    async def graph(self, namespace: str, entity: str, *, depth: int = 2, as_of: AsOf = None) -> Neighbourhood:
        """Do what `Recollect.graph` does."""
        return await asyncio.to_thread(self.memory.graph, namespace, entity, depth=depth, as_of=as_of)

    async def namespaces(self, *, after: str = "", limit: int = PAGE_ITEMS) -> Page[NamespaceItem]:
        """Do what `Recollect.namespaces` does."""
        return await asyncio.to_thread(self.memory.namespaces, after=after, limit=limit)

    @overload
    async def list(self, namespace: str, name: Literal["facts"], **options: Unpack[ListOptions]) -> Page[Fact]: ...
    @overload
    async def list(
        self, namespace: str, name: Literal["episodes"], **options: Unpack[ListOptions]
    ) -> Page[Episode]: ...
    @overload
    async def list(self, namespace: str, name: Literal["entities"], **options: Unpack[ListOptions]) -> Page[Entity]: ...
    @overload
    async def list(
        self, namespace: str, name: Literal["sessions"], **options: Unpack[ListOptions]
    ) -> Page[Session]: ...
    @overload
    async def list(
        self, namespace: str, name: Literal["preferences"], **options: Unpack[ListOptions]
    ) -> Page[Preference]: ...
    @overload
    async def list(
        self, namespace: str, name: Literal["procedures"], **options: Unpack[ListOptions]
    ) -> Page[Procedure]: ...
    @overload
    async def list(
        self, namespace: str, name: Literal["relationships"], **options: Unpack[ListOptions]
    ) -> Page[Relationship]: ...
    @overload
    async def list(
        self, namespace: str, name: Literal["documents"], **options: Unpack[ListOptions]
    ) -> Page[Document]: ...
    @overload
    async def list(
        self, namespace: str, name: Literal["observations"], **options: Unpack[ListOptions]
    ) -> Page[Observation]: ...
    @overload
    async def list(
        self, namespace: str, name: Literal["forgotten"], **options: Unpack[ListOptions]
    ) -> Page[ForgottenItem]: ...
    @overload
    async def list(
        self, namespace: str, name: Literal["questions"], **options: Unpack[ListOptions]
    ) -> Page[Question]: ...
    @overload
    async def list(
        self, namespace: str, name: Literal["dates"], **options: Unpack[ListOptions]
    ) -> Page[DateMention]: ...
    @overload
    async def list(self, namespace: str, name: str, **options: Unpack[ListOptions]) -> Page[Any]: ...
    async def list(
        self,
        namespace: str,
        name: str,
        *,
        after: str = "",
        limit: int = PAGE_ITEMS,
        as_of: AsOf = None,
        filters: Filters | None = None,
    ) -> Page[Any]:
        """Do what `Recollect.list` does."""
        return await asyncio.to_thread(
            self.memory.list, namespace, name, after=after, limit=limit, as_of=as_of, filters=filters
        )

    async def version(self, namespace: str, as_of: AsOf) -> int | None:
        """Do what `Recollect.version` does."""
        return await asyncio.to_thread(self.memory.version, namespace, as_of)

    async def compact(
        self,
        namespace: str,
        *,
        now: datetime | str | None = None,
        dry_run: bool = False,
        on_progress: OnPartProgress = no_progress,
    ) -> Compaction:
        """Do what `Recollect.compact` does; `on_progress` is called in another thread."""
        return await asyncio.to_thread(
            self.memory.compact, namespace, now=now, dry_run=dry_run, on_progress=on_progress
        )

    async def read_again(
        self,
        namespace: str,
        *,
        model: str | None = None,
        switch: bool = False,
        on_progress: OnPartProgress = no_progress,
    ) -> Rereading:
        """Do what `Recollect.read_again` does; `on_progress` is called in another thread."""
        return await asyncio.to_thread(
            self.memory.read_again, namespace, model=model, switch=switch, on_progress=on_progress
        )

    async def settle(
        self, namespace: str, *, timeout_seconds: float | None = None, now: datetime | str | None = None
    ) -> Settlement:
        """Do what `Recollect.settle` does."""
        return await asyncio.to_thread(self.memory.settle, namespace, timeout_seconds=timeout_seconds, now=now)

    async def window(self, namespace: str, session_id: str, *, budget_tokens: int) -> Window:
        """Do what `Recollect.window` does."""
        return await asyncio.to_thread(self.memory.window, namespace, session_id, budget_tokens=budget_tokens)

    async def tiers(self, namespace: str) -> dict[str, TierTotals]:
        """Do what `Recollect.tiers` does."""
        return await asyncio.to_thread(self.memory.tiers, namespace)

    async def sources(self, namespace: str, episode_id: str) -> list[Source]:
        """Do what `Recollect.sources` does."""
        return await asyncio.to_thread(self.memory.sources, namespace, episode_id)

    async def replay(self, namespace: str) -> int:
        """Do what `Recollect.replay` does."""
        return await asyncio.to_thread(self.memory.replay, namespace)

    async def check(self, namespace: str) -> ReplayCheck:
        """Do what `Recollect.check` does."""
        return await asyncio.to_thread(self.memory.check, namespace)

    async def verify(self, namespace: str) -> VerifyResult:
        """Do what `Recollect.verify` does."""
        return await asyncio.to_thread(self.memory.verify, namespace)

    async def embed(
        self, model: str | None = None, *, namespace: str | None = None, on_progress: OnPartProgress = no_progress
    ) -> int:
        """Do what `Recollect.embed` does; `on_progress` is called in another thread."""
        return await asyncio.to_thread(self.memory.embed, model, namespace=namespace, on_progress=on_progress)

    async def undo_embed(self) -> str:
        """Do what `Recollect.undo_embed` does."""
        return await asyncio.to_thread(self.memory.undo_embed)

    @overload
    async def erase(
        self,
        namespace: str,
        *,
        everything: bool = False,
        subject: str | None = None,
        session_id: str | None = None,
        event_ids: Sequence[str] | None = None,
        dry_run: Literal[False] = False,
        reason: str | None = None,
        requested_by: str | None = None,
    ) -> Receipt: ...
    @overload
    async def erase(
        self,
        namespace: str,
        *,
        everything: bool = False,
        subject: str | None = None,
        session_id: str | None = None,
        event_ids: Sequence[str] | None = None,
        dry_run: Literal[True],
        reason: str | None = None,
        requested_by: str | None = None,
    ) -> ErasurePreview: ...
    @overload
    async def erase(
        self,
        namespace: str,
        *,
        everything: bool = False,
        subject: str | None = None,
        session_id: str | None = None,
        event_ids: Sequence[str] | None = None,
        dry_run: bool,
        reason: str | None = None,
        requested_by: str | None = None,
    ) -> Receipt | ErasurePreview: ...
    async def erase(
        self,
        namespace: str,
        *,
        everything: bool = False,
        subject: str | None = None,
        session_id: str | None = None,
        event_ids: Sequence[str] | None = None,
        dry_run: bool = False,
        reason: str | None = None,
        requested_by: str | None = None,
    ) -> Receipt | ErasurePreview:
        """Do what `Recollect.erase` does."""
        return await asyncio.to_thread(
            self.memory.erase,
            namespace,
            everything=everything,
            subject=subject,
            session_id=session_id,
            event_ids=event_ids,
            dry_run=dry_run,
            reason=reason,
            requested_by=requested_by,
        )

    async def receipts(self, namespace: str | None = None) -> list[Receipt]:
        """Do what `Recollect.receipts` does."""
        return await asyncio.to_thread(self.memory.receipts, namespace)

    async def readmit(self, namespace: str, *, subject: str | None = None) -> bool:
        """Do what `Recollect.readmit` does."""
        return await asyncio.to_thread(self.memory.readmit, namespace, subject=subject)

    async def close(self) -> None:
        """Do what `Recollect.close` does."""
        await asyncio.to_thread(self.memory.close)
