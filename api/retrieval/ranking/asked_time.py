"""Asked time: selects the memories of the time that a question asks about.

These are the messages said in it, those that name a date in it, and the facts that held in it. A question that is
about nothing but a time gets these alone; one about a thing at a time also gets what was said right before and in the
weeks after it, as long as there is anything of that time. Without that, it gets the messages that state a time around
it, such as `from 2016 to 2020`, and the facts that held then, or nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from recollect.api.retrieval.contract.result import Item
from recollect.api.retrieval.ranking.candidates import Mask
from recollect.api.retrieval.ranking.features import near_span_mask, span_mask
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.api.retrieval.understanding.query import TimeRange
from recollect.events.envelope import DAY_US, datetime_of, microseconds
from recollect.events.late_pattern import late_pattern
from recollect.projections.queries.date_queries import DateQueries
from recollect.projections.queries.knowledge_items import KnowledgeItem
from recollect.projections.queries.queried_episodes import NamedDate
from recollect.projections.search_index.episode_arrays import Ints
from recollect.projections.search_index.knowledge_index import KnowledgeIndex
from recollect.projections.text.date_bounds import are_ends, has_both_ends, is_first_day, is_last_day
from recollect.projections.text.date_reading import read_dates
from recollect.projections.text.sentences import split_sentences
from recollect.projections.text.text_flags import is_question
from recollect.projections.text.words import WORD

#: The reason of a result without items: nothing that memory has is of the time asked for.
NO_MEMORY_OF_TIME = "no memory of that time"
#: Characters of a question about a time, and words that may precede it, such as a greeting.
_QUESTION_CHARS_MAX = 300
_GREETING_WORDS = 4
#: The longest date that may answer for a shorter time within it, in days, by the length of that time: `this year I read
#: four books` does not state what was done on one of its days. A time with both of its ends may be of any length.
_AROUND_DAYS = ((7, 62), (92, 184), (36_525, 3_660))
#: Characters of an item of knowledge in which dates are read.
_TEXT_CHARS_MAX = 4_000
#: Probability from which words of a message mean a date.
_DATE_MIN = 0.5
#: How long after the last message a time without a year may begin; later, the memory has ended long ago.
_AFTER_MEMORY_US = 90 * DAY_US
#: A question for how a time was, and facts of before that its answer has.
_HOW_WAS = late_pattern(r"\b(?:how (?:was|were|is|did)|wie (?:war|ist|lief)|cómo (?:fue|estuvo)|comment était)\b", re.I)
_LASTING_MAX = 3
#: The types of knowledge that lasts, unlike an event; None: items that are not facts.
_LASTING = (None, "fact")
#: Messages that name a weekday and are searched for habits, newest first.
_HABITS_READ = 200
_HABIT = r"\b(?:every|each|mon(?=days)|tues(?=days)|wednes(?=days)|thurs(?=days)|fri(?=days)|satur(?=days)|sun(?=days))"
_is_habit = late_pattern(_HABIT, re.IGNORECASE).search


def limiting_scope(context: SearchContext) -> TimeRange | None:
    """Return the time that limits what may answer a query; None when its dates only weigh."""
    request, query = context.request, context.query
    if query.scope is None or not request.gate or request.ranking != "weighted":
        return None
    if not _is_one_question(query.question):
        return None
    return query.scope if query.names_year or _is_recent(context, query.scope) else None


def _is_one_question(text: str) -> bool:
    """Return whether a text is one question or request; a longer message may name a time in passing."""
    *others, last = split_sentences(text[:_QUESTION_CHARS_MAX]) or [""]
    is_short = len(text) < _QUESTION_CHARS_MAX and sum(len(WORD.findall(other)) for other in others) <= _GREETING_WORDS
    return is_short and is_question(last.replace("？", "?"))


def _is_recent(context: SearchContext, scope: TimeRange) -> bool:
    """Return whether a time without a year is near the memory; if all of it is older, another year may be meant."""
    times = context.episodes.occurred_at_us
    return bool(len(times)) and scope.start_us <= int(times.max()) + _AFTER_MEMORY_US


def versions_naming_dates(dates: DateQueries, spans: Sequence[TimeRange]) -> dict[int, float]:
    """Return the versions of the episodes that name a date range within one of `spans` and not much wider.

    Each has the probability that its words mean such a range.
    """
    probabilities: dict[int, float] = {}
    for span in spans:
        for version, probability in dates.mentioning(span.start_us, span.end_us, range_us_max=_widest_us(span)):
            probabilities[version] = max(probability, probabilities.get(version, 0.0))
    return probabilities


def of_scope(context: SearchContext, scope: TimeRange, versions_naming_span: Ints, allowed: Mask) -> Mask:
    """Return the mask of the allowed episodes that are of the time asked for.

    Parameters:
        versions_naming_span: the versions of the episodes that name a date in it.
    """
    mask = span_mask(context.episodes, [scope])
    assert mask is not None, "a scope is given"
    mask[context.episodes.rows_of(versions_naming_span)] = True
    if context.query.upcoming and scope.end_us - scope.start_us <= DAY_US:
        mask[context.episodes.rows_of(_habits(context, scope))] = True
    return mask & allowed


def answering_mask(context: SearchContext, scope: TimeRange, of_time: Mask, allowed: Mask) -> Mask:
    """Return the mask of the episodes that may answer a query about a time.

    Parameters:
        of_time: the mask of the allowed episodes that are of that time.
    """
    near = near_span_mask(context.episodes, [scope])
    if not of_time.any():
        return _telling_of(context, scope) & allowed
    if near is None or not context.query.has_topic:
        return of_time
    # People often mention an event some days later, and dates of questions are not exact.
    return of_time | ((near | _telling_of(context, scope) | _stating_what_is_valid_in(context, scope)) & allowed)


def _telling_of(context: SearchContext, scope: TimeRange) -> Mask:
    """Return the mask of the episodes about a longer time around an asked one, or about what held in it."""
    knowledge = context.index.knowledge if context.query.has_topic else KnowledgeIndex()
    lasting, identity = knowledge.fact_sources, knowledge.identity_sources
    dates = context.snapshot.dates.around(scope.start_us, scope.end_us, lasting)
    texts = context.snapshot.episodes.texts([version for _, version in dates])
    versions = [
        version
        for (id, version), named in dates.items()
        if version in texts
        and (
            _covers(texts[version], named, scope)
            or (id in lasting and _is_valid_in(texts[version], named, scope, for_life=id in identity))
        )
    ]
    mask = np.zeros(len(context.episodes), np.bool_)
    mask[context.episodes.rows_of(np.array(sorted(versions), np.int64))] = True
    return mask


def _covers(text: str, dates: Sequence[NamedDate], scope: TimeRange) -> bool:
    """Return whether a text states a time around an asked one: `from July 3 to July 17`, `last month`."""
    asked_us = scope.end_us - scope.start_us
    days_max = next((days for longest, days in _AROUND_DAYS if asked_us <= longest * DAY_US), 0)
    likely = [date for date in dates if date.probability >= _DATE_MIN]
    placed = sorted((text.find(date.words), date) for date in likely)
    return any(
        _begins_before(date, scope)
        and _ends_after(date, scope)
        and (has_both_ends(date.words) or date.end_us - date.start_us <= days_max * DAY_US)
        and not is_last_day(text, position, date.words)
        for position, date in placed
    ) or any(
        _begins_before(first, scope) and _ends_after(last, scope)
        for (first_position, first), (position, last) in pairwise(placed)
        if are_ends(text, first_position, first.words, position, last.words)
    )


def _is_valid_in(text: str, dates: Sequence[NamedDate], scope: TimeRange, *, for_life: bool) -> bool:
    """Return whether what a text states held in a time: it says since or until when, or its date is that of a birth.

    Parameters:
        for_life: whether it holds since its date without a word for it.
    """
    placed = [(text.find(date.words), date) for date in dates]
    return any(
        _ends_after(date, scope)
        if is_last_day(text, position, date.words)
        else (for_life or is_first_day(text, position, date.words)) and _begins_before(date, scope)
        for position, date in placed
    )


def _begins_before(date: NamedDate, scope: TimeRange) -> bool:
    """Return whether a date, whose days are those of the zone of its message, begins before the end of a time."""
    return date.start_us + min(date.end_us - date.start_us, DAY_US) // 2 < scope.end_us


def _ends_after(date: NamedDate, scope: TimeRange) -> bool:
    """Return whether a date, whose days are those of the zone of its message, ends after the start of a time."""
    return date.end_us - min(date.end_us - date.start_us, DAY_US) // 2 > scope.start_us


def _stating_what_is_valid_in(context: SearchContext, scope: TimeRange) -> Mask:
    """Return the mask of the episodes that state what held in a time, such as a home, said before its end."""
    lasting = [item for item in context.index.knowledge.items if item.memory_type in _LASTING and _holds(item, scope)]
    versions = context.snapshot.episodes.versions_of({id for item in lasting for id in item.source_events})
    mask = np.zeros(len(context.episodes), np.bool_)
    mask[context.episodes.rows_of(np.array(sorted(versions), np.int64))] = True
    return mask & (context.episodes.occurred_at_us < scope.end_us)


def lasting_facts(context: SearchContext) -> list[KnowledgeItem]:
    """Return what began before a time and held in it, newest first, for a question such as `how was my July?`."""
    scope, query = limiting_scope(context), context.query
    if scope is None or query.has_topic or _HOW_WAS.search(query.question) is None:
        return []
    knowledge, first_time = context.index.knowledge, context.snapshot.episodes.first_time
    people = set(query.participants or query.askers) or knowledge.graph.speakers
    facts = [
        (first[0], item)
        for item in knowledge.items
        if item.memory_type == "fact" and item.status == "active" and not people.isdisjoint(item.entities)
        if _holds(item, scope) and (first := first_time(item.source_events)) is not None and first[0] < scope.start_us
    ]
    return [item for _, item in sorted(facts, key=lambda fact: (-fact[0], fact[1].id))[:_LASTING_MAX]]


def _holds(item: KnowledgeItem | Item, scope: TimeRange) -> bool:
    """Return whether the validity of an item, where it is stated, has a part in a time."""
    since_us, until_us = item.valid_from_us, item.valid_until_us
    return (until_us is None or until_us > scope.start_us) and (since_us is None or since_us < scope.end_us)


def may_answer(context: SearchContext, scope: TimeRange, item: Item, *, has_episodes: bool) -> bool:
    """Return whether an item of knowledge may answer a query about a time.

    Parameters:
        has_episodes: whether a message is of that time. Without one, knowledge has to be dated, and of that time.
    """
    if _names_date_in(item, scope):
        return True
    if item.kind != "fact":
        return has_episodes and context.query.has_topic
    if has_episodes and context.query.has_topic:
        return _holds(item, scope)
    is_said = item.valid_from_us is not None or (item.stated_at_us or scope.end_us) < scope.end_us
    return is_said and _holds(item, scope) and (has_episodes or context.query.has_topic)


def _names_date_in(item: Item, scope: TimeRange) -> bool:
    """Return whether a fact or a document names a date in a time: `Japan with Clara, April 2027`."""
    tops = (
        date.candidates[0]
        for date in read_dates(item.text[:_TEXT_CHARS_MAX], datetime_of(item.stated_at_us or item.occurred_at_us))
    )
    ranges = [(microseconds(it.start), microseconds(it.end)) for it in tops if it.probability >= _DATE_MIN]
    return any(
        scope.start_us <= (start_us + end_us) // 2 < scope.end_us and end_us - start_us <= _widest_us(scope)
        for start_us, end_us in ranges
    )


def _widest_us(scope: TimeRange) -> int:
    """Return the longest date range in a time that is about it, in microseconds."""
    return max(scope.end_us - scope.start_us, 7 * DAY_US) * 6 // 5


def _habits(context: SearchContext, scope: TimeRange) -> Ints:
    """Return the versions of the messages about a habit on the weekday of a day: `I do yoga every Thursday`."""
    offset_us = (scope.utc_offset or 0) * 60_000_000
    weekday = f"{datetime_of(scope.start_us + offset_us):%A}".lower()
    [stem] = context.snapshot.keywords.stemmer()(weekday)
    numbers = {int(number) for number in context.snapshot.keywords.occurrences(stem).split()}
    versions = sorted((number // 2 for number in numbers if number % 2), reverse=True)[:_HABITS_READ]
    texts = context.snapshot.episodes.texts(versions)
    return np.array(sorted(version for version, text in texts.items() if _is_habit(text)), np.int64)
