"""Request parts: splits a sentence that asks to forget into what goes, what stays, and what only explains it.

`Forget my new address but keep my phone number` names two things, and one stays. In `forget the alarm code, we
changed it` the second clause gives a reason, whose words are not part of the name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from recollect.events.late_pattern import late_pattern
from recollect.jobs.extraction.clauses import clauses

#: The beginning of a part with another meaning than the part before it.
_CONTRAST = late_pattern(
    r"[,;]?\s{1,4}(?:but|aber|pero|mais|ma)\s{1,4}|[,;]?\s{1,4}(?=(?:except|apart from|außer|excepto|sauf|tranne)\b)"
    r"|(?:[,;]\s{0,4}(?:and\s{1,4})?|\s{1,4}and\s{1,4})(?=(?:please\s{1,4})?(?:keep|remember|leave|not)\b)",
    re.IGNORECASE,
)
#: A part that does not ask and names what stays.
_STAYS = late_pattern(
    r"\b(?:keep|remember|leave|stays?|not|except|apart from|behalt\w{0,3}|bleib\w{0,3}|außer|guarda|excepto|gard\w{1,2}"
    r"|sauf|tranne)\b",
    re.IGNORECASE,
)
_JOIN = late_pattern(r"\W{0,8}(?:and|or|und|oder|y|o|et|ou|e)\b", re.IGNORECASE)
#: What joins the things that a part names; commas do in a list with `and`: `forget Rome, we fly to Oslo` has one thing.
_AND = late_pattern(r",?\s{1,4}(?:and|or|und|oder|y|et|ou)\s{1,4}(?:about\s{1,4})?", re.IGNORECASE)
_COMMA = late_pattern(r",\s{1,4}")

_THING = "forget {}"
#: Things of a part that are compared apart, each with 16 sentences in 8 ms each: an append waits for it.
_THINGS_MAX = 3


class RequestParts(NamedTuple):
    """A sentence that asks to forget."""

    #: The parts that ask, with all that they name; the sentence where no part asks alone.
    asking: list[str]
    #: Whether another part names what stays.
    keeps: bool


def request_parts(sentence: str, asks: Callable[[str], bool]) -> RequestParts:
    """Return the parts of a sentence.

    Parameters:
        asks: whether a part asks by itself.
    """
    asking: list[str] = []
    keeps = False
    for part in _parts(sentence, asks):
        if asks(part):
            asking.append(part)
        else:
            keeps = keeps or _STAYS.search(part) is not None
    return RequestParts(asking or [sentence], keeps and bool(asking))


def things_apart(part: str) -> list[str]:
    """Return a request for each of the first things that a part names; none where it names a single one."""
    joined = _AND.split(part)
    if len(joined) == 1:
        return []
    first, *others = islice((thing for it in joined for thing in _COMMA.split(it)), _THINGS_MAX)
    return [first, *map(_THING.format, others)]


def _parts(sentence: str, asks: Callable[[str], bool]) -> Iterator[str]:
    """Yield the clauses of a sentence; what `and` joins to one is a part of it, unless it asks by itself."""
    for text in _CONTRAST.split(sentence):
        begin, last = 0, 0
        for clause in clauses(text):
            if last and not (_JOIN.match(text, last) and not asks(clause.text)):
                yield text[begin:last]
                begin = clause.start
            last = clause.end
        if last:
            yield text[begin:last]
