"""Memory following: the methods of a memory that follow a namespace, as events and knowledge are added."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Any, Protocol

from recollect.api.assembly.memory_parts import MemoryParts
from recollect.jobs.following.feed import POLL_SECONDS, Feed
from recollect.jobs.following.follower import PAGE_SECONDS_MAX, Follower


class MemoryFollowing:
    """Follows namespaces."""

    parts: MemoryParts

    def follow(
        self,
        namespace: str,
        *,
        cursor: str | None = None,
        after: int | None = None,
        types: Sequence[str] = (),
        knowledge: bool = False,
    ) -> Iterator[dict[str, Any]]:
        """Yield the events of a namespace in order, and wait for further ones, until the memory is closed.

        An event is handled when the next one is asked for. A process that is killed before gets it again, so each event
        comes at least once. The content of erased events never comes.

        Parameters:
            cursor: the name under which the position is stored, of one follower at a time; nothing is stored when None.
            after: the version after which to begin where nothing is stored: 0 is the first event, None from now on.
            types: the types of the events; all when empty.
            knowledge: what events changed about facts, preferences and tasks, in place of the events.

        Raises:
            InvalidInput: an argument is wrong, or the log ends before the cursor. ProjectionFailed: what the next event
            changes is unknown.
        """
        follower = _follower_of(self.parts, namespace, cursor, after, types, knowledge=knowledge)
        return follower.items(self.parts.job_context.stop)


class _AsyncMemory(Protocol):
    """The asynchronous form of a memory."""

    @property
    def memory(self) -> MemoryFollowing:
        """Return the memory."""
        ...


class AsyncFollowing:
    """The same for asyncio."""

    async def follow(
        self: _AsyncMemory,
        namespace: str,
        *,
        cursor: str | None = None,
        after: int | None = None,
        types: Sequence[str] = (),
        knowledge: bool = False,
    ) -> AsyncGenerator[dict[str, Any]]:
        """Yield what `Recollect.follow` yields; errors come with the first item."""
        parts = self.memory.parts
        stop = parts.job_context.stop
        follower = await asyncio.to_thread(_follower_of, parts, namespace, cursor, after, types, knowledge=knowledge)
        while not stop.is_set():
            until = time.monotonic() + PAGE_SECONDS_MAX
            batch = await asyncio.to_thread(follower.batch)
            for position, item in batch:
                yield item
                await asyncio.to_thread(follower.move, position)
                if position is not None and (stop.is_set() or time.monotonic() > until):
                    break
            if not batch:
                await asyncio.sleep(POLL_SECONDS)


def _follower_of(
    parts: MemoryParts, namespace: str, cursor: str | None, after: int | None, types: Sequence[str], *, knowledge: bool
) -> Follower:
    feed = Feed(parts.log, parts.read_models, namespace, types=types, knowledge=knowledge)
    return Follower(feed, parts.run_store, cursor=cursor, after=after)
