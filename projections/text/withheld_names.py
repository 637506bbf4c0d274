"""Withheld names: reads from whom a message asks to be kept, as in `don't tell Ben` and `this stays between us`.

Only what a sentence asks for at its beginning counts, with a name or with everybody: "I don't tell Ben everything",
"why don't you tell Ben?" and "don't tell him" restrict nothing. `tests/unit/test_withheld_names.py` has the figures.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from recollect.events.late_pattern import late_pattern
from recollect.projections.text.words import STOP_WORDS

#: Every person but the speaker.
EVERYBODY = "*"
#: Before a word without a capital, which is a name only where a person is called so.
PERHAPS = "?"
#: Characters of a message that are read.
_CHARS_MAX = 4_000
#: The beginning of a request: of a text, a sentence or a part of one, with up to three words before it.
_START = (
    r"(?:^|[.!?;:,(\n—–-]\s{0,3}|\b(?i:but|and|so|pls|plz|please|just)\s{1,3})"
    r"(?:(?i:but|and|so|please|pls|plz|just|also|oh|btw|guys|ok|hey)[,\s]{1,3}){0,3}"
)
#: Spaces between two words.
_S = r"\s{1,3}"
_NOT = r"(?:do\s?n['’]?t|do not|never)\s{1,3}(?:you\s{1,3})?(?:ever\s{1,3}|please\s{1,3})?"
#: A name with its capitals, or a single word without one, which may be a name.
_NAME = (
    r"(?:(?:(?:Mrs?|Ms|Dr|Aunt|Uncle)\.?\s)?[A-ZÀ-Þ][\w-]{0,40}+(?:\s[A-ZÀ-Þ][\w-]{0,40}+)?|\b[a-zß-ÿ][\w-]{1,40}+)"
    r"(?!['’]\w)"
)
_AND = late_pattern(r",\s|\s(?:and|or)\s")
#: One name, or several: `Ben or Kofi`.
_NAMES = rf"(?P<names>{_NAME}(?:(?:,\s|\s(?:and|or)\s){_NAME}){{0,4}})"
_OTHERS = r"(?:anyone|anybody|any one|a soul|the others|everyone else|anyone else)"
_THIS = r"(?:this|that|it)"
_STAYS = r"(?: (?:stays?|remains?|should stay|must stay|has to stay))?(?: (?:strictly|just))?"
_KEPT_FROM = tuple(
    late_pattern(pattern)
    for pattern in (
        rf"{_START}(?i:{_NOT}(?:dare{_S})?(?:tell|inform){_S}){_NAMES}(?!\s(?:what|how|when|where)\sto\b)",
        rf"{_START}(?i:{_NOT}(?:mention|say|show|repeat|forward|breathe){_S}(?:(?:{_THIS}|anything|a word)"
        rf"(?:{_S}about{_S}{_THIS})?{_S})?(?:to|in front of){_S}){_NAMES}",
        rf"{_START}(?i:not a word (?:(?:of|about) {_THIS} )?to{_S}){_NAMES}",
        rf"{_START}(?i:keep{_S}{_THIS}{_S}(?:(?:a secret|secret|hidden|away){_S})?from{_S}){_NAMES}",
        rf"{_NAMES}{_S}(?i:(?:must|may|should)\s?(?:not|n['’]?t){_S}(?:know|find out|hear)\b)"
        r"(?=\s{0,3}(?:$|[.!?,;:)…]|about\b|that\b|until\b|yet\b|this\b|it\b))",
        rf"{_NAMES}{_S}(?i:(?:can\s?not|can['’]?t){_S}(?:know|find out){_S}(?:about{_S})?{_THIS}\b)",
    )
)
_KEPT_FROM_ALL = tuple(
    late_pattern(_START + pattern, re.IGNORECASE)
    for pattern in (
        rf"{_NOT}(?:tell|inform){_S}{_OTHERS}\b",
        rf"{_NOT}(?:mention|say|show|repeat){_S}{_THIS}{_S}to{_S}{_OTHERS}\b",
        rf"not a word (?:(?:of|about) {_THIS} )?to{_S}{_OTHERS}\b",
        rf"(?:(?:let['’]?s )?keep {_THIS}|{_THIS}(?:['’]s| is)?(?: just)?{_STAYS}) "
        r"between (?:us(?: two)?|you and me|the two of us|me and you)\b(?=\s{0,3}(?:$|[.!?,;:)…]|please\b|ok\b))",
    )
)
#: Each match of the patterns above has one of these, in lower case. Few messages do, and the patterns take a hundred
#: microseconds. A pattern that begins with a letter and does not ignore case is searched in a sixth of the time.
_NOT_TOLD = late_pattern(
    rf"n(?:['’]?t|ot|ever){_S}(?:(?:you|ever|please|dare|a){_S}){{0,4}}"
    r"(?:tell|inform|mention|say|show|repeat|forward|breathe|know|find|hear|word)"
)
_KEPT = late_pattern(rf"keep{_S}{_THIS}{_S}(?:a secret|secret|hidden|away|from)|between (?:us|you|the|me)")
#: Letters that patterns that ignore case take for `s` and `i`, and `lower` does not.
_UNFOLDED = ("ſ", "ı", "İ")
#: Words that are not names, lower case.
_NO_NAMES = STOP_WORDS | frozenset("anyone anybody everyone go".split())


def withheld_names(text: str) -> Sequence[str]:
    """Return the names from whom a text asks to be kept; `EVERYBODY` alone when it is for the listener only.

    A word without a capital has the prefix `PERHAPS`: `?mum`.
    """
    beginning = text[:_CHARS_MAX]
    if not _may_withhold(beginning):
        return ()
    if any(pattern.search(beginning) for pattern in _KEPT_FROM_ALL):
        return (EVERYBODY,)
    requests = (match["names"] for pattern in _KEPT_FROM for match in pattern.finditer(beginning))
    names = (name for request in requests for name in _AND.split(request))
    stated = [name for name in names if name.split()[0].lower() not in _NO_NAMES]
    return tuple(dict.fromkeys(name if name[0].isupper() else PERHAPS + name for name in stated))


def _may_withhold(text: str) -> bool:
    """Return whether a text can match a pattern; cheap, for most cannot."""
    if not text.isascii() and any(letter in text for letter in _UNFOLDED):
        return True
    lowered = text.lower()
    if _NOT_TOLD.search(lowered) is not None:
        return True
    return ("keep" in lowered or "between" in lowered) and _KEPT.search(lowered) is not None
