"""Memory protocols: the methods of a memory that turns and integrations call, in this process or on a server."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Unpack

from recollect.api.retrieval.contract.options import RetrieveOptions, TurnOptions
from recollect.api.retrieval.contract.result import Item
from recollect.events.errors import InvalidInput


class Recalled(Protocol):
    """The part of a retrieval's result that goes into a prompt."""

    @property
    def context(self) -> str:
        """The text for the prompt."""
        ...

    @property
    def items(self) -> Sequence[Item]:
        """The memories, best first."""
        ...

    @property
    def tokens(self) -> int:
        """Estimated tokens of `context`."""
        ...


class SyncMemory(Protocol):
    """A memory with the methods of `Recollect`, such as a client of a remote server."""

    def append(self, namespace: str, events: Sequence[Mapping[str, Any]], /) -> Sequence[Any]:
        """Append events."""
        ...

    def retrieve(
        self, namespace: str, query: str, /, *, wait: bool = True, **options: Unpack[RetrieveOptions]
    ) -> Recalled:
        """Return the memories for a query."""
        ...

    def append_and_retrieve(
        self,
        namespace: str,
        events: Sequence[Mapping[str, Any]],
        /,
        *,
        expected_version: int | None = None,
        wait: bool = True,
        **options: Unpack[TurnOptions],
    ) -> tuple[Sequence[Any], Recalled | None]:
        """Append events and return the memories for the last message among them."""
        ...


class AsyncMemory(Protocol):
    """A memory with the methods of `AsyncRecollect`."""

    async def append(self, namespace: str, events: Sequence[Mapping[str, Any]], /) -> Sequence[Any]:
        """Append events."""
        ...

    async def retrieve(
        self, namespace: str, query: str, /, *, wait: bool = True, **options: Unpack[RetrieveOptions]
    ) -> Recalled:
        """Return the memories for a query."""
        ...

    async def append_and_retrieve(
        self,
        namespace: str,
        events: Sequence[Mapping[str, Any]],
        /,
        *,
        expected_version: int | None = None,
        wait: bool = True,
        **options: Unpack[TurnOptions],
    ) -> tuple[Sequence[Any], Recalled | None]:
        """Append events and return the memories for the last message among them."""
        ...


class StoreMemory(Protocol):
    """A memory whose items are stored and read by key, as a LangGraph store does."""

    def append(self, namespace: str, events: Sequence[Mapping[str, Any]], /) -> Sequence[Any]:
        """Append events."""
        ...

    def retrieve(
        self, namespace: str, query: str, /, *, wait: bool = True, **options: Unpack[RetrieveOptions]
    ) -> Recalled:
        """Return the memories for a query."""
        ...

    def get(self, namespace: str, memory_id: str, /) -> Mapping[str, Any]:
        """Return a memory by id."""
        ...

    def list(self, namespace: str, name: str, /, *, after: str, limit: int) -> Mapping[str, Any]:
        """Return a page of a list."""
        ...

    def namespaces(self, *, after: str, limit: int) -> Mapping[str, Any]:
        """Return a page of namespaces, by name."""
        ...


def check_memory(memory: object, protocol: type, *, is_blocking: bool = False) -> None:
    """Check that a memory has the methods of a protocol.

    Parameters:
        is_blocking: whether its methods must not be coroutines.

    Raises:
        InvalidInput: it lacks one, or they are coroutines. The message says what to give.
    """
    methods = [getattr(memory, name, None) for name in vars(protocol) if name[0] != "_"]
    if not all(map(callable, methods)):
        raise InvalidInput(
            f"give an open memory, such as recollect.Recollect('folder') or a client of a server, not a "
            f"{type(memory).__name__}",
            field="memory",
        )
    if is_blocking and inspect.iscoroutinefunction(methods[0]):
        raise InvalidInput(f"give a Recollect or a Client, not an {type(memory).__name__}", field="memory")
