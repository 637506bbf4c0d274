"""Candidates: the first episodes of every ranked list, whose features are measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from recollect.api.retrieval.search.keyword_search import KeywordScores
from recollect.api.retrieval.search.semantic_search import SemanticScores
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.search_index.episode_arrays import Ints

#: Candidates from each ranked list. It does not depend on the limit, so that a larger limit extends the same order.
LIST_DEPTH = 100
#: The newest episodes without vectors that are always candidates.
_RECENT_MAX = 20
#: From two blocks of this many allowed episodes for each entry of a list on, `_top_rows` first compares block maxima.
_BLOCK_EPISODES = 32

Mask = NDArray[np.bool_]


class Candidates(Struct, frozen=True):
    """The candidates of one query, and the lists they are from."""

    #: Rows of the episode arrays, ascending.
    rows: Ints
    #: The rows of each list, best first.
    lists: Mapping[str, Ints]

    def ranks(self, rows: Iterable[int]) -> dict[int, dict[str, int]]:
        """Return the rank, from 1, of each of `rows` in each list that has it, by row and name of the list."""
        ranks: dict[int, dict[str, int]] = {row: {} for row in rows}
        for name, listed in self.lists.items():
            for rank, row in enumerate(listed.tolist(), start=1):
                if row in ranks:
                    ranks[row].setdefault(name, rank)
        return ranks


def select_candidates(
    allowed: Mask,
    keywords: KeywordScores,
    semantics: SemanticScores | None,
    other_lists: Mapping[str, Ints],
    in_span: Mask | None,
) -> Candidates:
    """Return the candidates among the episodes that are `allowed`.

    Parameters:
        other_lists: further lists: rows of the episode arrays, best first.
        in_span: the mask of the episodes within the query's time ranges; None without time ranges.
    """
    lists = {
        "keyword": _top_rows(keywords.turn, allowed & (keywords.turn > 0), LIST_DEPTH),
        "keyword_window": _top_rows(keywords.window, allowed & (keywords.window > 0), LIST_DEPTH),
    }
    if semantics is not None:
        for part, values in semantics.parts.items():
            name = "semantic" if part == "turn" else f"semantic_{part}"
            lists[name] = _top_rows(values, allowed & ~np.isnan(values), LIST_DEPTH)
    if in_span is not None:
        similarities = keywords.window if semantics is None else np.nan_to_num(semantics.parts["window"])
        lists["time"] = _top_rows(similarities, allowed & in_span, LIST_DEPTH)
    lists |= {name: rows[allowed[rows]][:LIST_DEPTH] for name, rows in other_lists.items()}
    if semantics is not None:
        # The newest turns may have no vectors yet, and "that" in a query often refers to them.
        newest = np.flatnonzero(allowed & np.isnan(semantics.parts["turn"]))
        lists["recent"] = newest[-_RECENT_MAX:][::-1]
    nonempty_lists = {name: rows for name, rows in lists.items() if len(rows)}
    listed = np.zeros(len(allowed), np.bool_)
    for rows in nonempty_lists.values():
        listed[rows] = True
    return Candidates(np.flatnonzero(listed), nonempty_lists)


def _top_rows(values: Vector, allowed: Mask, depth: int) -> Ints:
    """Return the rows of the `depth` highest values, best first; of equal values the newest row first."""
    if np.count_nonzero(allowed) >= 2 * depth * _BLOCK_EPISODES:
        # `depth` values or more reach the `depth`-th highest block maximum, so lower values are not needed.
        masked = np.where(allowed, values, np.float32(-np.inf))
        block_maxima = np.maximum.reduceat(masked, np.arange(0, len(masked), _BLOCK_EPISODES))
        rows = np.flatnonzero(
            masked >= np.partition(block_maxima, len(block_maxima) - depth)[len(block_maxima) - depth]
        )
        rows = rows[allowed[rows]]
    else:
        rows = np.flatnonzero(allowed)
    row_values = values[rows]
    if len(rows) > depth:
        over_cut = row_values >= np.partition(row_values, len(row_values) - depth)[len(row_values) - depth]
        rows, row_values = rows[over_cut], row_values[over_cut]
    return rows[np.lexsort((-rows, -row_values))][:depth]
