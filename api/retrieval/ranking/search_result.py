"""Search result: what one namespace has for a query, and what was dropped and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from recollect.api.retrieval.contract.request import Kind
from recollect.api.retrieval.contract.result import Item
from recollect.api.retrieval.ranking.ranked_episodes import RankedEpisodes
from recollect.api.retrieval.search.search_context import SearchContext


class DroppedCandidate(NamedTuple):
    """A candidate that is not in the answer, and why."""

    id: str
    kind: Kind
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a namespace has."""

    context: SearchContext
    #: Best first, at most as many as were asked for.
    items: Sequence[Item]
    #: How likely there is an answer.
    grounding: float
    ranked: RankedEpisodes | None
    dropped: Sequence[DroppedCandidate]
