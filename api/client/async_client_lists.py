"""Asynchronous client lists: methods of `Recollect` as coroutines, for a remote server.

This file is generated from the methods of `Recollect` and `ops/client/client_calls.py`: run `python ops/client`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from recollect.api.client import page_calls
from recollect.api.client.async_client_server import PAGE_ITEMS, AsyncClientServer

if TYPE_CHECKING:
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
    from recollect.api.pages.list_pages import Filters, ListOptions
    from recollect.api.result_types import Entity, Episode, Fact, Page, Session


class AsyncClientLists(AsyncClientServer):
    """Methods of a client, as coroutines. `Recollect` documents their parameters, results and errors."""

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
        return await self._send(page_calls.page(namespace, "episodes", after, limit, as_of, filters))

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
        return await self._send(page_calls.page(namespace, "sessions", after, limit, as_of, filters))

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
        return await self._send(page_calls.page(namespace, "entities", after, limit, as_of, filters))

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
        return await self._send(page_calls.page(namespace, "facts", after, limit, as_of, filters))

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
        return await self._send(page_calls.page(namespace, name, after, limit, as_of, filters))
