"""The terms that the words of a query are looked for by: stems, and segments of writing without spaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from unicodedata import normalize

from recollect.projections.queries.keyword_queries import KeywordQueries
from recollect.projections.search_index.postings import stem_words
from recollect.projections.text.function_words import ASKING, LINKING
from recollect.projections.text.segments import HANGUL, HIRAGANA, is_unsegmented_script, ngrams, stem

#: What a pair of signs counts, against a word: two signs are about one word, and two pairs share a sign.
_PAIR = 0.5
#: What a single sign counts, which mostly belongs to a pair as well, or a pair with a Korean ending; and a pair that
#: holds no word by itself.
_SIGN = 0.25
_EMPTY_PAIR = 0.15
#: What a run of signs counts at most, in words.
_RUN_MAX = 2.0
#: Segments of one word, and of one query; a pasted text has thousands.
_SEGMENTS_MAX = 24
_QUERY_SEGMENTS_MAX = 128


class SearchTerm(NamedTuple):
    """One thing to look for."""

    #: As the keyword index holds it; each is as good as the other.
    forms: tuple[str, ...]
    #: What it counts: 1 for a word.
    weight: float


def search_terms(keywords: KeywordQueries, words: Sequence[str], *, german: bool) -> list[list[SearchTerm]]:
    """Return the terms of each of `words`: one for most, several for writing without spaces, sometimes none."""
    found: list[list[SearchTerm]] = []
    count = 0
    for said in words:
        # Half and full width are one.
        word = said if said.isascii() else normalize("NFKC", said)
        weights = _segments(word) if is_unsegmented_script(word) and count < _QUERY_SEGMENTS_MAX else None
        if weights is None:
            found.append(_word(keywords, word, german))
            continue
        count += len(weights)
        known = zip(stem_words(keywords, list(weights)), weights.values(), strict=True)
        found.append([SearchTerm((stems[0],), weight) for stems, weight in known if len(stems) == 1])
    return found


def _word(keywords: KeywordQueries, word: str, german: bool) -> list[SearchTerm]:
    """Return a word with spaces around it: by its English stem and the one of its own language."""
    own = stem(word, german=german)
    stems, *others = stem_words(keywords, [word] if own is None else [word, own])
    if len(stems) != 1:
        # SQLite takes `user_id` for two words.
        return [SearchTerm((one,), 1 / len(stems)) for one in stems]
    return [SearchTerm(tuple(dict.fromkeys([*stems, *(one[0] for one in others if len(one) == 1)])), 1.0)]


def _segments(word: str) -> dict[str, float]:
    """Return the segments of a word and what each counts; empty for one that only asks."""
    weights: dict[str, float] = {}
    for part in ASKING.sub(" ", word).split():
        for term in ngrams(part):
            weights.setdefault(term, _weight(part, term))
    chosen = dict(sorted(weights.items(), key=lambda one: -one[1])[:_SEGMENTS_MAX])
    whole = sum(chosen.values())
    share = min(1.0, _RUN_MAX / whole) if whole else 1.0
    return {term: weight * share for term, weight in chosen.items()}


def _weight(part: str, term: str) -> float:
    if not is_unsegmented_script(term):
        return 1.0
    if len(term) > 1:
        if HANGUL.match(term) and len(part) > 2 and part.endswith(term):
            return _SIGN
        empty = HIRAGANA.fullmatch(term) or not LINKING.isdisjoint(term)
        return _EMPTY_PAIR if empty else _PAIR
    return _SIGN if len(part) > 1 else _PAIR
