"""Plans: sets the end of plans and appointments with a future date, after which only their message says what was planned."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from recollect.projections.text.date_reading import read_dates

#: Predicates of plans, and of appointments whose object is a day; birthdays come again.
_PLAN = re.compile(
    r"(?:is|are|am|was) \w{2,20}ing\b|(?:plans|needs|wants|hopes|intends|wishes|has|is going|is about|decided) to\b"
)
_DATED = re.compile(r"(?<!birthday)(?<!anniversary)(?<!name day) is$")
_ON_DAY = re.compile(
    r"(?:on|at|from|for|tomorrow|tonight|next)\b(?!.{0,40}\b(?:every|each|other)\b)(?!.{0,20}days\b)", re.IGNORECASE
)
#: Kinds of statements that are over after the day that they name.
_PLANNED = ("plan", "task", "event")


def end_plan(item: dict[str, Any], sent_at: datetime) -> None:
    """Set the end of a plan or an appointment with one future date: after it, only the message says what was planned."""
    predicate: str = item["predicate"]
    if "valid_until" in item or not (
        item.get("statement_kind") in _PLANNED
        or _PLAN.match(predicate)
        or (_DATED.search(predicate) and _ON_DAY.match(item["object"]))
    ):
        return
    dates = read_dates(item["object"], sent_at)
    sure = dates[0].sure if len(dates) == 1 else None
    if sure is not None and sure.start > sent_at:
        item["valid_until"] = sure.end
