"""Keyword search: BM25 scores of turns, of pairs of turns and of sessions; substring matches as the fallback."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from recollect.api.retrieval.understanding.search_terms import SearchTerm, search_terms
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.queries.episode_queries import EpisodeQueries
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.search_index.episode_arrays import EpisodeArrays, Ints, mean
from recollect.projections.search_index.index_cache import IndexSnapshot
from recollect.projections.search_index.postings import Posting, merge_postings
from recollect.projections.text.segments import is_unsegmented_script, ngrams

#: Parameters of BM25: saturation of term frequency, weight of length (Robertson and Zaragoza 2009; the same as FTS5).
K1 = 1.2
B = 0.75
#: Words of a query that are searched, the rarest first. A question has fewer; the rare words of a pasted text are its
#: topic.
_QUERY_WORDS_MAX = 32
#: Terms in one search: stems of words, and n-grams of unsegmented scripts.
_TERMS_MAX = 64
#: The factor on an n-gram without matches when other n-grams of its run match: it is probably no word.
_UNMATCHED_SEGMENT_FACTOR = 0.25
#: Patterns in one substring search; each is tried on every episode.
_PATTERNS_MAX = 12


class KeywordScores(Struct, frozen=True):
    """The scores of keyword search. Arrays have the shape (episodes,)."""

    #: BM25 of the episode, of the episode with its predecessor, and of its session.
    turn: Vector
    window: Vector
    session: Vector
    #: The share of the query's words in the episode, weighted by IDF: 0 to 1.
    coverage: Vector
    #: The inverse document frequency of each word of the query.
    idf: dict[str, float]
    #: The words of the query that no episode has.
    unmatched: frozenset[str]
    #: The share of the query's words in any episode, weighted by IDF: 0 to 1.
    matched_share: float
    #: The number of words in the search; a run of an unsegmented script counts the sum of its n-grams' weights.
    word_count: float


def keyword_scores(
    snapshot: Snapshot,
    index: IndexSnapshot,
    words: Sequence[str],
    excluded: Sequence[int] = (),
    *,
    german: bool = False,
) -> KeywordScores:
    """Return the keyword scores of every episode for the words of a query.

    Parameters:
        excluded: versions of episodes that count as if they were not there. A message that is searched for has all its
            words itself, which does not show what the rest of memory has.
        german: whether the words get German stems as well.
    """
    episodes = index.episodes
    terms = dict(zip(words, search_terms(snapshot.keywords, words, german=german), strict=True))
    forms = list(dict.fromkeys(form for listed in terms.values() for term in listed for form in term.forms))
    postings = dict(zip(forms, index.postings.get(snapshot.keywords, forms, snapshot.version), strict=True))
    searched = None
    if excluded:
        searched = np.ones(len(episodes), np.bool_)
        searched[episodes.rows_of(np.array(sorted(excluded), np.int64))] = False
    matches = {word: _match_word(episodes, searched, listed, postings) for word, listed in terms.items() if listed}
    idf = {word: _mean_idf(listed) for word, listed in matches.items()}
    # Two words with the same stems are one term.
    rarest = sorted(matches, key=lambda word: idf[word])[-_QUERY_WORDS_MAX:]
    chosen = {term.forms: match for word in rarest for term, match in zip(terms[word], matches[word], strict=True)}
    unmatched = frozenset(word for word, listed in matches.items() if not any(len(match.rows) for match in listed))
    return _score(episodes, list(chosen.values())[-_TERMS_MAX:], idf, unmatched, _word_count(terms))


class _TermMatches:
    """The searched episodes with one term: their rows, and its counts in the turn and in the window."""

    __slots__ = ("counts", "idf", "rows", "weight", "window_counts")

    def __init__(
        self, episodes: EpisodeArrays, searched: NDArray[np.bool_] | None, posting: Posting, weight: float
    ) -> None:
        self.rows, live = episodes.live_rows(posting.versions)
        total = len(episodes)
        if searched is not None:
            kept = searched[self.rows]
            self.rows, live = self.rows[kept], np.flatnonzero(live)[kept]
            total = int(np.count_nonzero(searched))
        self.counts = posting.turn[live].astype(np.float32)
        self.window_counts = posting.window[live].astype(np.float32)
        self.idf = _idf(total, int(np.count_nonzero(self.counts)))
        self.weight = weight


def _match_word(
    episodes: EpisodeArrays,
    searched: NDArray[np.bool_] | None,
    terms: Sequence[SearchTerm],
    postings: Mapping[str, Posting],
) -> list[_TermMatches]:
    """Return the matches of each term of a word among the searched episodes; None: all are searched."""
    matches = [
        _TermMatches(episodes, searched, merge_postings([postings[form] for form in term.forms]), term.weight)
        for term in terms
    ]
    if any(len(match.rows) for match in matches):
        for match in matches:
            if not len(match.rows):
                match.weight *= _UNMATCHED_SEGMENT_FACTOR
    return matches


def _word_count(terms: Mapping[str, Sequence[SearchTerm]]) -> float:
    """Return the number of words; a run of an unsegmented script counts the sum of its n-grams' weights."""
    return sum(
        sum(term.weight for term in listed) if is_unsegmented_script(word) else 1.0 for word, listed in terms.items()
    )


