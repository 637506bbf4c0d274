"""Asynchronous memory: the methods of `Recollect` for asyncio."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import CoroutineType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from recollect.api.assembly.memory_parts import MemoryParts
from recollect.api.memory.append_telemetry import note_appended, operation_of
from recollect.api.memory.chat_messages import ChatInput, chat_events
from recollect.api.memory.forget_answer import with_forgotten
from recollect.api.memory.memory_editing import chat_drafts
from recollect.api.memory.memory_following import AsyncFollowing
from recollect.api.memory.recollect import Event, Recollect, listed
from recollect.api.memory.references import check_references, has_references
from recollect.api.memory.turn import AsyncTurns
from recollect.api.retrieval.understanding.query import utc_now
from recollect.api.settings import Settings
from recollect.events.backends.open_log import sqlite_path
from recollect.events.envelope import Appended, EventDraft
from recollect.events.tracing import memory_span
from recollect.events.validation import producer_drafts
from recollect.jobs.forgetting.forget_events import may_read_all

#: Bytes of payloads that are read on the event loop, which takes up to 20 ms; more are read by a thread.
_LOOP_BYTES_MAX = 64 << 10


async def off_loop(
    read: Callable[[str, Sequence[EventDraft]], list[EventDraft]],
    namespace: str,
    drafts: Sequence[EventDraft],
    *,
    reads_more: bool = False,
) -> list[EventDraft]:
    """Return `read(namespace, drafts)`; large drafts do not hold up the event loop, for 0.4 s with 1 MiB.

    Parameters:
        reads_more: whether `read` may read more than the drafts.
    """
    if not reads_more and sum(len(draft.payload) for draft in drafts) <= _LOOP_BYTES_MAX:
        return read(namespace, drafts)
    return await asyncio.to_thread(read, namespace, drafts)


async def append_screened(
    parts: MemoryParts, namespace: str, screened: Sequence[EventDraft], expected_version: int | None
) -> list[Appended]:
    """Append screened events; errors are those of `Recollect.append_drafts`."""
    with memory_span(operation_of(screened), namespace) as span:
        # A log on a server is read for answers as well.
        reads_more = may_read_all(screened) or sqlite_path(parts.settings.storage.log_url) is None
        prepared = await off_loop(parts.prepared, namespace, screened, reads_more=reads_more)
        if has_references(screened):
            await asyncio.to_thread(check_references, parts.log, parts.read_models, namespace, screened)
        recorded = await parts.log.append_async(namespace, prepared, expected_version=expected_version)
        own = with_forgotten(recorded, prepared, len(screened))
        note_appended(span, own)
        return own


Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def _in_thread(
    method: Callable[Concatenate[Recollect, Parameters], Result],
) -> Callable[Concatenate[AsyncRecollect, Parameters], CoroutineType[Any, Any, Result]]:
    """Return the coroutine that runs a method of the memory in a thread, with its signature and docstring."""

    @functools.wraps(method)
    async def run(self: AsyncRecollect, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        in_memory: Callable[Parameters, Result] = getattr(self.memory, method.__name__)
        return await asyncio.to_thread(in_memory, *args, **kwargs)

    return run


class AsyncRecollect(AsyncTurns, AsyncFollowing):
    """The methods of `Recollect` as coroutines. Use it with ``async with``, or await `close`.

    All but the appends run in a thread, in which they call `on_progress`.
    """

    retrieve = _in_thread(Recollect.retrieve)
    append_and_retrieve = _in_thread(Recollect.append_and_retrieve)
    retrieve_for = _in_thread(Recollect.retrieve_for)
    trace = _in_thread(Recollect.trace)
    traces = _in_thread(Recollect.traces)
    events = _in_thread(Recollect.events)
    fact_history = _in_thread(Recollect.fact_history)
    preference_history = _in_thread(Recollect.preference_history)
    graph = _in_thread(Recollect.graph)
    namespaces = _in_thread(Recollect.namespaces)
    version = _in_thread(Recollect.version)
    compact = _in_thread(Recollect.compact)
    settle = _in_thread(Recollect.settle)
    window = _in_thread(Recollect.window)
    tiers = _in_thread(Recollect.tiers)
    sources = _in_thread(Recollect.sources)
    replay = _in_thread(Recollect.replay)
    check = _in_thread(Recollect.check)
    verify = _in_thread(Recollect.verify)
    embed = _in_thread(Recollect.embed)
    undo_embed = _in_thread(Recollect.undo_embed)
    get = _in_thread(Recollect.get)
    update = _in_thread(Recollect.update)
    pin = _in_thread(Recollect.pin)
    unpin = _in_thread(Recollect.unpin)
    end = _in_thread(Recollect.end)
    forget = _in_thread(Recollect.forget)
    undo = _in_thread(Recollect.undo)
    separate = _in_thread(Recollect.separate)
    erase = _in_thread(Recollect.erase)
    receipts = _in_thread(Recollect.receipts)
    readmit = _in_thread(Recollect.readmit)
    quarantine = _in_thread(Recollect.quarantine)
    review = _in_thread(Recollect.review)
    record_answer = _in_thread(Recollect.record_answer)
    read_again = _in_thread(Recollect.read_again)
    export_subject = _in_thread(Recollect.export_subject)
    episodes = _in_thread(Recollect.episodes)
    sessions = _in_thread(Recollect.sessions)
    entities = _in_thread(Recollect.entities)
    facts = _in_thread(Recollect.facts)
    list = _in_thread(Recollect.list)
    close = _in_thread(Recollect.close)

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
        screened = await off_loop(self.memory.parts.screened, namespace, validated)
        return await append_screened(self.memory.parts, namespace, screened, expected_version)

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
