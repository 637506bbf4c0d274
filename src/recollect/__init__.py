"""Recollect: long-term memory for chat bots and agents, built on event sourcing.

``from recollect import Recollect`` is all that a bot needs; `AsyncRecollect` is the same for asyncio. `Client` and
`AsyncClient` have the same methods for a server on another machine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect.api.client.async_client import AsyncClient
    from recollect.api.client.client import Client
    from recollect.api.memory.async_recollect import AsyncRecollect
    from recollect.api.memory.recollect import Recollect

__all__ = ["AsyncClient", "AsyncRecollect", "Client", "Recollect"]

_MODULES = {
    "AsyncClient": "recollect.api.client.async_client",
    "AsyncRecollect": "recollect.api.memory.async_recollect",
    "Client": "recollect.api.client.client",
    "Recollect": "recollect.api.memory.recollect",
}


def __getattr__(name: str) -> object:
    # Late, so that `recollect.events` and the clients can be used without loading retrieval and its libraries.
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
