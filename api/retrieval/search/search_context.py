"""Search context: one query to one read model, with everything a search needs."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.api.retrieval.contract.time_budget import TimeBudget
from recollect.api.retrieval.understanding.query import Query
from recollect.events.backends.log import EventLog
from recollect.projections.embeddings.vectors import Vectors
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.search_index.episode_arrays import EpisodeArrays
from recollect.projections.search_index.index_cache import IndexSnapshot


@dataclass(frozen=True, slots=True)
class SearchContext:
    """One query to one read model."""

    namespace: str
    request: RetrieveRequest
    snapshot: Snapshot
    index: IndexSnapshot
    query: Query
    asked_at_us: int
    vectors: Vectors
    log: EventLog
    budget: TimeBudget

    @property
    def episodes(self) -> EpisodeArrays:
        """Return the episodes that are there."""
        return self.index.episodes
