"""Asynchronous client methods: methods of `Recollect` as coroutines, for a remote server.

This file is generated from the methods of `Recollect` and `ops/client/client_calls.py`: run `python ops/client`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from recollect.api.client import append_calls, memory_calls, page_calls
from recollect.api.client.async_client_server import PAGE_ITEMS, AsyncClientServer

if TYPE_CHECKING:
    from recollect.api.as_of import AsOf
    from recollect.api.knowledge_types import PreferenceValue
    from recollect.api.memory.chat_messages import ChatInput
    from recollect.api.memory.memory_edits import MemoryChanges
    from recollect.api.memory.memory_review import Decision
    from recollect.api.memory.recollect import Event
    from recollect.api.receipt_types import ErasurePreview, Receipt
    from recollect.api.result_types import (
        EndableMemory,
        EntityMemory,
        EventItem,
        FactValue,
        Forgotten,
        JudgedAnswer,
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
    from recollect.jobs.conversation.window import Window
    from recollect.jobs.queue.nightly import Compaction
    from recollect.jobs.queue.settle_result import SettleResult
    from recollect.projections.queries.queried_episodes import TierTotals
    from recollect.projections.read_models.replays import ReplayCheck


class AsyncClientMethods(AsyncClientServer):
    """Methods of a client, as coroutines. `Recollect` documents their parameters, results and errors."""

    async def append(
        self, namespace: str, events: Event | Sequence[Event], *, expected_version: int | None = None
    ) -> list[Appended]:
        """Do what `Recollect.append` does.

        Raises:
            AppendUnknown: no answer came in time, and the events may be recorded; `event_ids` are their ids.
        """
        return await self._send(append_calls.append(namespace, events, expected_version))

    async def retrieve(
        self, namespace: str, query: str | RetrieveRequest, *, wait: bool = True, **options: Unpack[RetrieveOptions]
    ) -> RetrieveResult:
        """Do what `Recollect.retrieve` does.

        When the server does not answer in time, the result is empty, and `degraded` has the reason as ``server: …``;
        with `fails_open` of the client False, an error is raised.
        """
        return await self._send(append_calls.retrieve(namespace, query, wait, options))

    async def append_and_retrieve(
        self,
        namespace: str,
        events: Event | Sequence[Event],
        *,
        expected_version: int | None = None,
        wait: bool = True,
        **options: Unpack[TurnOptions],
    ) -> tuple[list[Appended], RetrieveResult | None]:
        """Do what `Recollect.append_and_retrieve` does. When the server is not reached, it raises as `append` does."""
        return await self._send(append_calls.append_and_retrieve(namespace, events, expected_version, wait, options))

    async def trace(self, namespace: str, trace_id: str) -> Trace:
        """Do what `Recollect.trace` does."""
        return await self._send(page_calls.trace(namespace, trace_id))

    async def traces(self, namespace: str, *, after: str = "", limit: int = PAGE_ITEMS) -> Page[TraceSummary]:
        """Do what `Recollect.traces` does."""
        return await self._send(page_calls.traces(namespace, after, limit))

    async def events(
        self, namespace: str, *, after: int = 0, limit: int = PAGE_ITEMS, as_of: AsOf = None
    ) -> Page[EventItem]:
        """Do what `Recollect.events` does."""
        return await self._send(page_calls.events(namespace, after, limit, as_of))

    async def fact_history(self, namespace: str, fact_id: str, *, as_of: AsOf = None) -> Page[FactValue]:
        """Do what `Recollect.fact_history` does."""
        return await self._send(page_calls.history(namespace, "facts", fact_id, as_of))

    async def preference_history(
        self, namespace: str, preference_id: str, *, as_of: AsOf = None
    ) -> Page[PreferenceValue]:
        """Do what `Recollect.preference_history` does."""
        return await self._send(page_calls.history(namespace, "preferences", preference_id, as_of))

    async def graph(self, namespace: str, entity: str, *, depth: int = 2, as_of: AsOf = None) -> Neighbourhood:
        """Do what `Recollect.graph` does."""
        return await self._send(page_calls.graph(namespace, entity, depth, as_of))

    async def namespaces(self, *, after: str = "", limit: int = PAGE_ITEMS) -> Page[NamespaceItem]:
        """Do what `Recollect.namespaces` does."""
        return await self._send(page_calls.namespaces(after, limit))

    async def version(self, namespace: str, as_of: AsOf) -> int | None:
        """Do what `Recollect.version` does."""
        return await self._send(page_calls.version(namespace, as_of))

    async def compact(self, namespace: str, *, now: datetime | str | None = None, dry_run: bool = False) -> Compaction:
        """Do what `Recollect.compact` does, without progress."""
        return await self._send(page_calls.compact(namespace, now, dry_run))

    async def settle(
        self, namespace: str, *, timeout_seconds: float | None = None, now: datetime | str | None = None
    ) -> SettleResult:
        """Do what `Recollect.settle` does, on the server."""
        return await self._send(page_calls.settle(namespace, timeout_seconds, now))

    async def window(self, namespace: str, session_id: str, *, budget_tokens: int) -> Window:
        """Do what `Recollect.window` does."""
        return await self._send(page_calls.window(namespace, session_id, budget_tokens))

    async def tiers(self, namespace: str) -> dict[str, TierTotals]:
        """Do what `Recollect.tiers` does."""
        return await self._send(page_calls.tiers(namespace))

    async def sources(self, namespace: str, episode_id: str) -> list[Source]:
        """Do what `Recollect.sources` does."""
        return await self._send(page_calls.sources(namespace, episode_id))

    async def replay(self, namespace: str, *, parks: bool = False) -> int:
        """Do what `Recollect.replay` does."""
        return await self._send(page_calls.replay(namespace, parks))

    async def check(self, namespace: str) -> ReplayCheck:
        """Do what `Recollect.check` does."""
        return await self._send(page_calls.check(namespace))

    async def verify(self, namespace: str) -> VerifyResult:
        """Do what `Recollect.verify` does."""
        return await self._send(page_calls.verify(namespace))

    async def add(
        self,
        namespace: str,
        messages: ChatInput,
        *,
        session_id: str | None = None,
        occurred_at: datetime | str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> list[Appended]:
        """Do what `Recollect.add` does; the errors are those of `append`, too."""
        return await self._send(append_calls.add(namespace, messages, session_id, occurred_at, metadata))

    async def get(self, namespace: str, memory_id: str, *, as_of: AsOf = None) -> MemoryItem:
        """Do what `Recollect.get` does."""
        return await self._send(memory_calls.get(namespace, memory_id, as_of))

    async def update(
        self, namespace: str, memory_id: str, *, text: str | None = None, **changes: Unpack[MemoryChanges]
    ) -> MemoryItem:
        """Do what `Recollect.update` does."""
        return await self._send(memory_calls.update(namespace, memory_id, text, changes))

    async def pin(self, namespace: str, memory_id: str, *, reason: str | None = None) -> PinnableMemory:
        """Do what `Recollect.pin` does."""
        return await self._send(memory_calls.change(namespace, memory_id, "pin", {"reason": reason}))

    async def unpin(self, namespace: str, memory_id: str, *, reason: str | None = None) -> PinnableMemory:
        """Do what `Recollect.unpin` does."""
        return await self._send(memory_calls.change(namespace, memory_id, "unpin", {"reason": reason}))

    async def end(
        self, namespace: str, memory_id: str, *, ended_at: datetime | str | None = None, reason: str | None = None
    ) -> EndableMemory:
        """Do what `Recollect.end` does."""
        return await self._send(
            memory_calls.change(namespace, memory_id, "end", {"ended_at": ended_at, "reason": reason})
        )

    async def forget(self, namespace: str, memory_id: str, *, reason: str | None = None) -> Forgotten:
        """Do what `Recollect.forget` does."""
        return await self._send(memory_calls.forget(namespace, memory_id, reason))

    async def undo(self, namespace: str, event_id: str, *, reason: str | None = None) -> Undone:
        """Do what `Recollect.undo` does."""
        return await self._send(memory_calls.undo(namespace, event_id, reason))

    async def separate(self, namespace: str, memory_id: str, alias: str, *, reason: str | None = None) -> EntityMemory:
        """Do what `Recollect.separate` does."""
        return await self._send(
            memory_calls.change(namespace, memory_id, "separate", {"alias": alias, "reason": reason})
        )

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
        return await self._send(
            memory_calls.erase(
                namespace,
                everything=everything,
                subject=subject,
                session_id=session_id,
                event_ids=event_ids,
                dry_run=dry_run,
                reason=reason,
                requested_by=requested_by,
            )
        )

    async def receipts(self, namespace: str | None = None) -> list[Receipt]:
        """Do what `Recollect.receipts` does."""
        return await self._send(memory_calls.receipts(namespace))

    async def readmit(self, namespace: str, *, subject: str | None = None) -> bool:
        """Do what `Recollect.readmit` does."""
        return await self._send(memory_calls.readmit(namespace, subject))

    async def quarantine(
        self, namespace: str, *, status: str | None = "waiting", after: int = 0, limit: int = PAGE_ITEMS
    ) -> QuarantinePage:
        """Do what `Recollect.quarantine` does."""
        return await self._send(memory_calls.quarantine(namespace, status, after, limit))

    async def review(
        self, namespace: str, memory_id: str, decision: Decision, *, reason: str | None = None
    ) -> QuarantineItem:
        """Do what `Recollect.review` does."""
        return await self._send(memory_calls.review(namespace, memory_id, decision, reason))

    async def record_answer(
        self, namespace: str, text: str, cited: Sequence[str], *, trace_id: str | None = None
    ) -> JudgedAnswer:
        """Do what `Recollect.record_answer` does."""
        return await self._send(memory_calls.record_answer(namespace, text, cited, trace_id))

    async def export_subject(self, namespace: str, subject: str | None = None) -> SubjectExport:
        """Do what `Recollect.export_subject` does."""
        return await self._send(memory_calls.export_subject(namespace, subject))
