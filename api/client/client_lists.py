"""Client lists: methods of `Recollect`, for a remote server.

This file is generated from the methods of `Recollect` and `ops/client/client_calls.py`: run `python ops/client`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from recollect.api.client import page_calls
from recollect.api.client.client_server import PAGE_ITEMS, ClientServer

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


class ClientLists(ClientServer):
    """Methods of a client. `Recollect` documents their parameters, results and errors."""

    def episodes(
        self,
        namespace: str,
        *,
        after: str = "",
        limit: int = PAGE_ITEMS,
        as_of: AsOf = None,
        filters: Filters | None = None,
    ) -> Page[Episode]:
        """Do what `Recollect.episodes` does."""
        return self._send(page_calls.page(namespace, "episodes", after, limit, as_of, filters))

    def sessions(
        self,
        namespace: str,
        *,
        after: str = "",
        limit: int = PAGE_ITEMS,
        as_of: AsOf = None,
        filters: Filters | None = None,
    ) -> Page[Session]:
        """Do what `Recollect.sessions` does."""
        return self._send(page_calls.page(namespace, "sessions", after, limit, as_of, filters))

    def entities(
        self,
        namespace: str,
        *,
        after: str = "",
        limit: int = PAGE_ITEMS,
        as_of: AsOf = None,
        filters: Filters | None = None,
    ) -> Page[Entity]:
        """Do what `Recollect.entities` does."""
        return self._send(page_calls.page(namespace, "entities", after, limit, as_of, filters))

    def facts(
        self,
        namespace: str,
        *,
        after: str = "",
        limit: int = PAGE_ITEMS,
        as_of: AsOf = None,
        filters: Filters | None = None,
    ) -> Page[Fact]:
        """Do what `Recollect.facts` does."""
        return self._send(page_calls.page(namespace, "facts", after, limit, as_of, filters))

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
        """Do what `Recollect.list` does."""
        return self._send(page_calls.page(namespace, name, after, limit, as_of, filters))
