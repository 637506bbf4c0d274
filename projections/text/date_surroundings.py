"""Date surroundings: recognises expressions that look like dates but are parts of something longer.

The rest of a longer expression (`next month` before `the 5th`), the name of an event (`May 18th Movement`), a quotation
and a line of a script are never shown as dates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache

from recollect.events.late_pattern import late_pattern
from recollect.projections.text.date_patterns import DateReading
from recollect.projections.text.date_words import DATE_WORDS, UNSPACED, any_of
from recollect.projections.text.folding import fold

#: Characters before and after an expression that are compared, and those of its line.
_AROUND_CHARS = 24
_LINE_CHARS = 400
#: The text between a day and its weekday: `the 18th, a Sunday`.
_APPOSED = late_pattern(r",?\s\(?(?:an? )?")
_JOINED = late_pattern(r"\s?(?:of|de|del|du|des|の|的)?\s?")
_OF = r"(?:of|de|del|du|des|der|di|do|van)"
_ARTICLE = r"(?:the|el|la|le|den|am|l')"
_TO = r"(?:-|–|to|and|or|until|al?|y|hasta|et|au|und|oder|bis(?: zum)?|e|do)"
_ORDINAL = r"\d\d?(?:st|nd|rd|th|\.|º|er)"
_HAN_DATE = r"[0-9一二三四五六七八九十]{1,3}\s?[日号月일월]"
_HAN_REST = (
    rf"(?:{_HAN_DATE}|[春夏秋冬底]|末(?!っ)|初(?!めて|次)|[上中下]旬|半ば|今日|今天|正月|お盆|国庆|[^\W\d_]{{1,3}}节|"
    r"봄|여름|가을|겨울)"
)
_HAN_AFTER = late_pattern(rf"\A\s?[の的]?{_HAN_REST}")
_HAN_BEFORE = late_pattern(rf"(?:{_HAN_DATE}|[春夏秋冬])[の的]?\Z")
_OWN_TO = late_pattern(rf"{_TO} ", re.IGNORECASE)
#: An opening or closing quotation mark.
_QUOTE = late_pattern('["“”„«»「」『』]')
_OPENING = frozenset("“„«「『")
_SPEAKER = late_pattern(r"^[ \t>*_-]{0,4}[^\W\d_][\w .'’]{0,24}(?:\([^)\n]{1,30}\))?[*_]{0,2}[:：]", re.MULTILINE)
#: The kinds of `yesterday` and `last night`.
_DAYS = ("day", "night")
_CAPITALISED = late_pattern(r"\A ([^\W\d_]\w+)")
_NAME_BEFORE = late_pattern(r"\b([^\W\d_])\w{1,40} (?:del? |du )?(?:el |le )?\Z")


def unshown(text: str, readings: Sequence[DateReading]) -> Callable[[int], bool]:
    """Return a function that returns whether the expression at a place of `readings` is never shown as a date."""
    is_script = sum(1 for _ in _SPEAKER.finditer(text)) > 1

    def is_unshown(place: int) -> bool:
        reading = readings[place]
        if _is_part(text, readings, place):
            return True
        if reading.kind.endswith(".full"):
            return False
        line = text[max(0, reading.start - _LINE_CHARS) : reading.start].rpartition("\n")[2]
        if _is_quoted(line) or _names_event(text, reading):
            return True
        return is_script and reading.kind.startswith(_DAYS) and _SPEAKER.match(line) is not None

    return is_unshown


def _is_part(text: str, readings: Sequence[DateReading], place: int) -> bool:
    """Return whether an expression touches another one that means something else, or words of dates that none has."""
    reading = readings[place]
    previous = readings[place - 1] if place else None
    following = readings[place + 1] if place + 1 < len(readings) else None
    if previous is not None and (_are_joined(text, previous, reading) or _is_weekday_of(text, previous, reading)):
        return True
    if following is not None and _are_joined(text, reading, following):
        return True
    first = max(0 if previous is None else previous.end, reading.start - _AROUND_CHARS)
    last = min(len(text) if following is None else following.start, reading.end + _AROUND_CHARS)
    language = reading.expression.words.language
    # The preposition of an expression may be the middle of a longer one: `20 al 28 de este mes`.
    own = _OWN_TO.match(text, reading.start, reading.end)
    start = reading.start if own is None else own.end()
    rest_before, rest_after = (_HAN_BEFORE, _HAN_AFTER) if language in UNSPACED else _compiled(language)
    is_rest = rest_before.search(fold(text[first:start])) is not None
    return is_rest or rest_after.match(fold(text[reading.end : last])) is not None


def _are_joined(text: str, first: DateReading, second: DateReading) -> bool:
    """Return whether two expressions are one: `last week` and `on Friday`; not when they name the same time."""
    is_longer = any((item.candidates[0][1] - item.candidates[0][0]).days > 1 for item in (first, second))
    is_complete = first.kind.startswith(_DAYS) or second.kind.startswith(_DAYS)
    return (
        is_longer
        and (not is_complete or first.expression.words.language in UNSPACED)
        and not set(first.candidates) & set(second.candidates)
        and _JOINED.fullmatch(text[first.end : second.start]) is not None
    )


def _is_weekday_of(text: str, first: DateReading, second: DateReading) -> bool:
    """Return whether an expression is the weekday of the day before it, which may be far away: `the 18th, Sunday`."""
    return (
        second.kind.startswith("weekday")
        and first.kind.startswith(("day.of.month", "monthday"))
        and not set(first.candidates) & set(second.candidates)
        and _APPOSED.fullmatch(text[first.end : second.start]) is not None
    )


@cache
def _compiled(language: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of the words of dates before and after an expression, for folded text."""
    words = DATE_WORDS[language]
    tables = words.seasons, words.holidays, words.months, words.weekdays
    names = any_of(word for table in tables for word in table if len(word) > 3)
    parts = any_of([*words.parts, *words.units, "months", "years"])
    numbered = rf"(?:{_ORDINAL}|\d\d? {_OF})"
    before = rf"(?:\b(?:{numbered}|\d\d?\.? ?{_TO}|{names}|{parts})(?: {_OF})?(?: {_ARTICLE})?) \Z"
    not_time = r"\b(?! ?(?:uhr|h\b|[ap]m|:))"
    after = (
        rf"\A(?:,? (?:{_OF} )?(?:{_ARTICLE} ?)?{names}\b| {_ORDINAL}(?!\w)|"
        rf"(?:,? {_ARTICLE} (?:dia )?| ?{_TO} (?:{_ARTICLE} )?)\d\d?{not_time})"
    )
    return re.compile(before), re.compile(after)


def _is_quoted(line: str) -> bool:
    """Return whether a quotation is open at the end of the beginning of a line."""
    marks: list[str] = _QUOTE.findall(line)
    if not marks or marks[-1] == '"':
        return len(marks) % 2 == 1
    # „…“ in German: the mark that closes it opens a quotation in English.
    return marks[-1] in _OPENING and not (marks[-1] == "“" and "„" in marks)


def _names_event(text: str, reading: DateReading) -> bool:
    """Return whether a day is the name of an event or a place: `May 18th Movement`, `Plaza 25 de Mayo`."""
    language = reading.expression.words.language
    following = _CAPITALISED.match(text[reading.end : reading.end + _AROUND_CHARS])
    is_name = following is not None and following[1][0].isupper() and not following[1].isupper()
    if language == "de":
        return is_name and reading.kind == "day.of.month"
    if reading.kind != "monthday":
        return False
    if language == "en":
        return is_name
    before = _NAME_BEFORE.search(text[max(0, reading.start - _AROUND_CHARS) : reading.start])
    month = reading.expression.match.start("month")
    return before is not None and before[1].isupper() and text[month : month + 1].isupper()
