"""Memory lists: the methods of `Recollect` that list what a namespace holds, in pages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Any, Literal, Unpack, overload

from recollect.api.as_of import AsOf
from recollect.api.assembly.memory_parts import MemoryParts
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
from recollect.api.pages.list_pages import PAGE_ITEMS, Filters, ListOptions, forgotten_item, list_rows
from recollect.api.result_types import Entity, Episode, Fact, Page, Session
from recollect.projections.queries.snapshot import Snapshot


class MemoryLists(ABC):
    """Lists the memories of a namespace. `Recollect` has the other lists, which no filter narrows."""

    parts: MemoryParts

    @abstractmethod
    def _reading(self, namespace: str, as_of: AsOf = None) -> AbstractContextManager[Snapshot]:
        """Open the read model."""

    def episodes(
        self,
        namespace: str,
        *,
        after: str = "",
        limit: int = PAGE_ITEMS,
        as_of: AsOf = None,
        filters: Filters | None = None,
    ) -> Page[Episode]:
        """Return a page of episodes, in the order of the log."""
        return self._rows(namespace, "episodes", after=after, limit=limit, as_of=as_of, filters=filters)

    def sessions(
        self,
        namespace: str,
        *,
        after: str = "",
        limit: int = PAGE_ITEMS,
        as_of: AsOf = None,
        filters: Filters | None = None,
    ) -> Page[Session]:
        """Return a page of sessions, by id."""
        return self._rows(namespace, "sessions", after=after, limit=limit, as_of=as_of, filters=filters)

    def entities(
        self,
        namespace: str,
        *,
        after: str = "",
        limit: int = PAGE_ITEMS,
        as_of: AsOf = None,
        filters: Filters | None = None,
    ) -> Page[Entity]:
        """Return a page of entities, by first appearance."""
        return self._rows(namespace, "entities", after=after, limit=limit, as_of=as_of, filters=filters)

    def facts(
        self,
        namespace: str,
        *,
        after: str = "",
        limit: int = PAGE_ITEMS,
        as_of: AsOf = None,
        filters: Filters | None = None,
    ) -> Page[Fact]:
        """Return a page of facts, in the order of the log. An outdated fact has another status than active."""
        return self._rows(namespace, "facts", after=after, limit=limit, as_of=as_of, filters=filters)

    @overload
    def list(self, namespace: str, name: Literal["facts"], **options: Unpack[ListOptions]) -> Page[Fact]: ...
    @overload
    def list(self, namespace: str, name: Literal["episodes"], **options: Unpack[ListOptions]) -> Page[Episode]: ...
    @overload
    def list(self, namespace: str, name: Literal["entities"], **options: Unpack[ListOptions]) -> Page[Entity]: ...
    @overload
    def list(self, namespace: str, name: Literal["sessions"], **options: Unpack[ListOptions]) -> Page[Session]: ...
    @overload
    def list(
        self, namespace: str, name: Literal["preferences"], **options: Unpack[ListOptions]
    ) -> Page[Preference]: ...
    @overload
    def list(self, namespace: str, name: Literal["procedures"], **options: Unpack[ListOptions]) -> Page[Procedure]: ...
    @overload
    def list(
        self, namespace: str, name: Literal["relationships"], **options: Unpack[ListOptions]
    ) -> Page[Relationship]: ...
    @overload
    def list(self, namespace: str, name: Literal["documents"], **options: Unpack[ListOptions]) -> Page[Document]: ...
    @overload
    def list(
        self, namespace: str, name: Literal["observations"], **options: Unpack[ListOptions]
    ) -> Page[Observation]: ...
    @overload
    def list(
        self, namespace: str, name: Literal["forgotten"], **options: Unpack[ListOptions]
    ) -> Page[ForgottenItem]: ...
    @overload
    def list(self, namespace: str, name: Literal["questions"], **options: Unpack[ListOptions]) -> Page[Question]: ...
    @overload
    def list(self, namespace: str, name: Literal["dates"], **options: Unpack[ListOptions]) -> Page[DateMention]: ...
    @overload
    def list(self, namespace: str, name: str, **options: Unpack[ListOptions]) -> Page[Any]: ...
    def list(
        self,
        namespace: str,
        name: str,
        *,
        after: str = "",
        limit: int = PAGE_ITEMS,
        as_of: AsOf = None,
        filters: Filters | None = None,
    ) -> Page[Any]:
        """Return a page of the list `name`, such as ``facts``; [http.md](http.md#lists) has all with their filters.

        Parameters:
            as_of: a version, an aware time, or either as text: the list as of then. The first call for a version
                builds its read model, which takes as long as a replay; later calls reuse it.
            filters: such as ``{"status": "active", "metadata": {"channel": "email"}}``: the items that pass all of
                them. Of several values in a list, an item has one. What failed the quality gate is listed for
                ``{"status": "rejected"}`` alone.

        Raises:
            InvalidInput: no list or no filter has this name, a parameter is wrong, or `as_of` lies in the future.
            ProjectionFailed: the read model of that version cannot be built.
        """
        return self._rows(namespace, name, after=after, limit=limit, as_of=as_of, filters=filters)

    def _rows(
        self, namespace: str, name: str, *, after: str, limit: int, as_of: AsOf, filters: Filters | None
    ) -> Page[Any]:
        with self._reading(namespace, as_of) as snapshot:
            page = list_rows(snapshot, name, after, limit, filters)
        if name == "forgotten":
            page["items"] = [forgotten_item(self.parts.log, namespace, row) for row in page["items"]]
        return page
