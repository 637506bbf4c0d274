"""Asynchronous memory editing: the methods of `MemoryEditing` for asyncio."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Unpack

from recollect.api.as_of import AsOf
from recollect.api.memory.chat_messages import ChatInput, chat_events
from recollect.api.memory.memory_editing import chat_drafts
from recollect.api.memory.memory_edits import MemoryChanges
from recollect.api.memory.memory_review import Decision
from recollect.api.memory.recollect import Recollect
from recollect.api.pages.list_pages import PAGE_ITEMS
from recollect.api.result_types import (
    EndableMemory,
    EntityMemory,
    Forgotten,
    MemoryItem,
    PinnableMemory,
    QuarantineItem,
    QuarantinePage,
    SubjectExport,
    Undone,
)
from recollect.events.envelope import Appended, EventDraft


class AsyncMemoryEditing(ABC):
    """The methods of `MemoryEditing` as coroutines."""

    memory: Recollect

    @abstractmethod
    async def append_drafts(
        self, namespace: str, validated: Sequence[EventDraft], *, expected_version: int | None = None
    ) -> list[Appended]:
        """Append validated events."""

    async def add(
        self,
        namespace: str,
        messages: ChatInput,
        *,
        session_id: str | None = None,
        occurred_at: datetime | str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> list[Appended]:
        """Do what `Recollect.add` does; concurrent calls share one transaction."""
        events = chat_events(messages, session_id=session_id, occurred_at=occurred_at, metadata=metadata)
        return await self.append_drafts(namespace, chat_drafts(events))

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
        self,
        namespace: str,
        memory_id: str,
        *,
        ended_at: datetime | str | None = None,
        reason: str | None = None,
    ) -> EndableMemory:
        """Do what `Recollect.end` does."""
        return await asyncio.to_thread(self.memory.end, namespace, memory_id, ended_at=ended_at, reason=reason)

    async def forget(self, namespace: str, memory_id: str, *, reason: str | None = None) -> Forgotten:
        """Do what `Recollect.forget` does."""
        return await asyncio.to_thread(self.memory.forget, namespace, memory_id, reason=reason)

    async def undo(self, namespace: str, event_id: str, *, reason: str | None = None) -> Undone:
        """Do what `Recollect.undo` does."""
        return await asyncio.to_thread(self.memory.undo, namespace, event_id, reason=reason)

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

    async def export_subject(self, namespace: str, subject: str | None = None) -> SubjectExport:
        """Do what `Recollect.export_subject` does."""
        return await asyncio.to_thread(self.memory.export_subject, namespace, subject)

    async def separate(self, namespace: str, memory_id: str, alias: str, *, reason: str | None = None) -> EntityMemory:
        """Do what `Recollect.separate` does."""
        return await asyncio.to_thread(self.memory.separate, namespace, memory_id, alias, reason=reason)
