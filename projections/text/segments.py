"""Segments: adds search terms for languages that the English stemmer of the keyword index does not cover.

Scripts without spaces give bigrams of characters, and Han characters also unigrams (Nie et al. 2000, "On the use of
words and n-grams for Chinese information retrieval"). Russian and German words give their Snowball stems. English text
gives no terms at almost no cost.
"""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

from recollect.events.late_pattern import late_pattern
from recollect.projections.text.function_words import (
    ENGLISH,
    GERMAN,
    GERMAN_PERHAPS,
    GERMAN_STOP_WORDS,
    LINKING,
    RUSSIAN_STOP_WORDS,
)
from recollect.projections.text.words import WORD

_HAN = r"\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_HIRAGANA = r"\u3041-\u3096\u309d-\u309f"
_KATAKANA = r"\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
_HANGUL = r"\u3131-\u318e\uac00-\ud7a3"
#: Thai without combining marks, which end a word for SQLite and for `\w`.
_THAI = r"\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46"
#: A run of one unsegmented script. Japanese writes words mostly in one script and endings in another.
_RUN = late_pattern(rf"[{_HAN}]+|[{_HIRAGANA}]+|[{_KATAKANA}]+|[{_HANGUL}]+|[{_THAI}]+")
#: A word in scripts with spaces.
_SPACED = late_pattern(rf"[^\W_{_HAN}{_HIRAGANA}{_KATAKANA}{_HANGUL}{_THAI}]+")
_HAN_CHARACTER = late_pattern(f"[{_HAN}]")
#: A run of Hiragana.
HIRAGANA = late_pattern(f"[{_HIRAGANA}]+")
#: A Hangul character.
HANGUL = late_pattern(f"[{_HANGUL}]")
_CYRILLIC = late_pattern(r"[\u0400-\u052f]")
_GERMAN_LETTER = late_pattern("[äöüß]")
#: A letter of German or of an unsegmented or Cyrillic script, or a character that NFKC turns into such a letter.
_FOREIGN_LETTER = late_pattern(
    rf"[ÄÖÜäöüßẞ\u0308\u0400-\u052f\u0e01-\u0e4e\u1100-\u11ff\uff66-\uffdc{_HAN}{_HIRAGANA}{_KATAKANA}{_HANGUL}]"
)
#: In German text at least one word in this many is a German function word or has a German letter.
_GERMAN_ONE_IN = 5
#: Hangul words of up to this many characters also give their first character: the rest may be a particle.
_SHORT_HANGUL_CHARS_MAX = 3
#: Words over this length are not stemmed: they would fill the cache.
_STEMMED_CHARS_MAX = 40
#: German words of fewer characters are not split into parts.
_COMPOUND_CHARS_MIN = 9
#: Fewest characters of a last part.
_TAIL_CHARS_MIN = 4
_VOWEL = "aeiouyäöü"
#: Consonant clusters that begin German words; a vowel, or one consonant before a vowel, begins a word too.
_ONSETS = "sch|schl|schm|schn|schr|schw|st|str|sp|spr|bl|br|dr|fl|fr|gl|gr|kl|kn|kr|pf|pl|pr|qu|tr|zw|ch"
_PART_BEGIN = late_pattern(rf"(?:[{_VOWEL}]|[b-df-hj-np-tv-z](?=[{_VOWEL}])|(?:{_ONSETS})(?=[{_VOWEL}]))")
#: The first part of a compound: it contains a vowel and ends in a consonant or e.
_FIRST_PART = late_pattern(rf"(?<!\w)(?=\w*?[{_VOWEL}]\w)\w++(?<=[b-df-hj-np-tv-ze])")


def search_segments(text: str) -> list[str]:
    """Return the search terms that `text` has besides its words, in order, with repetitions; none for English."""
    if (text.isascii() or not _FOREIGN_LETTER.search(text)) and _hardly_german(text):
        return []
    normal = unicodedata.normalize("NFKC", text)
    words = WORD.findall(normal.lower())
    german = is_german(words)
    terms: list[str] = []
    for word in words:
        # The index contains the words of normalised text already.
        terms += [term for term in _extra_terms(word, german) if term != word or normal != text]
    return terms


def is_german(words: Sequence[str]) -> bool:
    """Return whether lower-case `words` are German, judged by letters and function words."""
    sure = sum(word in GERMAN or (not word.isascii() and bool(_GERMAN_LETTER.search(word))) for word in words)
    perhaps = sum(word in GERMAN_PERHAPS for word in words)
    hits = sure + (perhaps if sure or perhaps > 1 else 0) - sum(word in ENGLISH for word in words)
    return hits > 0 and hits * _GERMAN_ONE_IN >= len(words)


def is_unsegmented_script(word: str) -> bool:
    """Return whether `word` has characters of a script without spaces."""
    return not word.isascii() and _RUN.search(word) is not None


def ngrams(word: str) -> list[str]:
    """Return the bigrams and unigrams of a word in an unsegmented script, then its parts in other scripts."""
    terms = [term for run in _RUN.findall(word) for term in _character_ngrams(run)]
    return terms + _SPACED.findall(word)


