"""Asynchronous lists: methods of `Recollect` as coroutines.

This file is generated from the methods of `Recollect`: change these, and run `python ops/client`.
"""

from __future__ import annotations

import asyncio
from typing import Any, Literal, Unpack, overload

from recollect.api.as_of import AsOf
from recollect.api.knowledge_types import (
    DateMention,
    Document,
    ForgottenItem,
    Observation,
    Preference,
    Procedure,
    Question,
    Relationship,
)
from recollect.api.memory.recollect import Recollect
from recollect.api.pages.list_pages import PAGE_ITEMS, Filters, ListOptions
from recollect.api.result_types import Entity, Episode, Fact, Page, Session


class AsyncLists:
    """Methods of `Recollect` as coroutines: each runs the method of the same name in a thread."""

    memory: Recollect

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
