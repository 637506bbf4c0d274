"""Date bounds: recognises a date that is the first or the last day of a range: `since 2012`, `until Sunday`."""

from __future__ import annotations

import re

from recollect.events.late_pattern import late_pattern

#: Characters before a date that are read for its relation.
_RELATION_CHARS = 16
_ARTICLES = r"(?:['’]?(?:\s(?:on|in|at|the|my|our|zum|zur|dem|am|el|la|le|au|en)\b)*)"
_FIRST_DAY = late_pattern(rf"(?:\b(?:since|seit|desde|depuis)|\bс){_ARTICLES}\s*+\Z", re.IGNORECASE)
_UNTIL = r"(?:\b(?:until|till?|through|bis|hasta|jusqu(?:['’](?:au|en|à))?)|\bдо)"
_LAST_DAY = late_pattern(rf"{_UNTIL}{_ARTICLES}\s*+\Z", re.IGNORECASE)
_ANY_LAST_DAY = late_pattern(rf"{_UNTIL}\b", re.IGNORECASE)
#: The words between the first and the last day of a range, and before the first day of `between 3 July and 9 July`.
_TO = late_pattern(
    r"\A\s*+(?:to|until|till?|through|bis|hasta|al?|au|jusqu['’]au|-|–)(?:\s(?:the|zum|el|le))?\s*+\Z", re.IGNORECASE
)
_BOTH_ENDS = late_pattern(r"[-–]|\s(?:to|until|till?|through|and|bis|und|hasta|al?|y|au|et)\s", re.IGNORECASE)
_AND = late_pattern(r"\A\s*+(?:and|und|y|et)(?:\s(?:the|dem|el|le))?\s*+\Z", re.IGNORECASE)
_BETWEEN = late_pattern(r"\b(?:between|zwischen|entre)(?:\s(?:the|dem|el|le))?\s*+\Z", re.IGNORECASE)


def is_first_day(text: str, position: int, words: str) -> bool:
    """Return whether the date `words` at a position of a text is the day from which something holds."""
    return _has_relation(_FIRST_DAY, text, position, words)


def is_last_day(text: str, position: int, words: str) -> bool:
    """Return whether the date `words` at a position of a text is the day until which something holds."""
    return _has_relation(_LAST_DAY, text, position, words)


def may_have_last_day(text: str) -> bool:
    """Return whether a text has a word for the day until which something holds."""
    return _ANY_LAST_DAY.search(text) is not None


def has_both_ends(words: str) -> bool:
    """Return whether the words of a date name its first and its last day: `from 2016 to 2020`."""
    return _BOTH_ENDS.search(words) is not None


def are_ends(text: str, first_position: int, first: str, last_position: int, last: str) -> bool:
    """Return whether two dates of a text are the first and the last day of one time: `from July 3 to July 17`."""
    gap_start = first_position + len(first)
    if not 0 <= last_position - gap_start <= _RELATION_CHARS:
        return False
    gap = text[gap_start:last_position]
    is_between = _BETWEEN.search(_before(text, first_position)) is not None and _AND.match(gap) is not None
    return is_between or _TO.match(gap) is not None or (not gap.strip() and is_last_day(text, last_position, last))


def _has_relation(relation: re.Pattern[str], text: str, position: int, words: str) -> bool:
    """Return whether a relation precedes a date, or is its first word."""
    own_word = words.split(maxsplit=1)[0] if words.strip() else ""
    return relation.search(own_word) is not None or relation.search(_before(text, position)) is not None


def _before(text: str, position: int) -> str:
    """Return the characters before a date."""
    return text[max(0, position - _RELATION_CHARS) : position]
