"""Repeated texts: keeps one of several episodes in which a speaker says the same words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from recollect.api.retrieval.ranking.candidates import Mask
from recollect.api.retrieval.ranking.ranked_episodes import RankedEpisodes
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.queries.queried_episodes import EpisodeDetails
from recollect.projections.search_index.episode_arrays import Ints
from recollect.projections.text.words import folded_words

#: Characters of a text that are compared.
_CHARS_MAX = 2_000
#: Characters at the beginning of a text, and words in them, by which most texts differ.
_BEGINNING_CHARS = 100
_BEGINNING_WORDS = 5
#: Candidates that are read at once when the first ones were not enough: a statement costs as much as three candidates.
_PAGE_EPISODES = 10
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
    texts = _Texts()
    #: Time, version, id and candidate of the episodes with each text.
    groups: dict[int, list[tuple[int, int, str, int]]] = {}
    positions: list[int] = []
    order: list[int] = ranked.order.tolist()
    versions: list[int] = context.episodes.versions[ranked.candidates.rows[ranked.order]].tolist()
    page = slice(0, count)
    for position, (candidate, version) in enumerate(zip(order, versions, strict=True)):
        if position == page.start:
            context.snapshot.episodes.read_details(versions[page])
            page = slice(page.stop, page.stop + _PAGE_EPISODES)
        episode = context.snapshot.episodes.details(version)
        first = texts.first_with(episode)
        if first == version:
            if len(positions) == count:
                # A repetition after the last candidate would only add to its sources.
                break
            positions.append(position)
        groups.setdefault(first, []).append((episode.occurred_at_us, version, episode.id, candidate))
    newest_first = [sorted(group, reverse=True) for group in groups.values()]
    return DistinctEpisodes(
        np.array(positions, np.int64),
        np.array([group[0][3] for group in newest_first], np.int64),
        [tuple(id for _, _, id, _ in group[1:_SOURCES_MAX]) for group in newest_first],
    )


class _Texts:
    """The episodes of a ranking by what they say. Most texts differ in their first words, so few are read whole."""

    def __init__(self) -> None:
        #: The first episode with each speaker and beginning.
        self._by_beginning: dict[tuple[str, tuple[str, ...]], EpisodeDetails] = {}
        #: The version of the first episode with each whole text, of the beginnings that several episodes have.
        self._by_text: dict[tuple[str, str, str], int] = {}

    def first_with(self, episode: EpisodeDetails) -> int:
        """Return the version of the first episode with the text and the speaker of `episode`: its own if it is new."""
        first = self._by_beginning.setdefault((episode.speaker, _beginning(episode.text)), episode)
        if first.version == episode.version:
            return episode.version
        self._by_text.setdefault(_key(first), first.version)
        return self._by_text.setdefault(_key(episode), episode.version)


def _key(episode: EpisodeDetails) -> tuple[str, str, str]:
    """Return what two episodes with the same text and speaker have in common."""
    text = " ".join(folded_words(episode.text[:_CHARS_MAX])) or episode.text
    return (episode.speaker, text, episode.caption or "")


def _beginning(text: str) -> tuple[str, ...]:
    """Return the first words of a text."""
    words = folded_words(text[:_BEGINNING_CHARS])
    # The last word may go on after the beginning.
    if len(words) <= _BEGINNING_WORDS:
        words = folded_words(text[:_CHARS_MAX])
    return tuple(words[:_BEGINNING_WORDS])
