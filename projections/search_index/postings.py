"""Postings: cache the posting lists of the words of past queries, read from FTS5 at a word's first use.

FTS5 ranks every match of a common word in each search, which is the largest cost of a retrieval. So the posting list of
a word is read once and extended by later episodes. The keyword index in SQLite stays authoritative, and nothing is
loaded at the start.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import Any, Protocol

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from recollect.events.storage.bounded_cache import BoundedCache
from recollect.projections.queries.keyword_queries import KeywordQueries
from recollect.projections.search_index.episode_arrays import Ints
from recollect.projections.search_index.growing_arrays import GrowingArrays

#: Entries of all cached posting lists together: 24 MB.
ENTRIES_MAX = 4_000_000
_ENTRY_BYTES = 6
#: Events since the last search over which the cached lists are read again instead of being extended.
TAIL_EVENTS_MAX = 500
#: Characters of their texts for the same: 1 MB of text takes 0.5 s to stem, the lists of a query's words 10 ms to read.
TAIL_CHARS_MAX = 500_000


class Posting(Struct, frozen=True):
    """The posting list of a stem: the episodes that contain it, one entry each."""

    #: Versions of the episodes, ascending.
    versions: NDArray[np.integer[Any]]
    #: Occurrences in the episode itself, 255 at most.
    turn: NDArray[np.uint8]
    #: Occurrences in the episode and the episode before it, 255 at most.
    window: NDArray[np.uint8]
    #: The memory of the arrays: later episodes are appended there.
    columns: GrowingArrays = field(default_factory=GrowingArrays)


class PostingLists(Protocol):
    """The posting lists of a read model, by stem."""

    @property
    def size_bytes(self) -> int:
        """Return the memory of the cached posting lists."""
        ...

    def get(self, index: KeywordQueries, terms: Sequence[str], version: int) -> list[Posting]:
        """Return the posting lists of stemmed `terms`; see `Postings.get`."""
        ...


class PostingsWithTurns:
    """The posting lists of a read model and of turns that it no longer holds.

    Parameters:
        postings: those of the read model.
        turns: version, occurrences of each stem, and version of the turn before or None, ascending by version; no
            version has an episode in the read model.
    """

    def __init__(self, postings: PostingLists, turns: Sequence[tuple[int, Mapping[str, int], int | None]]) -> None:
        self._postings = postings
        self._turns = turns

    @property
    def size_bytes(self) -> int:
        """Return the memory of the cached posting lists."""
        return self._postings.size_bytes

    def get(self, index: KeywordQueries, terms: Sequence[str], version: int) -> list[Posting]:
        """Return the posting lists of stemmed `terms`; see `Postings.get`."""
        wanted = set(terms)
        counts: dict[int | None, dict[str, int]] = {}
        entries: dict[str, list[tuple[int, int, int]]] = {term: [] for term in terms}
        for turn, stems, turn_before in self._turns:
            own = counts[turn] = {term: stems[term] for term in wanted & stems.keys()}
            before = counts.get(turn_before, {})
            for term in own.keys() | before.keys():
                count = own.get(term, 0)
                entries[term].append((turn, count, count + before.get(term, 0)))
        stored = zip(terms, self._postings.get(index, terms, version), strict=True)
        return [merge_postings([posting, _posting_of(entries[term])]) for term, posting in stored]


class Postings:
    """The cached posting lists of one read model. Safe to use from many threads.

    Parameters:
        entries_max: entries of all cached posting lists together.
        tail_events_max: events since the last search over which the cache is cleared.
    """

    def __init__(self, *, entries_max: int = ENTRIES_MAX, tail_events_max: int = TAIL_EVENTS_MAX) -> None:
        self._tail_events_max = tail_events_max
        self._terms: BoundedCache[str, Posting] = BoundedCache(entries_max, _entry_count)
        #: All cached posting lists contain the episodes up to this version.
        self._through = 0
        self._lock = threading.Lock()

    @property
    def size_bytes(self) -> int:
        """Return the memory of the cached posting lists."""
        return _ENTRY_BYTES * self._terms.size

    def get(self, index: KeywordQueries, terms: Sequence[str], version: int) -> list[Posting]:
        """Return the posting lists of stemmed `terms`.

        A cached list may contain episodes after `version`; the caller drops them.

        Parameters:
            index: the keyword index of the read model at `version`.
        """
        with self._lock:
            if version > self._through:
                self._advance(index, version)
            postings = self._terms.get_all(terms)
        # Read without the lock, so that other threads can search.
        read = {term: _read(index, term) for term in dict.fromkeys(terms) if term not in postings}
        with self._lock:
            # A list read at an older version than the cache's lacks the episodes between the two.
            if version == self._through:
                for term, posting in read.items():
                    self._terms.put(term, posting, unless=_is_cached)
        postings |= read
        return [postings[term] for term in terms]

    def _advance(self, index: KeywordQueries, version: int) -> None:
        """Extend the cached posting lists to `version`, or clear the cache when that is faster."""
        cached = self._terms.keys()
        tail: dict[str, list[tuple[int, int, int]]] | None = None
        if cached and version - self._through <= self._tail_events_max:
            tail = _tail(index, self._through, version, cached)
        if tail is None:
            self._terms.clear()
        else:
            self._add(tail)
        self._through = version

    def _add(self, tail: Mapping[str, Sequence[tuple[int, int, int]]]) -> None:
        """Append the entries of `tail` to the cached posting lists of their stems."""
        self._terms.put_all(
            {term: _appended(cached, _posting_of(tail[term])) for term, cached in self._terms.get_all(tail).items()}
        )


def _entry_count(posting: Posting) -> int:
    return len(posting.versions)


def _is_cached(_posting: Posting) -> bool:
    return True


def merge_postings(postings: Sequence[Posting]) -> Posting:
    """Return the union of the posting lists of a word's variants, with the count of the most frequent variant."""
    filled = [posting for posting in postings if len(posting.versions)]
    if len(filled) <= 1:
        return filled[0] if filled else postings[0]
    versions, rows = np.unique(np.concatenate([posting.versions for posting in filled]), return_inverse=True)
    turn, window = np.zeros(len(versions), np.uint8), np.zeros(len(versions), np.uint8)
    np.maximum.at(turn, rows, np.concatenate([posting.turn for posting in filled]))
    np.maximum.at(window, rows, np.concatenate([posting.window for posting in filled]))
    return Posting(versions, turn, window)


