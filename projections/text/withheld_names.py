"""Withheld names: reads from whom a message asks to be kept, as in `don't tell Ben` and `this stays between us`.

Only what a sentence asks for at its beginning counts, with a name or with everybody: "I don't tell Ben everything",
"why don't you tell Ben?" and "don't tell him" restrict nothing. `tests/unit/test_withheld_names.py` has the figures.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

#: Every person but the speaker.
EVERYBODY = "*"
#: Characters of a message that are read.
_CHARS_MAX = 4_000
#: The beginning of a request: of a text, a sentence or a part of one, with up to three words before it.
_START = (
    r"(?:^|[.!?;:,(\n—–-]\s*|\b(?:but|and|so|pls|plz|please|just)\s+)"
    r"(?:(?:but|and|so|please|pls|plz|just|also|oh|btw|guys|ok|hey)[,\s]{1,3}){0,3}"
)
_NOT = r"(?:do\s?n['’]?t|do not|never)\s+(?:you\s+)?(?:ever\s+|please\s+)?"
_NAME = r"(?P<{0}>[A-Z][\w'’-]{{0,40}}(?:\s[A-Z][\w-]{{0,40}})?)(?!['’]s\b)"
_OTHERS = r"(?i:anyone|anybody|any one|a soul|the others|everyone else|anyone else)"
_KEPT_FROM = tuple(
    re.compile(_START + pattern)
    for pattern in (
        rf"(?i:{_NOT}(?:tell|let|show|inform)\s+){_NAME.format('name')}",
        rf"(?i:{_NOT}(?:mention|say|show|reveal|repeat|forward|leak)\s+(?:(?:any of\s+)?(?:this|that|it|anything|a word)"
        rf"(?:\s+about\s+(?:this|that|it))?\s+)?(?:to|in front of|near)\s+){_NAME.format('name')}",
        rf"(?i:not a word (?:of this |about this |about it )?to\s+){_NAME.format('name')}",
        rf"(?i:(?:keep|hide)\s+(?:this|that|it)\s+(?:a secret\s+|secret\s+|hidden\s+|away\s+)?from\s+){_NAME.format('name')}",
    )
) + (
    re.compile(rf"{_NAME.format('name')}\s+(?i:(?:must|may|should)\s?(?:not|n['’]?t)\s+(?:know|find out|hear|see)\b)"),
    re.compile(rf"{_NAME.format('name')}\s+(?i:(?:can\s?not|can['’]?t)\s+(?:know|find out)\s+(?:about\s+)?(?:this|that|it)\b)"),
)
_KEPT_FROM_ALL = tuple(
    re.compile(_START + pattern, re.IGNORECASE)
    for pattern in (
        rf"{_NOT}(?:tell|show|let)\s+{_OTHERS}\b",
        rf"{_NOT}(?:mention|say|show|repeat)\s+(?:this|that|it)\s+to\s+{_OTHERS}\b",
        r"not a word (?:of this |about this )?to\s+" + _OTHERS + r"\b",
        r"(?:(?:let['’]?s )?keep (?:this|that|it)|(?:this|that|it)(?:['’]s| is)?(?: just)?(?: stays?| remains?| should stay"
        r"| must stay| has to stay)?(?: strictly| just)?) between (?:us|you and me|the two of us|me and you)\b",
    )
)
#: Words that every such request has: most messages have none.
_HINT = re.compile(r"n['’]?t|not|never|between|keep|hide", re.IGNORECASE)
#: Capitalised words that are no names.
_NO_NAMES = frozenset("I It He She They We You Me Him Her Them Us This That Anyone Anybody Everyone Go Be".split())


def withheld_names(text: str) -> Sequence[str]:
    """Return the names from whom a text asks to be kept; `EVERYBODY` alone when it is for the listener only."""
    beginning = text[:_CHARS_MAX]
    if _HINT.search(beginning) is None:
        return ()
    if any(pattern.search(beginning) for pattern in _KEPT_FROM_ALL):
        return (EVERYBODY,)
    names = (match["name"] for pattern in _KEPT_FROM for match in pattern.finditer(beginning))
    return tuple(dict.fromkeys(name for name in names if name.split()[0] not in _NO_NAMES))
