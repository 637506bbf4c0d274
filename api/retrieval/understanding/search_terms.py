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
_BIGRAM_WEIGHT = 0.5
#: What a single sign counts, which mostly belongs to a pair as well, or a pair with a Korean ending; and a pair that
#: holds no word by itself.
_CHARACTER_WEIGHT = 0.25
_FUNCTION_BIGRAM_WEIGHT = 0.15
#: What a run of signs counts at most, in words.
_RUN_WEIGHT_MAX = 2.0
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
    terms: list[list[SearchTerm]] = []
    count = 0
    for raw_word in words:
        # Half and full width are one.
        word = raw_word if raw_word.isascii() else normalize("NFKC", raw_word)
        weights = _segment_weights(word) if is_unsegmented_script(word) and count < _QUERY_SEGMENTS_MAX else None
        if weights is None:
            terms.append(_word_terms(keywords, word, german))
            continue
        count += len(weights)
        stemmed = zip(stem_words(keywords, list(weights)), weights.values(), strict=True)
        terms.append([SearchTerm((stems[0],), weight) for stems, weight in stemmed if len(stems) == 1])
    return terms


def _word_terms(keywords: KeywordQueries, word: str, german: bool) -> list[SearchTerm]:
    """Return a word with spaces around it: by its English stem and the one of its own language."""
    own_stem = stem(word, german=german)
    stems, *others = stem_words(keywords, [word] if own_stem is None else [word, own_stem])
    if len(stems) != 1:
        # SQLite takes `user_id` for two words.
        return [SearchTerm((form,), 1 / len(stems)) for form in stems]
    return [SearchTerm(tuple(dict.fromkeys([*stems, *(other[0] for other in others if len(other) == 1)])), 1.0)]


def _segment_weights(word: str) -> dict[str, float]:
    """Return the segments of a word and what each counts; empty for one that only asks."""
    weights: dict[str, float] = {}
    for part in ASKING.sub(" ", word).split():
        for segment in ngrams(part):
            weights.setdefault(segment, _segment_weight(part, segment))
    chosen = dict(sorted(weights.items(), key=lambda pair: -pair[1])[:_SEGMENTS_MAX])
    total = sum(chosen.values())
    share = min(1.0, _RUN_WEIGHT_MAX / total) if total else 1.0
    return {term: weight * share for term, weight in chosen.items()}


def _segment_weight(part: str, segment: str) -> float:
    if not is_unsegmented_script(segment):
        return 1.0
    if len(segment) > 1:
        if HANGUL.match(segment) and len(part) > 2 and part.endswith(segment):
            return _CHARACTER_WEIGHT
        is_function_bigram = HIRAGANA.fullmatch(segment) or not LINKING.isdisjoint(segment)
        return _FUNCTION_BIGRAM_WEIGHT if is_function_bigram else _BIGRAM_WEIGHT
    return _CHARACTER_WEIGHT if len(part) > 1 else _BIGRAM_WEIGHT
