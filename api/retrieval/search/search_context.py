"""Search context: one query on one snapshot of a read model, with the resources of its search."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.api.retrieval.contract.time_budget import TimeBudget
from recollect.api.retrieval.understanding.query import Query
from recollect.api.settings import RetrievalSettings
from recollect.events.backends.log import EventLog
from recollect.events.envelope import microseconds
from recollect.projections.embeddings.model_runtime import PendingEmbedding
from recollect.projections.embeddings.vectors import Vectors
from recollect.projections.queries.restriction_queries import NOTHING_HIDDEN, HiddenMemories
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.search_index.episode_arrays import EpisodeArrays
from recollect.projections.search_index.index_cache import IndexSnapshot


class SearchContext(Struct, frozen=True):
    """One query on one snapshot of a read model."""

    namespace: str
    request: RetrieveRequest
    #: The read model at one version, for queries.
    snapshot: Snapshot
    #: The in-memory indexes of the same version.
    index: IndexSnapshot
    #: The understood query.
    query: Query
    #: The time of the query, in the zone of the asker.
    asked_at: datetime
    #: The vectors of the active embedding model.
    vectors: Vectors
    #: The query's embedding, which is computed meanwhile; None when it has not been started.
    embedding: PendingEmbedding | None
    log: EventLog
    budget: TimeBudget
    settings: RetrievalSettings
    #: The memories that the asker must not be shown.
    hidden: HiddenMemories = NOTHING_HIDDEN

    @property
    def asked_at_us(self) -> int:
        """Return the time of the query, in microseconds since 1970 UTC."""
        return microseconds(self.asked_at)

    @property
    def episodes(self) -> EpisodeArrays:
        """Return the arrays of the live episodes."""
        return self.index.episodes

    def passes_metadata(self, kind: str, id: str) -> bool:
        """Return whether an item is labelled as the request wants: the messages that state it, or the item itself."""
        selections = self.request.metadata_selections()
        return not selections or self.snapshot.pages.passes(kind, id, selections)
