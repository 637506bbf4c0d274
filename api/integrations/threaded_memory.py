"""Threaded memory: calls the methods of a memory that block in threads, for callers on an event loop."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, cast

from recollect.api.memory.memory_protocols import AsyncMemory, Recalled, SyncMemory


class ThreadedMemory:
    """A `SyncMemory` as an `AsyncMemory`."""

    def __init__(self, memory: SyncMemory) -> None:
        self._memory = memory

    async def append(self, namespace: str, events: Sequence[Mapping[str, Any]], /) -> Sequence[Any]:
        """Append events."""
        return await asyncio.to_thread(self._memory.append, namespace, events)

    async def retrieve(self, namespace: str, query: str, /, **options: Any) -> Recalled:
        """Return the memories for a query."""
        return await asyncio.to_thread(self._memory.retrieve, namespace, query, **options)

    async def append_and_retrieve(
        self, namespace: str, events: Sequence[Mapping[str, Any]], /, **options: Any
    ) -> tuple[Sequence[Any], Recalled | None]:
        """Append events and return the memories for the last message among them."""
        return await asyncio.to_thread(self._memory.append_and_retrieve, namespace, events, **options)


def asynchronous(memory: SyncMemory | AsyncMemory) -> AsyncMemory:
    """Return a memory whose methods are awaited."""
    if inspect.iscoroutinefunction(memory.append):
        return cast(AsyncMemory, memory)
    return ThreadedMemory(cast(SyncMemory, memory))
