"""Plans: sets the end of plans, appointments and what holds until a future day; after it, only their message says so."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from recollect.events.catalogue.knowledge_events import SAYS
from recollect.events.late_pattern import late_pattern
from recollect.jobs.extraction.clauses import clauses
from recollect.projections.text.date_bounds import is_last_day, may_have_last_day
from recollect.projections.text.date_reading import ReadDate, read_dates

#: Returns the dates of a text.
FindDates = Callable[[str], Sequence[ReadDate]]
#: Predicates of plans, and of appointments whose object is a day; birthdays come again.
_PLAN = late_pattern(
    r"(?:is|are|am|was) \w{2,20}ing\b|(?:plans|needs|wants|hopes|intends|wishes|has|is going|is about|decided) to\b"
)
#: A plan in the words of its speaker: `I'm moving in with Jonas next month`.
_SAID_PLAN = late_pattern(r"\b(?:I['’]?m|we['’]?re|I am|we are) (?!not\b)\w{2,20}ing\b", re.IGNORECASE)
_DATED = late_pattern(r"(?<!birthday)(?<!anniversary)(?<!name day) is$")
_ON_DAY = late_pattern(
    r"(?:on|at|from|for|tomorrow|tonight|next)\b(?!.{0,40}\b(?:every|each|other)\b)(?!.{0,20}days\b)", re.IGNORECASE
)
#: Kinds of statements that are over after the day that they name.
_PLANNED = ("plan", "task", "event")
#: Words of what begins on a day and lasts.
_BEGINS = late_pattern(
    r"\b(?:start\w{0,3}|begin\w{0,4}|join(?:s|ing)?|from(?!.{1,40}\b(?:to|till?|until)\b)|as of|ab|beginn\w{0,2}|fäng\w{1,3}|fang\w{0,2}|anfang\w{0,2}|"
    r"empie[cz]\w{1,3}|empe[cz]\w{1,4}|desde|comien\w{1,3}|comen[cz]\w{1,4}|[àa] partir|commenc\w{1,4})\b",
    re.IGNORECASE,
)
#: Probability that an expression is a date of the candidates that are read, from which on a plan is over after them.
DATE_MIN = 0.9
#: The same for a task, which every new session shows as open: of 249 held-out dates 240 have it, 197 have .9; of 67
#: expressions that are not dates 21, and 7.
_TASK_DATE_MIN = 0.2


def begins(text: str) -> int | None:
    """Return where a text says that something begins: `from`, `starts`; None when it does not."""
    match = _BEGINS.search(text)
    return None if match is None else match.start()


def end_plan(item: dict[str, Any], sent_at: datetime, find_dates: FindDates | None = None) -> None:
    """Set the end of a plan or an appointment with a future date: after it, only the message says what was planned.

    A statement of any kind ends with the day until which it says that it holds: `my sister is staying until Sunday`.

    Parameters:
        find_dates: reads the dates of a text that is said then; None: `read_dates`, by the words alone.
    """
    predicate, words = item["predicate"], item["object"]
    if "valid_until" in item or _BEGINS.search(f"{predicate} {words}") is not None:
        return
    is_one_clause = len(clauses(words)) == 1
    is_plan = (
        item.get("statement_kind") in _PLANNED
        or _PLAN.match(predicate)
        or (predicate == SAYS and _SAID_PLAN.search(words) and is_one_clause)
        or (_DATED.search(predicate) and _ON_DAY.match(words))
    )
    if not is_plan and not (is_one_clause and may_have_last_day(words)):
        return
    dates = read_dates(words, sent_at) if find_dates is None else find_dates(words)
    if not is_plan:
        dates = [date for date in dates if is_last_day(words, date.position, date.words)]
    end = _latest_end(dates, _TASK_DATE_MIN if item.get("type") == "task" else DATE_MIN)
    if end is not None and end > sent_at:
        item["valid_until"] = end


def _latest_end(dates: Sequence[ReadDate], date_min: float) -> datetime | None:
    """Return the end of the last day that the dates of a text may mean; None when one of them may be no date."""
    if any(sum(candidate.probability for candidate in date.candidates) < date_min for date in dates):
        return None
    return max((candidate.end for date in dates for candidate in date.candidates), default=None)
