"""Future statements: statements that are valid from a future day on, such as `rent is 1520 from january`.

Until that day nothing has changed: the sentence stays in its words, and what it will change is shown with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from recollect.events.catalogue.knowledge_events import SAYS
from recollect.jobs.extraction.changes import DOUBT_MAX, KindAndItem
from recollect.jobs.extraction.plans import DATE_MIN, begins
from recollect.projections.text.date_reading import read_dates


def until_its_day(
    items: Iterable[KindAndItem], sentence: str, speaker: str, sent_at: datetime
) -> Iterator[KindAndItem]:
    """Yield what a sentence states and changes; of a future day, its words instead of facts, and doubts, no endings."""
    read = [*items]
    if not (any(_is_of_today(kind, item) for kind, item in read) and _begins_later(sentence, sent_at)):
        yield from read
        return
    is_said = any(kind == "facts" and item["predicate"] == SAYS for kind, item in read)
    for kind, item in read:
        if not _is_of_today(kind, item):
            yield kind, item
        elif kind == "endings":
            yield "doubts", item | {"about": sentence, "probability": DOUBT_MAX}
        elif not is_said:
            is_said = True
            yield kind, item | {"subject": speaker, "predicate": SAYS, "object": sentence}


def _is_of_today(kind: str, item: dict[str, Any]) -> bool:
    """Return whether an item says that something holds, or ends, now: a fact that is not in words, a statement's end."""
    return (kind == "facts" and item["predicate"] != SAYS) or (kind == "endings" and "predicates" in item)


def _begins_later(sentence: str, sent_at: datetime) -> bool:
    """Return whether a sentence says that what it states begins on a future day.

    Of 18,196 labelled sentences (`ops/train/changes`), as if said on 10 April 2026, 17 that change a statement do so by
    this measure, each of them on a future day.
    """
    first = begins(sentence)
    return first is not None and any(
        date.position >= first
        and sum(candidate.probability for candidate in date.candidates) >= DATE_MIN
        and all(candidate.start > sent_at for candidate in date.candidates)
        for date in read_dates(sentence, sent_at)
    )