def stem(word: str, *, german: bool) -> str | None:
    """Return the stem of a lower-case word; None for stop words, numbers and words without a stemmer.

    Parameters:
        german: whether the text is German; a word with German letters is stemmed in any text.
    """
    if len(word) > _STEMMED_CHARS_MAX or word in RUSSIAN_STOP_WORDS or (german and word in GERMAN_STOP_WORDS):
        return None
    if word.isascii():
        return _stem("german", word) if german and not word.isdigit() else None
    if _CYRILLIC.search(word):
        return _stem("russian", word)
    return _stem("german", word.casefold()) if german or _GERMAN_LETTER.search(word) else None


def unsegmented_words(text: str) -> int:
    """Return the estimated number of words in the unsegmented parts of `text`, at two characters per word."""
    return 0 if text.isascii() else sum(map(len, _RUN.findall(text))) // 2


def _extra_terms(word: str, german: bool) -> Sequence[str]:
    """Return the search terms that a word adds."""
    if is_unsegmented_script(word):
        return ngrams(word)
    # Longer words have no stem and would fill the cache.
    return _stems(word, german) if len(word) <= _STEMMED_CHARS_MAX else ()


@lru_cache(maxsize=100_000)
def _stems(word: str, german: bool) -> tuple[str, ...]:
    """Return the stem of a word unless the index contains it as a word, and the stems of a German compound's tails."""
    stemmed = stem(word, german=german)
    if stemmed is None:
        return ()
    # The tokenizer of the index removes diacritics.
    stems = () if stemmed == word.translate(_WITHOUT_DIACRITICS) else (stemmed,)
    if not german or _CYRILLIC.search(word):
        return stems
    return stems + tuple(_stem("german", tail) for tail in compound_tails(word.casefold()))


def compound_tails(word: str) -> list[str]:
    """Return the candidates for the last part of a German compound, longest first: `schlüssel` of `hausschlüssel`.

    It uses no dictionary: every position where a German word may begin gives a candidate. Candidates that are not words
    do no harm, since questions do not contain them.
    """
    if len(word) < _COMPOUND_CHARS_MIN:
        return []
    return [
        word[start:]
        for start in range(3, len(word) - _TAIL_CHARS_MIN + 1)
        if _PART_BEGIN.match(word, start) and _FIRST_PART.fullmatch(word, 0, start) and not _splits_cluster(word, start)
    ]


def _splits_cluster(word: str, start: int) -> bool:
    """Return whether a split before the character `start` separates letters that form one sound."""
    pair, triple = word[start - 1 : start + 1], word[start - 2 : start + 1]
    return pair in ("ch", "ck", "ng", "ph", "qu", "sc", "th", "tz") or triple == "sch"


#: The ending of the third person, which Snowball keeps: `fliegt` gets the stem of `fliegen` (as in CISTEM, Weissweiler
#: and Fraser 2017).
_THIRD_PERSON = late_pattern("(?<=...[^aeiou])t$")
#: Letters with diacritics to letters without.
_WITHOUT_DIACRITICS = str.maketrans("äöüё", "aouе")


def _character_ngrams(run: str) -> list[str]:
    """Return the bigrams of a run of one script, for Han also unigrams, for short Hangul words the first character."""
    if len(run) == 1:
        # A single Hiragana character is a particle.
        return [] if HIRAGANA.match(run) else [run]
    bigrams = [run[start : start + 2] for start in range(len(run) - 1)]
    if _HAN_CHARACTER.match(run):
        return [*bigrams, *(character for character in run if character not in LINKING)]
    if len(run) <= _SHORT_HANGUL_CHARS_MAX and HANGUL.match(run):
        return [*bigrams, run[0]]
    return bigrams


def _hardly_german(text: str) -> bool:
    """Return whether `text` has no German function word; most English texts are recognised by one frequent word."""
    if " the " in text or " to " in text or " a " in text or " you " in text or " of " in text or "I " in text:
        return True
    return _GERMAN_WORDS.isdisjoint(text.lower().split())


_GERMAN_WORDS = GERMAN | GERMAN_PERHAPS


def _stem(language: str, word: str) -> str:
    """Return the Snowball stem of a word, for German without the ending of the third person."""
    stemmed: str = _stemmer(language).stemWord(word)
    return _THIRD_PERSON.sub("", stemmed) if language == "german" else stemmed


class _Local(threading.local):
    """The stemmers of one thread: a stemmer works on one word at a time."""

    def __init__(self) -> None:
        self.stemmers: dict[str, Any] = {}


_LOCAL = _Local()


def _stemmer(language: str) -> Any:
    """Return this thread's stemmer of a language."""
    stemmer = _LOCAL.stemmers.get(language)
    if stemmer is None:
        # `snowballstemmer.stemmer` would use PyStemmer when it is installed, whose version may give other stems.
        module: Any = import_module(f"snowballstemmer.{language}_stemmer")
        stemmer = _LOCAL.stemmers[language] = getattr(module, f"{language.capitalize()}Stemmer")()
    return stemmer
