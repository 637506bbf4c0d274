"""Folding: texts without case and accents, character for character, as people type them in a hurry."""

from __future__ import annotations

from unicodedata import decomposition

from recollect.events.late_pattern import late_pattern


def _base(code: int) -> str:
    """Return the lower-case letter of a Latin character without its accent, or the character itself."""
    character = chr(code)
    base = character
    while (parts := decomposition(base)) and not parts.startswith("<"):
        base = chr(int(parts.split()[0], 16))
    lowered = base.lower()
    return lowered if len(lowered) == 1 and lowered.isascii() else character.lower()[:1]


#: Latin letters up to U+017F, each with its lower-case letter without accent.
_FOLDED = {code: _base(code) for code in (*range(0x41, 0x5B), *range(0xC0, 0x180))} | {0x2019: "'", 0x2018: "'"}
#: German letters that people spell with two.
_SPELLINGS = {"ä": "ae?", "ö": "oe?", "ü": "ue?", "ß": "(?:ß|ss?)"}

#: An umlaut that is spelled with two letters.
_UMLAUT = late_pattern("([aou])e")


def fold(text: str) -> str:
    """Return `text` in lower case without accents; each character keeps its position."""
    return text.translate(_FOLDED)


def folded_pattern(literal: str) -> str:
    """Return a regular expression written with accents as one for folded text; `ä` also matches `ae`."""
    folded = "".join(_SPELLINGS.get(character) or character.translate(_FOLDED) for character in literal)
    return folded.replace("(?p<", "(?P<")


def lookup_key(word: str) -> str:
    """Return a word in the form that all its spellings share: `Großmütter` and `grossmuetter` are the same."""
    return _UMLAUT.sub(r"\1", fold(word).replace("ß", "ss"))
