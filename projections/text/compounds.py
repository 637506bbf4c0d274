"""Compounds: splits the last parts off German compound words, such as `Schlüssel` off `Hausschlüssel`.

It uses no dictionary: every position where a German word may begin gives a candidate. Candidates that are not words do
no harm, since questions do not contain them.
"""

from __future__ import annotations

import re

#: Words of fewer characters are not split.
_WORD_CHARS_MIN = 9
#: Fewest characters of a last part.
_TAIL_CHARS_MIN = 4
_VOWEL = "aeiouyäöü"
#: Consonant clusters that begin German words; a vowel, or one consonant before a vowel, begins a word too.
_ONSETS = "sch|schl|schm|schn|schr|schw|st|str|sp|spr|bl|br|dr|fl|fr|gl|gr|kl|kn|kr|pf|pl|pr|qu|tr|zw|ch"
_BEGIN = re.compile(rf"(?:[{_VOWEL}]|[b-df-hj-np-tv-z](?=[{_VOWEL}])|(?:{_ONSETS})(?=[{_VOWEL}]))")
#: The first part of a compound: it contains a vowel and ends in a consonant or e.
_HEAD = re.compile(rf"(?<!\w)(?=\w*?[{_VOWEL}]\w)\w++(?<=[b-df-hj-np-tv-ze])")


def compound_tails(word: str) -> list[str]:
    """Return the candidates for the last part of a lower-case German word, longest first."""
    if len(word) < _WORD_CHARS_MIN:
        return []
    return [
        word[start:]
        for start in range(3, len(word) - _TAIL_CHARS_MIN + 1)
        if _BEGIN.match(word, start) and _HEAD.fullmatch(word, 0, start) and not _splits_cluster(word, start)
    ]


def _splits_cluster(word: str, start: int) -> bool:
    """Return whether a split before the character `start` separates letters that form one sound."""
    pair, triple = word[start - 1 : start + 1], word[start - 2 : start + 1]
    return pair in ("ch", "ck", "ng", "ph", "qu", "sc", "th", "tz") or triple == "sch"
