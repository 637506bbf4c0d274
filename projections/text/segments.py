"""What a text is found by beside its words, in languages that the English stemmer does nothing for.

Writing without spaces gives pairs of signs that follow each other, Han signs also one by one (Nie et al. 2000, "On the
use of words and n-grams for Chinese information retrieval"); Russian and German words give their stems by Snowball.
English text gives nothing, and costs next to nothing.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

from recollect.projections.text.compounds import compound_tails
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
#: Without the marks above and below, which end a word for SQLite and for `\w`.
_THAI = r"\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46"
#: A run of one writing. Of Japanese, words are mostly in one, and endings in another.
_RUN = re.compile(rf"[{_HAN}]+|[{_HIRAGANA}]+|[{_KATAKANA}]+|[{_HANGUL}]+|[{_THAI}]+")
_SPACED = re.compile(rf"[^\W_{_HAN}{_HIRAGANA}{_KATAKANA}{_HANGUL}{_THAI}]+")
_HAN_SIGN = re.compile(f"[{_HAN}]")
HIRAGANA = re.compile(f"[{_HIRAGANA}]+")
HANGUL = re.compile(f"[{_HANGUL}]")
_CYRILLIC = re.compile(r"[\u0400-\u052f]")
_GERMAN_LETTER = re.compile("[äöüß]")
#: Whatever makes a closer look worth while; forms that normalisation makes into such letters included.
_OTHER = re.compile(
    rf"[ÄÖÜäöüßẞ\u0308\u0400-\u052f\u0e01-\u0e4e\u1100-\u11ff\uff66-\uffdc{_HAN}{_HIRAGANA}{_KATAKANA}{_HANGUL}]"
)
#: One word in so many must be a German function word or have a German letter.
_GERMAN_ONE_IN = 5
#: Hangul words as short as this are also found by their first sign: the rest may be a particle.
_SHORT_HANGUL = 3
#: Longer words are no words.
_STEMMED_CHARS_MAX = 40


def search_segments(text: str) -> list[str]:
    """Return the extra terms of `text`, in order, as often as they come; none of English."""
    if (text.isascii() or not _OTHER.search(text)) and _hardly_german(text):
        return []
    normal = unicodedata.normalize("NFKC", text)
    words = WORD.findall(normal.lower())
    german = is_german(words)
    found: list[str] = []
    for word in words:
        # What the index holds already is not said twice.
        found += [term for term in _extra(word, german) if term != word or normal != text]
    return found


def is_german(words: Sequence[str]) -> bool:
    """Tell whether lower-case `words` look German: by their letters and function words."""
    sure = sum(word in GERMAN or (not word.isascii() and bool(_GERMAN_LETTER.search(word))) for word in words)
    perhaps = sum(word in GERMAN_PERHAPS for word in words)
    hits = sure + (perhaps if sure or perhaps > 1 else 0) - sum(word in ENGLISH for word in words)
    return hits > 0 and hits * _GERMAN_ONE_IN >= len(words)


def is_unsegmented_script(word: str) -> bool:
    """Tell whether some of `word` is in a writing that gives pairs of signs."""
    return not word.isascii() and _RUN.search(word) is not None


def ngrams(word: str) -> list[str]:
    """Return the pairs and single signs of a word that has such writing, and what it has in other letters."""
    found = [term for run in _RUN.findall(word) for term in _signs(run)]
    return found + _SPACED.findall(word)


def stem(word: str, *, german: bool) -> str | None:
    """Return the stem of a lower-case word with Cyrillic or German letters, of any word in German text."""
    if len(word) > _STEMMED_CHARS_MAX or word in RUSSIAN_STOP_WORDS or (german and word in GERMAN_STOP_WORDS):
        return None
    if word.isascii():
        return _stem("german", word) if german and not word.isdigit() else None
    if _CYRILLIC.search(word):
        return _stem("russian", word)
    return _stem("german", word.casefold()) if german or _GERMAN_LETTER.search(word) else None


def unsegmented_words(text: str) -> int:
    """Return about how many words the parts of `text` are that have no spaces: two signs each."""
    return 0 if text.isascii() else sum(map(len, _RUN.findall(text))) // 2


def _extra(word: str, german: bool) -> Sequence[str]:
    if is_unsegmented_script(word):
        return ngrams(word)
    # Longer ones have no stem, and would fill the cache.
    return _stems(word, german) if len(word) <= _STEMMED_CHARS_MAX else ()


@lru_cache(maxsize=100_000)
def _stems(word: str, german: bool) -> tuple[str, ...]:
    """Return the stem of a word if the index does not hold it anyway, and those of the tails of a German compound."""
    stemmed = stem(word, german=german)
    if stemmed is None:
        return ()
    # The index has no diacritics.
    found = () if stemmed == word.translate(_BARE) else (stemmed,)
    if not german or _CYRILLIC.search(word):
        return found
    return found + tuple(_stem("german", tail) for tail in compound_tails(word.casefold()))


#: What Snowball leaves of verbs: `sie fliegt` has the stem of `fliegen` (as CISTEM, Weissweiler and Fraser 2017).
_THIRD_PERSON = re.compile("(?<=...[^aeiou])t$")
_BARE = str.maketrans("äöüё", "aouе")


def _signs(run: str) -> list[str]:
    """Return the pairs of a run; of Han every sign too, of short Hangul the first."""
    if len(run) == 1:
        # One sign of Hiragana is a particle.
        return [] if HIRAGANA.match(run) else [run]
    pairs = [run[at : at + 2] for at in range(len(run) - 1)]
    if _HAN_SIGN.match(run):
        return [*pairs, *(sign for sign in run if sign not in LINKING)]
    if len(run) <= _SHORT_HANGUL and HANGUL.match(run):
        return [*pairs, run[0]]
    return pairs


def _hardly_german(text: str) -> bool:
    """Tell whether `text` cannot be German; of most English text at almost no cost."""
    if " the " in text or " to " in text or " a " in text or " you " in text or " of " in text or "I " in text:
        return True
    return _GERMAN_ANY.isdisjoint(text.lower().split())


_GERMAN_ANY = GERMAN | GERMAN_PERHAPS


def _stem(language: str, word: str) -> str:
    found: str = _stemmer(language).stemWord(word)
    return _THIRD_PERSON.sub("", found) if language == "german" else found


class _Local(threading.local):
    """A stemmer works on one word at a time, so each thread has its own."""

    def __init__(self) -> None:
        self.stemmers: dict[str, Any] = {}


_LOCAL = _Local()


def _stemmer(language: str) -> Any:
    stemmer = _LOCAL.stemmers.get(language)
    if stemmer is None:
        # Not by `snowballstemmer.stemmer`: that takes an extension in C, of whatever version, where there is one.
        module: Any = import_module(f"snowballstemmer.{language}_stemmer")
        stemmer = _LOCAL.stemmers[language] = getattr(module, f"{language.capitalize()}Stemmer")()
    return stemmer
