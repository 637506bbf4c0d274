"""Asynchronous client server: the methods of a client that `Recollect` lacks: the state of its server.

This file is generated from that of `Client`: change that one, and run `python ops/client`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar

from recollect.api.client import page_calls
from recollect.api.client.call import Call

if TYPE_CHECKING:
    from recollect.api.client.answers import Readiness

Result = TypeVar("Result")

#: `PAGE_ITEMS` of the pages, which are not imported for it.
PAGE_ITEMS = 100


class AsyncClientServer(ABC):
    """The state of the server of a client."""

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
