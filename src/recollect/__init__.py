"""Recollect: long-term memory for chat bots and agents, built on event sourcing.

``from recollect import Recollect`` is all that a bot needs; `AsyncRecollect` is the same for asyncio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect.api.memory.async_recollect import AsyncRecollect
    from recollect.api.memory.recollect import Recollect

__all__ = ["AsyncRecollect", "Recollect"]


def __getattr__(name: str) -> object:
    # Late, so that `recollect.events` can be used without loading retrieval and its libraries.
    if name in __all__:
        from recollect.api.memory import async_recollect  # noqa: PLC0415

        return getattr(async_recollect, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
