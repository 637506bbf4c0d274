"""Repeated texts: keeps one of several episodes in which a speaker says the same words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from recollect.api.retrieval.ranking.candidates import Mask
from recollect.api.retrieval.ranking.features import known_text_flags
from recollect.api.retrieval.ranking.ranked_episodes import RankedEpisodes
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.queries.episode_queries import EpisodeQueries
from recollect.projections.search_index.episode_arrays import Ints
from recollect.projections.text.text_flags import KEY_SHIFT, WORD_COUNT, keyed_words

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
        """Return the texts that `mask` selects."""
        ids = [ids for ids, selected in zip(self.older_ids, mask.tolist(), strict=True) if selected]
        return DistinctEpisodes(self.positions[mask], self.candidates[mask], ids)

    def by(self, scores: Vector) -> DistinctEpisodes:
        """Return them by falling score of the candidates."""
        order: Ints = np.argsort(-scores[self.candidates], kind="stable")
        places: list[int] = order.tolist()
        ids = [self.older_ids[place] for place in places]
        return DistinctEpisodes(self.positions[order], self.candidates[order], ids)


def distinct_episodes(context: SearchContext, ranked: RankedEpisodes, count: int) -> DistinctEpisodes:
    """Return the first `count` candidates with different texts or speakers.

    Letter case, punctuation and white space make no difference.
    """
    rows = ranked.candidates.rows[ranked.order]
    keys = _keys(context, rows)
    if len({*keys}) == len(keys):
        # Nearly always, everything is said once.
        positions = np.arange(min(count, len(keys)))
        return DistinctEpisodes(positions, ranked.order[positions], [()] * len(positions))
    versions: list[int] = context.episodes.versions[rows].tolist()
    texts = _Texts(context.snapshot.episodes)
    #: The positions with each text, by the first of them.
    groups: dict[int, list[int]] = {}
    for position, (version, key) in enumerate(zip(versions, keys, strict=True)):
        first = texts.first_with(key, position, version)
        if first == position and len(groups) == count:
            # A repetition after the last candidate would only add to its sources.
            break
        groups.setdefault(first, []).append(position)
    occurred: list[int] = context.episodes.occurred_at_us[rows].tolist()
    newest_first = [
        sorted(group, key=lambda position: (occurred[position], versions[position]), reverse=True)
        for group in groups.values()
    ]
    ids = context.snapshot.episodes.ids([versions[older] for group in newest_first for older in group[1:_SOURCES_MAX]])
    return DistinctEpisodes(
        np.array([*groups], np.int64),
        ranked.order[np.array([group[0] for group in newest_first], np.int64)],
        [tuple(ids[versions[older]] for older in group[1:_SOURCES_MAX]) for group in newest_first],
    )


def _keys(context: SearchContext, rows: Ints) -> list[int]:
    """Return the key of the text of each episode."""
    flags = known_text_flags(context.snapshot.episodes, context.episodes, rows, WORD_COUNT)
    keys: list[int] = (flags >> KEY_SHIFT).tolist()
    return keys


class _Texts:
    """The candidates by what they say. Few have the same key, so few are read."""

    def __init__(self, episodes: EpisodeQueries) -> None:
        self._episodes = episodes
        #: Position and version of the first candidate with each key.
        self._by_key: dict[int, tuple[int, int]] = {}
        #: The first position with each text, of the keys that several candidates have. Any number of texts may be made
        #: with one key, so each is looked up and not compared with all.
        self._by_text: dict[tuple[str, str, str], int] = {}

    def first_with(self, key: int, position: int, version: int) -> int:
        """Return the first position with the text and the speaker of a candidate: its own if they are new."""
        first, first_version = self._by_key.setdefault(key, (position, version))
        if first == position:
            return position
        self._by_text.setdefault(self._said(first_version), first)
        return self._by_text.setdefault(self._said(version), position)

    def _said(self, version: int) -> tuple[str, str, str]:
        """Return what two episodes with the same text and speaker have in common."""
        episode = self._episodes.details(version)
        return episode.speaker, keyed_words(episode.text), episode.caption or ""
