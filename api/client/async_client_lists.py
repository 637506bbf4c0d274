"""Asynchronous client lists: the methods of `Recollect` that list what a namespace holds, for a remote server.

This file is generated from that of `Client`: change that one, and run `python ops/client`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack, overload

from recollect.api.client import memory_calls, page_calls
from recollect.api.client.call import Call

if TYPE_CHECKING:
    from recollect.api.as_of import AsOf
    from recollect.api.client.answers import Readiness
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
    from recollect.api.pages.list_pages import Filters, ListOptions
    from recollect.api.result_types import (
        Entity,
        Episode,
        EventItem,
        Fact,
        FactValue,
        NamespaceItem,
        Neighbourhood,
        Page,
        QuarantinePage,
        Session,
        Trace,
        TraceSummary,
    )
    from recollect.api.retrieval.contract.result import Source

Result = TypeVar("Result")

#: `PAGE_ITEMS` of the pages, which are not imported for it.
PAGE_ITEMS = 100


class AsyncClientLists(ABC):
    """The lists of a client, as coroutines. `Recollect` documents their parameters, results and errors."""

    @abstractmethod
    async def _send(self, call: Call[Result]) -> Result:
        """Send a call and return its result."""

    async def ready(self) -> Readiness:
        """Return whether the server can serve requests, as its route ``/health/ready`` does; it needs no token.

        Raises:
            ServerUnavailable: it is not reached in time. StorageError: it cannot read its log.
        """
        return await self._send(page_calls.ready())

    async def health(self) -> dict[str, Any]:
        """Return the state of the server with its problems, as its route ``/health`` does.

        Raises:
            ServerUnavailable: it is not reached in time.
        """
        return await self._send(page_calls.health())

    async def log_id(self) -> str:
        """Return the id of the server's log, as its route ``/health/live`` does; it needs no token.

        Raises:
            ServerUnavailable: it is not reached in time.
        """
        return await self._send(page_calls.log_id())

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

    async def events(
        self, namespace: str, *, after: int = 0, limit: int = PAGE_ITEMS, as_of: AsOf = None
    ) -> Page[EventItem]:
        """Do what `Recollect.events` does."""
        return await self._send(page_calls.events(namespace, after, limit, as_of))

    async def traces(self, namespace: str, *, after: str = "", limit: int = PAGE_ITEMS) -> Page[TraceSummary]:
        """Do what `Recollect.traces` does."""
        return await self._send(page_calls.traces(namespace, after, limit))

    async def trace(self, namespace: str, trace_id: str) -> Trace:
        """Do what `Recollect.trace` does."""
        return await self._send(page_calls.trace(namespace, trace_id))

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

    async def quarantine(
        self, namespace: str, *, status: str | None = "waiting", after: int = 0, limit: int = PAGE_ITEMS
    ) -> QuarantinePage:
        """Do what `Recollect.quarantine` does."""
        return await self._send(memory_calls.quarantine(namespace, status, after, limit))

    async def sources(self, namespace: str, episode_id: str) -> list[Source]:
        """Do what `Recollect.sources` does."""
        return await self._send(page_calls.sources(namespace, episode_id))
