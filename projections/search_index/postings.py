"""Keyword search over one read model: BM25 from postings that are read from FTS5 when a word is first asked for.

FTS5 ranks every match of a common word in each search, which is the largest cost of a retrieval. Here the places of a
word are read once and kept in memory; what comes later is added. SQLite stays the truth, and there is nothing to load
at the start.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.events.storage.bounded_cache import BoundedCache
from recollect.projections.queries.keyword_queries import KeywordQueries
from recollect.projections.search_index.episode_arrays import Ints

#: Places of words kept in memory, a word's places together: 6 bytes each and 10 more for each word.
PLACES_MAX = 4_000_000
#: Events folded since the last search, over which the words are read anew instead of being looked for in what came.
TAIL_EVENTS_MAX = 500


@dataclass(frozen=True, slots=True)
class Posting:
    """The episodes that hold a word."""

    #: Rising.
    versions: Ints
    #: How often each holds it itself.
    turn: NDArray[np.uint8]
    #: How often it and the one before it hold it.
    window: NDArray[np.uint8]


class Postings:
    """The words of one read model that were asked for. Safe to use from many threads.

    Parameters:
        places_max: places of words kept in memory.
        tail_events_max: events since the last search over which the words are read again.
    """

    def __init__(self, *, places_max: int = PLACES_MAX, tail_events_max: int = TAIL_EVENTS_MAX) -> None:
        self._tail_events_max = tail_events_max
        self._terms: BoundedCache[str, Posting] = BoundedCache(places_max, _places)
        #: The version that all of them know the episodes up to.
        self._through = 0
        self._lock = threading.Lock()

    def get(self, index: KeywordQueries, terms: Sequence[str], version: int) -> list[Posting]:
        """Return the postings of stemmed `terms` in a read model that is at `version`; they may know later episodes."""
        with self._lock:
            if version > self._through:
                self._advance(index, version)
            found = self._terms.get_all(terms)
        # Others search meanwhile.
        read = {term: _read(index, term) for term in dict.fromkeys(terms) if term not in found}
        with self._lock:
            # Read at an older version than the others are at, they would miss what came between.
            if version == self._through:
                for term, posting in read.items():
                    self._terms.put(term, posting, unless=_is_kept)
        found |= read
        return [found[term] for term in terms]

    def _advance(self, index: KeywordQueries, version: int) -> None:
        """Add what came up to `version` to the words that are known."""
        if len(self._terms) and version - self._through <= self._tail_events_max:
            self._add(_tail(index, self._through, version))
        else:
            self._terms.clear()
        self._through = version

    def _add(self, tail: Mapping[str, Posting]) -> None:
        self._terms.put_all(
            {
                term: Posting(*(np.concatenate(pair) for pair in zip(_arrays(known), _arrays(tail[term]), strict=True)))
                for term, known in self._terms.get_all(tail).items()
            }
        )


def _places(posting: Posting) -> int:
    return len(posting.versions)


def _is_kept(_posting: Posting) -> bool:
    return True


def merge_postings(postings: Sequence[Posting]) -> Posting:
    """Return the posting of what stands in different forms: where one is held, as often as the most frequent one."""
    held = [posting for posting in postings if len(posting.versions)]
    if len(held) <= 1:
        return held[0] if held else postings[0]
    versions, places = np.unique(np.concatenate([posting.versions for posting in held]), return_inverse=True)
    turn, window = np.zeros(len(versions), np.uint8), np.zeros(len(versions), np.uint8)
    np.maximum.at(turn, places, np.concatenate([posting.turn for posting in held]))
    np.maximum.at(window, places, np.concatenate([posting.window for posting in held]))
    return Posting(versions, turn, window)


def stem_words(index: KeywordQueries, words: Sequence[str]) -> list[list[str]]:
    """Return each of `words` as the keyword index holds it: mostly one stem, sometimes none or several."""
    stem = index.stemmer()
    return [stem(word) for word in words]


def _read(index: KeywordQueries, term: str) -> Posting:
    marked = np.fromstring(index.places(term), np.int64, sep=" ")
    return _posting(marked >> 1, marked & 1)


def _tail(index: KeywordQueries, after: int, version: int) -> dict[str, Posting]:
    """Return the postings of the episodes between two versions, of all their words."""
    stem = index.stemmer()
    places: dict[str, list[tuple[int, int]]] = {}
    for number, *texts in index.indexed_texts(after, version):
        for own, text in zip((1, 1, 0), texts, strict=True):
            for term in stem(text) if text else ():
                places.setdefault(term, []).append((number, own))
    return {term: _posting(*np.array(found, np.int64).T) for term, found in places.items()}


def _posting(places: Ints, own: Ints) -> Posting:
    """Return the posting of a word that stands once at each of `places`, which rise."""
    if not len(places):
        return Posting(places, np.empty(0, np.uint8), np.empty(0, np.uint8))
    starts = np.flatnonzero(np.diff(places, prepend=places[0] - 1))
    return Posting(places[starts], _counts(own, starts), _counts(np.ones_like(own), starts))


def _arrays(posting: Posting) -> tuple[NDArray[Any], ...]:
    return posting.versions, posting.turn, posting.window


def _counts(marks: Ints, starts: Ints) -> NDArray[np.uint8]:
    return np.minimum(np.add.reduceat(marks, starts), 255).astype(np.uint8)