def _mean_idf(matches: Sequence[_TermMatches]) -> float:
    """Return the IDF of a word: the mean of its terms, by their weights."""
    if len(matches) == 1:
        return matches[0].idf
    return sum(match.idf * match.weight for match in matches) / sum(match.weight for match in matches)


def _idf(total: int, holding: int) -> float:
    """Return the inverse document frequency of a term in `holding` of `total` documents."""
    return float(np.log1p((total - holding + 0.5) / (holding + 0.5)))


def _score(
    episodes: EpisodeArrays,
    matches: Sequence[_TermMatches],
    word_idf: dict[str, float],
    unmatched: frozenset[str],
    word_count: float,
) -> KeywordScores:
    """Return the BM25 scores and the coverage of every episode by the matches of all terms."""
    count = len(episodes)
    turn, window, session, coverage = (np.zeros(count, np.float32) for _ in range(4))
    sessions = len(episodes.session_ids)
    session_lengths = episodes.session_lengths / mean(episodes.session_lengths)
    session_scores = np.zeros(sessions, np.float32)
    total, matched = 1e-9, 0.0
    for match in matches:
        lengths = episodes.lengths[match.rows] / episodes.mean_length
        weight = match.idf * match.weight
        turn[match.rows] += weight * _saturated(match.counts, lengths)
        window_lengths = episodes.window_lengths[match.rows] / episodes.mean_window_length
        window[match.rows] += weight * _saturated(match.window_counts, window_lengths)
        coverage[match.rows] += weight * (match.counts > 0)
        counts = np.bincount(episodes.sessions[match.rows], match.counts, minlength=sessions).astype(np.float32)
        session_idf = _idf(sessions, int(np.count_nonzero(counts)))
        session_scores += match.weight * session_idf * _saturated(counts, session_lengths)
        total += weight
        matched += weight * bool(len(match.rows))
    if count:
        # Episodes without a session share one row of `sessions`, which is not a session.
        session_scores[episodes.sessionless] = 0
        session = session_scores[episodes.sessions]
    return KeywordScores(
        turn, window, session, coverage / np.float32(total), word_idf, unmatched, matched / total, word_count
    )


def _saturated(counts: Vector, lengths: NDArray[Any]) -> Vector:
    """Return the term-frequency factor of BM25; `lengths` are relative to the mean length."""
    return (counts * (K1 + 1) / (counts + K1 * (1 - B + B * lengths))).astype(np.float32)


def substring_matches(episodes: EpisodeQueries, words: Sequence[str], depth: int) -> Ints:
    """Return the versions of at most `depth` episodes with `words` as substrings: most matches first, then newest."""
    patterns = _patterns(words)
    if not patterns:
        return np.empty(0, np.int64)
    return np.array(episodes.containing(patterns, limit=depth), np.int64)


def _patterns(words: Sequence[str]) -> list[str]:
    """Return the LIKE patterns of words and n-grams, escaped by a backslash."""
    parts: dict[str, None] = {}
    for word in words:
        if is_unsegmented_script(word):
            parts.update(dict.fromkeys(ngrams(word)))
        elif len(word) >= 3:
            parts[word] = None
    escaped = (part.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_") for part in parts)
    return [f"%{part}%" for part in escaped][:_PATTERNS_MAX]
