"""The last parts of German compounds: `Hausschlüssel` is a kind of `Schlüssel`.

Without a dictionary: wherever a German word may begin, the rest is taken for one. What is none is never asked for.
"""

from __future__ import annotations

import re

#: Shorter words are taken for simple ones.
_WORD_CHARS_MIN = 9
_TAIL_CHARS_MIN = 4
_VOWEL = "aeiouyäöü"
#: How German words begin, beside a vowel and one consonant before a vowel.
_ONSETS = "sch|schl|schm|schn|schr|schw|st|str|sp|spr|bl|br|dr|fl|fr|gl|gr|kl|kn|kr|pf|pl|pr|qu|tr|zw|ch"
_BEGIN = re.compile(rf"(?:[{_VOWEL}]|[b-df-hj-np-tv-z](?=[{_VOWEL}])|(?:{_ONSETS})(?=[{_VOWEL}]))")
#: The part before is a word too: it has a vowel, and ends in a consonant or e.
_HEAD = re.compile(rf"(?<!\w)(?=\w*?[{_VOWEL}]\w)\w++(?<=[b-df-hj-np-tv-ze])")


def compound_tails(word: str) -> list[str]:
    """Return what may be the last part of a lower-case German word, longest first."""
    if len(word) < _WORD_CHARS_MIN:
        return []
    return [
        word[at:]
        for at in range(3, len(word) - _TAIL_CHARS_MIN + 1)
        if _BEGIN.match(word, at) and _HEAD.fullmatch(word, 0, at) and not _inside(word, at)
    ]


def _inside(word: str, at: int) -> bool:
    """Tell whether a split would go through letters that are said as one, or leave a vowel after a lone consonant."""
    return word[at - 1 : at + 1] in ("ch", "ck", "ng", "ph", "qu", "sc", "th", "tz") or word[at - 2 : at + 1] == "sch"
