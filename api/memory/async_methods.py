"""Asynchronous methods: methods of `Recollect` as coroutines.

This file is generated from the methods of `Recollect`: change these, and run `python ops/client`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Unpack, overload

from recollect.api.as_of import AsOf
from recollect.api.knowledge_types import PreferenceValue
from recollect.api.memory.memory_edits import MemoryChanges
from recollect.api.memory.memory_review import Decision
from recollect.api.memory.recollect import Event, Recollect
from recollect.api.pages.list_pages import PAGE_ITEMS
from recollect.api.receipt_types import ErasurePreview, Receipt
from recollect.api.result_types import (
    EndableMemory,
    EntityMemory,
    EventItem,
    FactValue,
    Forgotten,
    MemoryItem,
    NamespaceItem,
    Neighbourhood,
    Page,
    PinnableMemory,
    QuarantineItem,
    QuarantinePage,
    SubjectExport,
    Trace,
    TraceSummary,
    Undone,
)
from recollect.api.retrieval.contract.options import RetrieveOptions, TurnOptions
from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.api.retrieval.contract.result import RetrieveResult, Source
from recollect.events.envelope import Appended
from recollect.events.integrity.verify import VerifyResult
from recollect.events.progress import OnPartProgress, no_progress
from recollect.jobs.conversation.window import Window
from recollect.jobs.llm_reading.llm_rereading import Rereading
from recollect.jobs.queue.nightly import Compaction
from recollect.jobs.queue.settlement import Settlement
from recollect.projections.queries.queried_episodes import TierTotals
from recollect.projections.read_models.replays import ReplayCheck


class AsyncMethods:
    """Methods of `Recollect` as coroutines: each runs the method of the same name in a thread."""

    memory: Recollect

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
            self.memory.append_and_retrieve, namespace, events, expected_version=expected_version, wait=wait, **options
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

    async def get(self, namespace: str, memory_id: str, *, as_of: AsOf = None) -> MemoryItem:
        """Do what `Recollect.get` does."""
        return await asyncio.to_thread(self.memory.get, namespace, memory_id, as_of=as_of)

    async def update(
        self, namespace: str, memory_id: str, *, text: str | None = None, **changes: Unpack[MemoryChanges]
    ) -> MemoryItem:
        """Do what `Recollect.update` does."""
        return await asyncio.to_thread(self.memory.update, namespace, memory_id, text=text, **changes)

    async def pin(self, namespace: str, memory_id: str, *, reason: str | None = None) -> PinnableMemory:
        """Do what `Recollect.pin` does."""
        return await asyncio.to_thread(self.memory.pin, namespace, memory_id, reason=reason)

    async def unpin(self, namespace: str, memory_id: str, *, reason: str | None = None) -> PinnableMemory:
        """Do what `Recollect.unpin` does."""
        return await asyncio.to_thread(self.memory.unpin, namespace, memory_id, reason=reason)

    async def end(
        self, namespace: str, memory_id: str, *, ended_at: datetime | str | None = None, reason: str | None = None
    ) -> EndableMemory:
        """Do what `Recollect.end` does."""
        return await asyncio.to_thread(self.memory.end, namespace, memory_id, ended_at=ended_at, reason=reason)

    async def forget(self, namespace: str, memory_id: str, *, reason: str | None = None) -> Forgotten:
        """Do what `Recollect.forget` does."""
        return await asyncio.to_thread(self.memory.forget, namespace, memory_id, reason=reason)

    async def undo(self, namespace: str, event_id: str, *, reason: str | None = None) -> Undone:
        """Do what `Recollect.undo` does."""
        return await asyncio.to_thread(self.memory.undo, namespace, event_id, reason=reason)

    async def separate(self, namespace: str, memory_id: str, alias: str, *, reason: str | None = None) -> EntityMemory:
        """Do what `Recollect.separate` does."""
        return await asyncio.to_thread(self.memory.separate, namespace, memory_id, alias, reason=reason)

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

    async def quarantine(
        self, namespace: str, *, status: str | None = "waiting", after: int = 0, limit: int = PAGE_ITEMS
    ) -> QuarantinePage:
        """Do what `Recollect.quarantine` does."""
        return await asyncio.to_thread(self.memory.quarantine, namespace, status=status, after=after, limit=limit)

    async def review(
        self, namespace: str, memory_id: str, decision: Decision, *, reason: str | None = None
    ) -> QuarantineItem:
        """Do what `Recollect.review` does."""
        return await asyncio.to_thread(self.memory.review, namespace, memory_id, decision, reason=reason)

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

    async def export_subject(self, namespace: str, subject: str | None = None) -> SubjectExport:
        """Do what `Recollect.export_subject` does."""
        return await asyncio.to_thread(self.memory.export_subject, namespace, subject)
