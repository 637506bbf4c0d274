"""Search terms: the stems of the words of a query, and n-grams of unsegmented scripts, with weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from unicodedata import normalize

from recollect.api.retrieval.understanding.foreign_questions import english_words
from recollect.projections.queries.keyword_queries import KeywordQueries
from recollect.projections.search_index.postings import stem_words
from recollect.projections.text.function_words import ASKING, LINKING
from recollect.projections.text.segments import HANGUL, HIRAGANA, is_unsegmented_script, ngrams, stem

#: The weight of a bigram, relative to a word: a word has about two characters, and neighbouring bigrams overlap.
_BIGRAM_WEIGHT = 0.5
#: The weights of a single character, which a bigram usually covers, and of a bigram with a Korean ending; and of a
#: bigram of function characters.
_CHARACTER_WEIGHT = 0.25
_FUNCTION_BIGRAM_WEIGHT = 0.15
#: The highest weight of a run of characters, in words.
_RUN_WEIGHT_MAX = 2.0
#: N-grams of one word, and of one query; a pasted text has thousands.
_SEGMENTS_MAX = 24
_QUERY_SEGMENTS_MAX = 128


class SearchTerm(NamedTuple):
    """A term of a search."""

    #: Its forms in the keyword index, which count as the same term.
    forms: tuple[str, ...]
    #: Its weight; 1 for a word.
    weight: float


def search_terms(keywords: KeywordQueries, words: Sequence[str], *, german: bool) -> list[list[SearchTerm]]:
    """Return the terms of each of `words`: usually one, several in an unsegmented script, none for question words."""
    terms: list[list[SearchTerm]] = []
    count = 0
    for raw_word in words:
        # NFKC maps half-width and full-width forms to the same characters.
        word = raw_word if raw_word.isascii() else normalize("NFKC", raw_word)
        weights = _segment_weights(word) if is_unsegmented_script(word) and count < _QUERY_SEGMENTS_MAX else None
        if weights is None:
            terms.append(_word_terms(keywords, word, german))
            continue
        count += len(weights)
        stemmed = zip(stem_words(keywords, list(weights)), weights.values(), strict=True)
        english = tuple(stems[0] for stems in stem_words(keywords, english_words(word)))
        terms.append([SearchTerm((stems[0], *english), weight) for stems, weight in stemmed if len(stems) == 1])
    return terms


def _word_terms(keywords: KeywordQueries, word: str, german: bool) -> list[SearchTerm]:
    """Return the terms of a word of a segmented script: its English stem and the stem of its own language."""
    own_stem = stem(word, german=german)
    # Facts have English predicates.
    forms = [word, *([] if own_stem is None else [own_stem]), *english_words(word)]
    stems, *others = stem_words(keywords, forms)
    if len(stems) != 1:
        # The tokenizer of SQLite splits `user_id` into two words.
        return [SearchTerm((form,), 1 / len(stems)) for form in stems]
    return [SearchTerm(tuple(dict.fromkeys([*stems, *(other[0] for other in others if len(other) == 1)])), 1.0)]


def _segment_weights(word: str) -> dict[str, float]:
    """Return the weight of each n-gram of a word; empty for a question word."""
    weights: dict[str, float] = {}
    for part in ASKING.sub(" ", word).split():
        for segment in ngrams(part):
            weights.setdefault(segment, _segment_weight(part, segment))
    chosen = dict(sorted(weights.items(), key=lambda pair: -pair[1])[:_SEGMENTS_MAX])
    total = sum(chosen.values())
    share = min(1.0, _RUN_WEIGHT_MAX / total) if total else 1.0
    return {term: weight * share for term, weight in chosen.items()}


def _segment_weight(part: str, segment: str) -> float:
    """Return the weight of the n-gram `segment` of the run `part`."""
    if not is_unsegmented_script(segment):
        return 1.0
    if len(segment) > 1:
        if HANGUL.match(segment) and len(part) > 2 and part.endswith(segment):
            return _CHARACTER_WEIGHT
        is_function_bigram = HIRAGANA.fullmatch(segment) or not LINKING.isdisjoint(segment)
        return _FUNCTION_BIGRAM_WEIGHT if is_function_bigram else _BIGRAM_WEIGHT
    return _CHARACTER_WEIGHT if len(part) > 1 else _BIGRAM_WEIGHT
