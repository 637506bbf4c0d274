"""Search result: the items of one namespace for a query, and the dropped candidates with reasons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from recollect.api.retrieval.contract.request import Kind
from recollect.api.retrieval.contract.result import Item
from recollect.api.retrieval.ranking.ranked_episodes import RankedEpisodes
from recollect.api.retrieval.search.search_context import SearchContext


class DroppedCandidate(NamedTuple):
    """A candidate that was left out of the result."""

    id: str
    kind: Kind
    score: float
    #: The reason, as traces record it.
    reason: str


class SearchResult(Struct, frozen=True):
    """The result of searching one namespace."""

    context: SearchContext
    #: The items, best first, at most `limit`.
    items: Sequence[Item]
    #: The probability that memory has an answer, 0 to 1.
    grounding: float
    #: The ranked candidates; None when episodes were not searched or none matched.
    ranked: RankedEpisodes | None
    dropped: Sequence[DroppedCandidate]
    #: Why there are no items, for the user; None: there are, or the gate has dropped them.
    reason: str | None = None
    #: Whether memory helps with the query; False: the gate has dropped what was found.
    helps: bool = True


def shared_reason(results: Sequence[SearchResult]) -> str | None:
    """Return why none of the searched namespaces has an item; None when one has, or none says why."""
    if any(result.items for result in results):
        return None
    return next((result.reason for result in results if result.reason is not None), None)