def stem_words(index: KeywordQueries, words: Sequence[str]) -> list[list[str]]:
    """Return the stems of each of `words` in the keyword index: mostly one, sometimes none or several."""
    stem = index.stemmer()
    return [stem(word) for word in words]


def _read(index: KeywordQueries, term: str) -> Posting:
    # Each occurrence is a number: twice the version, plus 1 when it is in the episode itself.
    occurrences = np.fromstring(index.occurrences(term), np.int64, sep=" ")
    return _posting(occurrences >> 1, occurrences & 1)


def _appended(posting: Posting, tail: Posting) -> Posting:
    """Return a posting list with the entries of later episodes at its end."""
    columns, arrays = posting.columns.extended(_arrays(posting), _arrays(tail))
    return Posting(arrays["versions"], arrays["turn"], arrays["window"], columns)


def _tail(
    index: KeywordQueries, after: int, version: int, terms: Set[str]
) -> dict[str, list[tuple[int, int, int]]] | None:
    """Return version and counts in turn and window, by stem in `terms`, of the episodes after `after` up to `version`.

    None stands for episodes with more than `TAIL_CHARS_MAX` characters, such as one message of 1 MiB.
    """
    stem = index.stemmer()
    entries: dict[str, list[tuple[int, int, int]]] = {}
    chars_left = TAIL_CHARS_MAX
    for episode_version, text, caption, previous in index.indexed_texts(after, version):
        chars_left -= sum(len(part) for part in (text, caption, previous) if part)
        if chars_left < 0:
            return None
        own = Counter(term for part in (text, caption) if part for term in stem(part) if term in terms)
        window = own + Counter(term for term in stem(previous) if term in terms) if previous else own
        for term, count in window.items():
            entries.setdefault(term, []).append((episode_version, own[term], count))
    return entries


def _posting_of(entries: Sequence[tuple[int, int, int]]) -> Posting:
    """Return the posting list of a stem from versions with their counts in the turn and in the window."""
    versions, turn, window = np.array(entries, np.int64).reshape(-1, 3).T
    counts = np.minimum(turn, 255).astype(np.uint8), np.minimum(window, 255).astype(np.uint8)
    return Posting(versions.astype(np.int32), *counts)


def _posting(versions: Ints, own: Ints) -> Posting:
    """Return the posting list of a stem.

    Parameters:
        versions: the episode of each occurrence, ascending, shape (occurrences,).
        own: 1 for an occurrence in the episode itself, 0 for one in the episode before it.
    """
    if not len(versions):
        return Posting(versions.astype(np.int32), np.empty(0, np.uint8), np.empty(0, np.uint8))
    starts = np.flatnonzero(np.diff(versions, prepend=versions[0] - 1))
    return Posting(versions[starts].astype(np.int32), _counts(own, starts), _counts(np.ones_like(own), starts))


def _arrays(posting: Posting) -> dict[str, NDArray[Any]]:
    return {"versions": posting.versions, "turn": posting.turn, "window": posting.window}


def _counts(values: Ints, starts: Ints) -> NDArray[np.uint8]:
    """Return the sum of `values` in each group that begins at one of `starts`, 255 at most."""
    return np.minimum(np.add.reduceat(values, starts), 255).astype(np.uint8)
