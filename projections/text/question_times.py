"""Question times: the time ranges that a question asks about, read from when it is asked.

A question is about the past unless its words say otherwise: "what did I do in May?" means the last May, "what's on the
14th?" the next 14th. Open ranges such as "since March" and "before Christmas" get both ends.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from msgspec import Struct

from recollect.events.late_pattern import late_pattern
from recollect.projections.text.calendar_ranges import SEASONS
from recollect.projections.text.date_reading import read_dates
from recollect.projections.text.date_words import DATE_WORDS, any_of

#: Days of "what's coming up?", of "recently" and of "the other day", which name no length.
_UPCOMING_DAYS = 92
_RECENT_DAYS = 30
#: The open end of "before X" and of "after X" in the future, in days, by the longest X that it applies to: before
#: Christmas means weeks, before June months, before 2020 years.
_OPEN_DAYS = ((7, 60), (92, 366), (36_525, 3_660))
#: The probability from which a time in the next days keeps a question's date from limiting the search.
_CONTESTED_MIN = 0.8
_CONTESTED_WITHIN = timedelta(days=8)
#: The same of a question in the present, for a time at any distance.
_CONTESTED_PRESENT_MIN = 0.5
#: Characters before a date that are read for its relation, such as `before the`.
_RELATION_CHARS = 16

_UPCOMING = late_pattern(
    r"\b(?:coming up|upcoming|(?:what(?:'s| is| are)|any) (?:my |our |the )?(?:plans?|next|ahead|on|planned|scheduled)|"
    r"(?<!was )(?<!were )(?<!was on )(?<!were on )my (?:plans|schedule|calendar|agenda)|"
    r"what do (?:i|we) have|do (?:i|we) have (?:anything|something|any|plans)|"
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
#: A question whose first verb is a modal one or in the present: about a time that is not over, its answer was said
#: at any time, and need not name it: `may I go running this week?`.
_PRESENT = late_pattern(
    r"\A(?!.{0,300}\b(?:did|was|were|said|war|waren|hatte)\b)\W*+(?:[\w']++\W++){0,3}?(?:can|could|may|might|must|shall|should|will|would|do|does|am|is|are|"
    r"kann|können|darf|dürfen|soll|sollen|muss|müssen|wird|werden|werde|ist|sind|bin)\b",
    re.IGNORECASE | re.DOTALL,
)
_PREVIOUS_SESSION = late_pattern(
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
_RECENT = late_pattern(
    r"\b(?:recently|lately|these days|the other day|neulich|kürzlich|in letzter zeit|últimamente|hace poco|récemment|"
    r"dernièrement)\b|最近|この間",
    re.IGNORECASE,
)
_RELATION = late_pattern(
    r"\b(?P<word>before|after|since|from|between|until|till|by)(?: (?:the|my|our))?\s*$", re.IGNORECASE
)
#: An indefinite word before the name of a day.
_ANY = late_pattern(r"\b(?:an?|any|each|every)\s+[\w']+\W*$", re.IGNORECASE)
#: The question, after a clause that is a statement.
_QUESTION_FOLLOWS = late_pattern(
    r"^[^,;]{0,60}[,;]\s+(?:(?:so|and|but)\s+)?(?:what|when|where|who|how|which|why|can|may|should|do|does|did|is|are|will)\b",
    re.IGNORECASE,
)
_OWN_RELATION = late_pattern(r"(?P<word>before|after|since|from|between|until|till|by)\b", re.IGNORECASE)
#: Words before a date that make it a part of a thing, or the end of a time: `due on Friday`, `like last year`.
_OF_THING = late_pattern(
    r"\b(?:than|like|due|dated|expires?|ends?|by|until|till|before|after|since|from|"
    r"bis|vor|nach|seit|ab|fällig|hasta|antes|desde|después|avant|après|depuis|jusqu|до|после)"
    r"(?:['’]?(?: (?:on|in|at|the|my|our|this|that|zum|dem|am|el|de|la|le|au))*)\s*+$",
    re.IGNORECASE,
)
#: Words before a date of a thing, `the deadline of March 1`, or for which something is meant; only a question for all
#: of a time, `my plans for Friday` or `a summary of my August`, means it.
_FOR = late_pattern(
    r"\b(?:of|for|booked|scheduled|planned|set)(?: (?:on|in|at|the|my|our|this|that))*\s*+$", re.IGNORECASE
)
_PREPOSITION = late_pattern(r"\b(?:in|on|during|at|over|throughout|within)\s*+$", re.IGNORECASE)
#: Dates that say without a preposition when something was: `yesterday`, `last week`, `two days ago`, `in May`.
_ADVERB = late_pattern(
    r"\A(?:in|on|during|at|over|throughout|within|last|this|next|the day|earlier|later)\b|"
    r"\b(?:yesterday|today|tonight|tomorrow|ago)\b",
    re.IGNORECASE,
)
#: What may follow a date without a preposition that is not part of a name, unlike `my July trip`.
_CLAUSE_END = late_pattern(r"\A\s*+(?:$|[?.!,;:)]|(?:and|but|when|with|at|so|please|for (?:me|us)|like|been|go)\b)")
#: A season before a noun may name the kind of a thing: `the summer tyres`.
_SEASON_END = late_pattern(rf"\b(?:{'|'.join(SEASONS)})\Z", re.IGNORECASE)
#: A year, a month, a season or a weekday as the whole of what is asked about: `how was my July?`, `a summary of 2024`.
_WHOLE_TIME = late_pattern(
    rf"\b(?:my|our|of|how (?:was|were|did)) (?:year )?(?P<time>(?P<month>{any_of(DATE_WORDS['en'].months)})|"
    rf"(?P<season>{'|'.join(SEASONS)})|(?P<weekday>{any_of(DATE_WORDS['en'].weekdays)})|weekend|"
    r"(?P<year>(?:19|20)\d\d))(?=\W*+$|\s(?:for (?:me|us)|like|been|go)\b)",
    re.IGNORECASE,
)
_HAS_END = late_pattern(r"[-–]| (?:and|to|until|till|through) ", re.IGNORECASE)
_TO = late_pattern(r"\A\s*+(?:and|to|until|till|through|-|–)\s*+(?:the\s++)?\Z", re.IGNORECASE)
#: Prepositions that a date may begin with after the `to` of a range: `from Monday until Friday`.
_TO_PREPOSITIONS = frozenset(("until", "till"))


class DateRange(NamedTuple):
    """A date in a question, with the time range that it names."""

    #: The words of the date.
    text: str
    start: datetime
    #: Exclusive.
    end: datetime
    #: The position of its first character in the text.
    position: int = 0


class QuestionTimes(Struct, frozen=True, kw_only=True):
    """The times that a question asks about."""

    #: The time ranges, in the order of the question.
    ranges: tuple[DateRange, ...]
    #: Whether it asks about the conversation before the running one: "what did we talk about last time?".
    previous_session: bool
    #: The range that all that is asked for belongs to: its only date, which is not part of a name. None: dates weigh.
    #: It may be longer than that of `ranges`, whose messages come first.
    scope: DateRange | None
    #: The same for a question that names nothing but a time.
    whole_scope: DateRange | None
    #: Whether it asks what is coming; `ranges` are then when it will happen, not when it was said.
    upcoming: bool


def question_times(text: str, asked_at: datetime) -> QuestionTimes:
    """Return the times that a question asks about.

    Parameters:
        asked_at: the time of the question, aware; relative dates count from it.
    """
    try:
        today = _midnight(asked_at)
        horizon = today + timedelta(days=_UPCOMING_DAYS)
    except OverflowError:
        # At an end of the calendar.
        return QuestionTimes(ranges=(), previous_session=False, scope=None, whole_scope=None, upcoming=False)
    plain = text.replace("’", "'")
    upcoming = _UPCOMING.search(plain) is not None
    is_present = not upcoming and _PRESENT.search(plain) is not None
    dates = _dates(text, asked_at, is_upcoming=upcoming)
    ranges = _resolved(text, dates, asked_at)
    is_scope = (
        len(ranges) == 1
        and not _is_of_thing(plain, dates)
        and not _is_contested(text, dates, asked_at, is_present=is_present)
        and not any(_is_any_day(plain, date) or _is_of_other_clause(plain, date) for date in dates)
    )
    whole_scope = ranges[0] if is_scope else None
    is_limit = whole_scope is not None and not (is_present and whole_scope.end > asked_at)
    whole_scope = None if whole_scope is None else _with_last_days(whole_scope, today)
    scope = whole_scope if is_limit and _is_adverbial(plain, dates) else None
    if not ranges and upcoming:
        ranges = [DateRange("", today, horizon)]
    elif not ranges and today.year > 1 and (recent := _RECENT.search(text)) is not None:
        start = today - timedelta(days=_RECENT_DAYS)
        ranges = [DateRange(recent.group(), start, today + timedelta(days=1), recent.start())]
    return QuestionTimes(
        ranges=tuple(ranges),
        previous_session=_PREVIOUS_SESSION.search(plain) is not None,
        scope=scope,
        whole_scope=whole_scope,
        upcoming=upcoming and all(date.end > today for date in ranges),
    )


def _dates(text: str, asked_at: datetime, *, is_upcoming: bool) -> list[DateRange]:
    """Return the dates of a question; a month or a year that it is all about is one without a preposition."""
    dates = _probable(text, asked_at, is_upcoming=is_upcoming)
    whole = None if dates else _WHOLE_TIME.search(text)
    if whole is None:
        return dates
    word = "on" if whole["weekday"] else "in" if whole["month"] or whole["season"] or whole["year"] else "last"
    read = _probable(f"{word} {whole['time']}", asked_at, is_upcoming=is_upcoming)
    return [date._replace(text=whole["time"], position=whole.start("time")) for date in read]


def _probable(text: str, asked_at: datetime, *, is_upcoming: bool) -> list[DateRange]:
    """Return the most probable ranges of what is probably a date."""
    return [
        DateRange(date.words, date.candidates[0].start, date.candidates[0].end, date.position)
        for date in read_dates(text, asked_at, leaning=1 if is_upcoming else -1)
        if sum(candidate.probability for candidate in date.candidates) >= 0.5
    ]


def _with_last_days(scope: DateRange, today: datetime) -> DateRange:
    """Return a scope that is the week before this one with the days since: `last week` may mean the last seven days.

    A week with a number in it, such as that of 16 November, is no other one.
    """
    first, end = scope.start.date(), scope.end.date()
    is_last_week = end - first == timedelta(days=7) and today.date() - end == timedelta(days=today.weekday())
    return scope._replace(end=today) if is_last_week and not any(map(str.isdigit, scope.text)) else scope


def _is_contested(text: str, dates: Sequence[DateRange], asked_at: datetime, *, is_present: bool) -> bool:
    """Return whether the same words would mean another time in a message: `what is my class on Friday?`.

    Parameters:
        is_present: whether the question is in the present, so that this time may be far ahead.
    """
    tops = {date.position: date.candidates[0] for date in read_dates(text, asked_at)}
    return any(
        top.start != date.start
        and top.probability >= (_CONTESTED_PRESENT_MIN if is_present else _CONTESTED_MIN)
        and (is_present or top.end - asked_at <= _CONTESTED_WITHIN)
        for date in dates
        if (top := tops.get(date.position)) is not None
    )


def _is_of_thing(text: str, dates: Sequence[DateRange]) -> bool:
    """Return whether the only date of a question belongs to a thing, such as a deadline, or limits a time at one end.

    Parameters:
        dates: the date, or the first and the last day of a range.
    """
    if len(dates) > 1:
        # Only `from` and `between` join two dates.
        return False
    before, after = _around(text, dates[0])
    own_word = dates[0].text.split(maxsplit=1)[0] if dates[0].text else ""
    is_related = bool(_relation(text, dates[0])) or any(map(_OF_THING.search, (before, own_word)))
    is_kind = _SEASON_END.search(dates[0].text) is not None and _CLAUSE_END.match(after) is None
    return is_related or is_kind or after.startswith(("'s", "-"))


def _is_adverbial(text: str, dates: Sequence[DateRange]) -> bool:
    """Return whether the only date of a question says when something was, unlike that of `my July trip`."""
    before, after = _around(text, dates[0])
    if len(dates) > 1:
        return True
    if _FOR.search(before):
        return False
    has_preposition = _ADVERB.search(dates[0].text) is not None or _PREPOSITION.search(before) is not None
    return has_preposition or _CLAUSE_END.match(after) is not None


def _is_any_day(text: str, date: DateRange) -> bool:
    """Return whether a date is any day of its name: `when do they open on a Friday?`."""
    before, _ = _around(text, date)
    return _ANY.search(f"{before}{date.text}") is not None


def _is_of_other_clause(text: str, date: DateRange) -> bool:
    """Return whether a date is in a clause before the question: `he had a fever last night, when may he go back?`."""
    words_before = text[: date.position].split()
    return len(words_before) > 2 and _QUESTION_FOLLOWS.search(text[date.position + len(date.text) :]) is not None


def _around(text: str, date: DateRange) -> tuple[str, str]:
    """Return the characters before and after a date."""
    end = date.position + len(date.text)
    return text[max(0, date.position - _RELATION_CHARS) : date.position], text[end : end + _RELATION_CHARS]


def _midnight(moment: datetime) -> datetime:
    """Return the beginning of a moment's day in its time zone."""
    return moment.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)


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
                # The year of the last day is that of both: `between August 11 and August 15 2023`.
                first = first.replace(year=last.year)
                first = first if first < last else first.replace(year=last.year - 1)
            else:
                last = last.replace(year=last.year + 1)
        except ValueError:
            # 29 February.
            first = last - timedelta(days=366)
    return DateRange(f"{start.text} – {end.text}", first, last, start.position)


def _closed(date: DateRange, relation: str, asked_at: datetime) -> DateRange:
    """Return the range of `before`, `after`, `since` or `until` a date; the date itself for other words."""
    tomorrow = _midnight(asked_at) + timedelta(days=1)
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
