"""Ranked episodes: the candidates of a search with features, scores and order."""

from __future__ import annotations

from msgspec import Struct

from recollect.api.retrieval.ranking.candidates import Candidates
from recollect.api.retrieval.ranking.features import SearchSignals
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.search_index.episode_arrays import Ints


class RankedEpisodes(Struct, frozen=True):
    """The candidates of one query in their order."""

    #: The search that ranked them: its episodes are those of the read model, or turns in place of summaries.
    context: SearchContext
    #: The candidates; the arrays below follow their rows.
    candidates: Candidates
    #: The scores and masks that the features are computed from.
    signals: SearchSignals
    #: Late-interaction scores, shape (candidates,); None without vectors.
    late: Vector | None
    #: The features, shape (candidates, len(FEATURES)).
    matrix: Vector
    #: The score of each candidate, shape (candidates,).
    scores: Vector
    #: Indexes of candidates, best first.
    order: Ints
