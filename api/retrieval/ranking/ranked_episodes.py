"""Ranked episodes: the candidates of a search in their order."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.api.retrieval.ranking.candidates import Candidates
from recollect.api.retrieval.ranking.features import SearchSignals
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.search_index.episode_arrays import Ints


@dataclass(frozen=True, slots=True)
class RankedEpisodes:
    """Candidates in an order."""

    candidates: Candidates
    signals: SearchSignals
    #: Shape (candidates, features).
    matrix: Vector
    scores: Vector
    #: Places among the candidates, best first.
    order: Ints
