"""Repeated texts: keeps one of several episodes in which a speaker says the same words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from recollect.api.retrieval.ranking.candidates import Mask
from recollect.api.retrieval.ranking.ranked_episodes import RankedEpisodes
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.projections.search_index.episode_arrays import Ints
from recollect.projections.text.words import WORD

#: Characters of a text that are compared.
_CHARS_MAX = 2_000
#: Repetitions of one text that are named as its sources.
_SOURCES_MAX = 50


class DistinctEpisodes(NamedTuple):
    """The first candidates of a ranking with different texts."""

    #: Positions in `RankedEpisodes.order`, best first.
    positions: Ints
    #: For each of them the candidate that is shown: the newest one with its text.
    candidates: Ints
    #: For each of them the ids of the older episodes with its text, newest first.
    older_ids: Sequence[tuple[str, ...]]

    def where(self, mask: Mask) -> DistinctEpisodes:
        """Return the ones that `mask` selects."""
        ids = [ids for ids, selected in zip(self.older_ids, mask.tolist(), strict=True) if selected]
        return DistinctEpisodes(self.positions[mask], self.candidates[mask], ids)


def distinct_episodes(context: SearchContext, ranked: RankedEpisodes, count: int) -> DistinctEpisodes:
    """Return the first `count` candidates with different texts or speakers.

    Letter case, punctuation and white space make no difference.
    """
    #: Time, version, id and candidate of the episodes with each text.
    groups: dict[tuple[str, ...], list[tuple[int, int, str, int]]] = {}
    positions: list[int] = []
    order: list[int] = ranked.order.tolist()
    versions: list[int] = context.episodes.versions[ranked.candidates.rows[ranked.order]].tolist()
    context.snapshot.episodes.read_details(versions[:count])
    for position, (candidate, version) in enumerate(zip(order, versions, strict=True)):
        episode = context.snapshot.episodes.details(version)
        text = " ".join(WORD.findall(episode.text[:_CHARS_MAX].casefold())) or episode.text
        key = (episode.speaker, text, episode.caption or "")
        if key not in groups:
            if len(positions) == count:
                # A repetition after the last candidate would only add to its sources.
                break
            positions.append(position)
        groups.setdefault(key, []).append((episode.occurred_at_us, version, episode.id, candidate))
    newest_first = [sorted(group, reverse=True) for group in groups.values()]
    return DistinctEpisodes(
        np.array(positions, np.int64),
        np.array([group[0][3] for group in newest_first], np.int64),
        [tuple(id for _, _, id, _ in group[1:_SOURCES_MAX]) for group in newest_first],
    )
