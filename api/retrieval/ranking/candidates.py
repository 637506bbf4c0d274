"""Which episodes are looked at closely: the first ones of every list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect.api.retrieval.search.keyword_search import KeywordScores
from recollect.api.retrieval.search.semantic_search import SemanticScores
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.search_index.episode_arrays import Ints

#: How deep each list goes, whatever the limit: so a larger limit shows more of the same order.
DEPTH = 100
#: Newest episodes without vectors that are looked at whatever they say.
_RECENT = 20
#: Episodes from which on the highest values are looked for in two steps, the first over stretches of so many.
_STRETCH = 32
_MANY = 2 * DEPTH * _STRETCH

#: Cosines under this say nothing: what nothing else finds is no candidate.
_COSINE_MIN = 0.15

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Candidates:
    """The episodes that are looked at closely."""

    #: Places in the roster, rising.
    rows: Ints
    #: Each list's places, best first.
    lists: Mapping[str, Ints]

    def ranks(self, row: int) -> dict[str, int]:
        """Return the rank, from 1, of a place in each list that has it."""
        found = {name: np.flatnonzero(rows == row) for name, rows in self.lists.items()}
        return {name: int(at[0]) + 1 for name, at in found.items() if len(at)}


def select_candidates(
    allowed: Mask,
    keywords: KeywordScores,
    semantics: SemanticScores | None,
    others: Mapping[str, Ints],
    in_span: Mask | None,
) -> Candidates:
    """Return the candidates among the episodes that are `allowed`.

    Parameters:
        others: further lists, as places best first.
        in_span: the episodes of the time that is asked for, if one is.
    """
    lists = {
        "keyword": _top(keywords.turn, allowed & (keywords.turn > 0)),
        "keyword_window": _top(keywords.window, allowed & (keywords.window > 0)),
    }
    nearness = keywords.window
    if semantics is not None:
        for part, values in semantics.parts.items():
            name = "semantic" if part == "turn" else f"semantic_{part}"
            lists[name] = _top(values, allowed & (values > _COSINE_MIN))
        nearness = np.nan_to_num(semantics.parts["window"])
    if in_span is not None:
        lists["time"] = _top(nearness, allowed & in_span)
    lists |= {name: rows[allowed[rows]][:DEPTH] for name, rows in others.items()}
    if semantics is not None:
        # Too new to have vectors, maybe, and what "that" means when they were just said.
        newest = np.flatnonzero(allowed & np.isnan(semantics.parts["turn"]))
        lists["recent"] = newest[-_RECENT:][::-1]
    found = {name: rows for name, rows in lists.items() if len(rows)}
    rows = np.unique(np.concatenate([*found.values()])) if found else np.empty(0, np.int64)
    return Candidates(rows, found)


def _top(values: Vector, allowed: Mask) -> Ints:
    """Return the places of the `DEPTH` highest values, best first; of equal ones the newest."""
    if len(values) >= _MANY:
        # As many stretches have a maximum as high as the edge, so it is not above the edge of all: few are left.
        shown = np.where(allowed, values, np.float32(-np.inf))
        highest = np.maximum.reduceat(shown, np.arange(0, len(shown), _STRETCH))
        places = np.flatnonzero(shown >= np.partition(highest, len(highest) - DEPTH)[len(highest) - DEPTH])
        places = places[allowed[places]]
    else:
        places = np.flatnonzero(allowed)
    chosen = values[places]
    if len(places) > DEPTH:
        near = chosen >= np.partition(chosen, len(chosen) - DEPTH)[len(chosen) - DEPTH]
        places, chosen = places[near], chosen[near]
    return places[np.lexsort((-places, -chosen))][:DEPTH]
