"""Recollect: long-term memory for chat bots and agents, built on event sourcing.

``from recollect import Recollect`` is all that a bot needs; `AsyncRecollect` is the same for asyncio. `Client` and
`AsyncClient` have the same methods for a server on another machine. `wrap` gives a client of OpenAI's a memory, and
`conversation` says whose; `RecollectStore` is for LangGraph, `MemoryCapability` for pydantic-ai. `projection` and `job`
declare read models and nightly work of other packages.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect.api.client.async_client import AsyncClient
    from recollect.api.client.client import Client
    from recollect.api.integrations.conversation_scope import conversation
    from recollect.api.integrations.langgraph_store import RecollectStore
    from recollect.api.integrations.openai_client import wrap
    from recollect.api.integrations.pydantic_ai_capability import MemoryCapability
    from recollect.api.memory.async_recollect import AsyncRecollect
    from recollect.api.memory.recollect import Recollect
    from recollect.jobs.following.extensions import JobRun, job, projection

__all__ = [
    "AsyncClient",
    "AsyncRecollect",
    "Client",
    "JobRun",
    "MemoryCapability",
    "Recollect",
    "RecollectStore",
    "conversation",
    "job",
    "projection",
    "wrap",
]

#: The modules of the names.
_MODULES = {
    "AsyncClient": "recollect.api.client.async_client",
    "AsyncRecollect": "recollect.api.memory.async_recollect",
    "Client": "recollect.api.client.client",
    "JobRun": "recollect.jobs.following.extensions",
    "MemoryCapability": "recollect.api.integrations.pydantic_ai_capability",
    "Recollect": "recollect.api.memory.recollect",
    "RecollectStore": "recollect.api.integrations.langgraph_store",
    "conversation": "recollect.api.integrations.conversation_scope",
    "job": "recollect.jobs.following.extensions",
    "projection": "recollect.jobs.following.extensions",
    "wrap": "recollect.api.integrations.openai_client",
}


def __getattr__(name: str) -> object:
    # Late, so that `recollect.events` and the clients can be used without loading retrieval and its libraries.
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
