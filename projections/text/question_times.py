"""Question times: the time ranges that a question asks about, read from when it is asked.

A question is about the past unless its words say otherwise: "what did I do in May?" means the last May, "what's on the
14th?" the next 14th. Open ranges such as "since March" and "before Christmas" get both ends.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from recollect.projections.text.calendar_ranges import day_of
from recollect.projections.text.date_ranges import DateRange, find_dates

#: Days of "what's coming up?", of "recently" and of "the other day", which name no length.
_UPCOMING_DAYS = 92
_RECENT_DAYS = 30
#: The open end of "before X" and of "after X" in the future, in days, by the longest X that it applies to: before
#: Christmas means weeks, before June months, before 2020 years.
_OPEN_DAYS = ((7, 60), (92, 366), (36_525, 3_660))
#: Characters before a date that are read for its relation, such as `before the`.
_RELATION_CHARS = 16

_UPCOMING = re.compile(
    r"\b(?:coming up|upcoming|(?:what(?:'s| is| are)|any) (?:my |our |the )?(?:plans?|next|ahead|on|planned|scheduled)|"
    r"my (?:plans|schedule|calendar|agenda)|what do (?:i|we) have|do (?:i|we) have (?:anything|something|any|plans)|"
    r"(?:what|where|when) (?:am|are) (?:i|we) \w{2,20}ing|next (?:[\w']{1,20} ){0,2}appointments?|"
    r"will (?:i|we|he|she|they|it)|"
    r"am i (?:doing|going|meeting|seeing|free|busy)|are we (?:doing|going|meeting|seeing)|going to|"
    r"should i not forget|to-?dos?|still (?:have|need) to|"
    # German, Spanish and French
    r"steht .{0,40}an|(?:habe|hab) ich (?:\w{1,20} ){0,3}(?:vor|geplant)|mache ich|meine (?:nächsten )?termine|"
    r"qué (?:planes )?(?:tengo|tenemos|voy a|vamos a)|mis (?:planes|citas)|mi agenda|próximas citas|"
    r"j'ai (?:de |\w{1,20} ){0,2}prévue?s?|mes (?:prochains )?rendez-vous|mon agenda|je vais faire|"
    r"(?:ai-je|avons-nous) prévu)\b|"
    # Chinese and Japanese
    r"什么(?:安排|计划|打算|事要)|有(?:什么)?安排|要做什么|待办|予定",
    re.IGNORECASE,
)
_PREVIOUS_SESSION = re.compile(
    r"\b(?:(?:beim |unser(?:em|es|e)? )letzte[ns]? (?:mal|gespräch)|worüber haben wir (?:zuletzt|letztes mal)|"
    r"la última vez que (?:hablamos|charlamos)|nuestra última conversación|"
    r"la dernière fois (?:qu'on|que nous)|notre dernière conversation)\b|"
    r"上次(?:我们)?(?:聊|说|谈)|前回(?:の会話|話した|何を話)|この前話した|"
    r"\b(?:last time (?:we|i|you) (?:talked|spoke|chatted|met|discussed|wrote|were talking|had a (?:chat|talk))|"
    r"(?:talk|talking|talked|discuss|discussed|speak|spoke|chat|chatted|say|said|tell|told|mention|mentioned|left off|"
    r"leave off|stop|stopped)\b[^.?!\n]{0,40}\blast time|"
    r"(?:our|the|my|your) (?:last|previous|latest) (?:conversation|chat|session|talk|discussion)|"
    r"where (?:did|were) we(?: (?:leave off|stop|get to))?\W*+$|(?:where|what) we left off|continue from last time)",
    re.IGNORECASE,
)
_RECENT = re.compile(
    r"\b(?:recently|lately|these days|the other day|neulich|kürzlich|in letzter zeit|últimamente|hace poco|récemment|"
    r"dernièrement)\b|最近|この間",
    re.IGNORECASE,
)
_RELATION = re.compile(
    r"\b(?P<word>before|after|since|from|between|until|till|by)(?: (?:the|my|our))?\s*$", re.IGNORECASE
)
_OWN_RELATION = re.compile(r"(?P<word>before|after|since|from|between|until|till|by)\b", re.IGNORECASE)
_HAS_END = re.compile(r"[-–]| (?:and|to|until|till|through) ", re.IGNORECASE)
_TO = re.compile(r"\A\s*+(?:and|to|until|till|through|-|–)\s*+(?:the\s++)?\Z", re.IGNORECASE)
#: Prepositions that a date may begin with after the `to` of a range: `from Monday until Friday`.
_TO_PREPOSITIONS = frozenset(("until", "till"))


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionTimes:
    """The times that a question asks about."""

    #: The time ranges, in the order of the question.
    ranges: tuple[DateRange, ...]
    #: Whether it asks about the conversation before the running one: "what did we talk about last time?".
    previous_session: bool
    #: Whether it asks what is coming; `ranges` are then when it will happen, not when it was said.
    upcoming: bool


def question_times(text: str, asked_at: datetime) -> QuestionTimes:
    """Return the times that a question asks about.

    Parameters:
        asked_at: the time of the question, aware; relative dates count from it.
    """
    try:
        today = day_of(asked_at)
        horizon = today + timedelta(days=_UPCOMING_DAYS)
    except OverflowError:
        # At an end of the calendar.
        return QuestionTimes(ranges=(), previous_session=False, upcoming=False)
    plain = text.replace("’", "'")
    upcoming = _UPCOMING.search(plain) is not None
    dates = list(find_dates(text, asked_at, "future" if upcoming else "past"))
    ranges = _resolved(text, dates, asked_at)
    if not ranges and upcoming:
        ranges = [DateRange("", today, horizon)]
    elif not ranges and today.year > 1 and (recent := _RECENT.search(text)) is not None:
        start = today - timedelta(days=_RECENT_DAYS)
        ranges = [DateRange(recent.group(), start, today + timedelta(days=1), recent.start())]
    return QuestionTimes(
        ranges=tuple(ranges),
        previous_session=_PREVIOUS_SESSION.search(plain) is not None,
        upcoming=upcoming and all(date.end > today for date in ranges),
    )


def _resolved(text: str, dates: Sequence[DateRange], asked_at: datetime) -> list[DateRange]:
    """Return the dates with their open ends closed, and the two ends of a range as one."""
    ranges: list[DateRange] = []
    rest = iter(enumerate(dates))
    for index, date in rest:
        relation = _relation(text, date)
        following = dates[index + 1] if index + 1 < len(dates) else None
        if relation in ("between", "from") and following is not None and _is_end(text, date, following):
            next(rest)
            ranges.append(_joined(date, following, asked_at))
        else:
            ranges.append(_closed(date, relation, asked_at))
    return ranges


def _relation(text: str, date: DateRange) -> str:
    """Return the word that relates a date to the question, such as `before`; empty for the date itself."""
    match = _OWN_RELATION.match(date.text) or _RELATION.search(
        text[max(0, date.position - _RELATION_CHARS) : date.position]
    )
    if match is None or (match.string is date.text and _HAS_END.search(date.text)):
        # `between May and July` has both ends.
        return ""
    return match["word"].lower()


def _is_end(text: str, start: DateRange, end: DateRange) -> bool:
    """Return whether a range from `start` ends with the date `end`, which follows it."""
    gap = text[start.position + len(start.text) : end.position]
    return _TO.fullmatch(gap) is not None or (not gap.strip() and end.text.split()[0].lower() in _TO_PREPOSITIONS)


def _joined(start: DateRange, end: DateRange, asked_at: datetime) -> DateRange:
    """Return the range from one date to another; without a year, the later one may have been read a year too early."""
    first, last = start.start, end.end
    if last <= first < last + timedelta(days=7):
        # Two weekdays.
        first -= timedelta(days=7)
    elif last <= first:
        try:
            if last <= asked_at:
                first = first.replace(year=first.year - 1)
            else:
                last = last.replace(year=last.year + 1)
        except ValueError:
            # 29 February.
            first = last - timedelta(days=366)
    return DateRange(f"{start.text} – {end.text}", first, last, start.position)


def _closed(date: DateRange, relation: str, asked_at: datetime) -> DateRange:
    """Return the range of `before`, `after`, `since` or `until` a date; the date itself for other words."""
    tomorrow = day_of(asked_at) + timedelta(days=1)
    open_days = timedelta(
        days=next((days for longest, days in _OPEN_DAYS if date.end - date.start <= timedelta(days=longest)), 0)
    )
    try:
        match relation:
            case "before":
                return date._replace(start=date.start - open_days, end=date.start)
            case "since" | "from" if date.start < tomorrow:
                return date._replace(end=tomorrow)
            case "after" if date.end < tomorrow:
                return date._replace(start=date.end, end=tomorrow)
            case "after" | "from" | "since":
                start = date.end if relation == "after" else date.start
                return date._replace(start=start, end=start + open_days)
            case "until" | "till" | "by" if date.end > tomorrow:
                return date._replace(start=min(date.start, tomorrow - timedelta(days=1)))
            case "until" | "till":
                return date._replace(start=date.start - open_days)
            case _:
                return date
    except OverflowError:
        return date
