"""Preferences: of one category and name, the newest words of a person hold, whatever the order of arrival."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from support.events import Event
from support.read_models import rows

from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.validation import drafts
from recollect.projections.read_models.read_models import ReadModels

Tell = Callable[..., None]


@pytest.fixture
def tell(log: SqliteLog, models: ReadModels) -> Tell:
    """Append events with the ids e1, e2 … unless they have one, and fold them."""
    ids = (f"e{number}" for number in itertools.count(1))

    def tell(*events: Event) -> None:
        log.append("a", drafts([{"id": next(ids)} | event for event in events]))
        models.catch_up("a")

    return tell


def at(day: int) -> str:
    return f"2026-01-{day:02}T10:00:00Z"


def preference(value: str, *, day: int = 1, **payload: Any) -> Event:
    stated = {"category": "communication", "key": "tone", "value": value, **payload}
    return {"type": "preference.stated", "payload": stated, "occurred_at": at(day)}


@pytest.mark.parametrize("order", [*itertools.permutations(range(4))][::5], ids=str)
def test_a_preference_follows_the_times_and_not_the_order_of_arrival(
    order: tuple[int, ...], tell: Tell, models: ReadModels
) -> None:
    told = [
        preference("short"),
        preference("long", day=3),
        preference("long", day=4, source_type="inferred"),
        preference("short", day=5),
    ]
    tell(*(told[number] for number in order))
    day = "strftime('%d', {} / 1000000, 'unixepoch')"
    columns = f"value, status, {day.format('created_at_us')}, {day.format('valid_until_us')}"
    held = "status <> 'superseded' OR valid_until_us IS NOT NULL"
    assert rows(models, f"SELECT {columns} FROM preferences WHERE {held} ORDER BY created_at_us") == [
        ("short", "superseded", "01", "03"),
        ("long", "superseded", "03", "05"),
        ("short", "active", "05", None),
    ]
    assert models.check("a").is_equal


def test_a_forgotten_preference_is_not_extracted_again(tell: Tell, models: ReadModels) -> None:
    tell(preference("short"), {"type": "memory.forgotten", "payload": {"memory_id": "e1"}, "occurred_at": at(2)})
    again = preference("short")["payload"] | {"stated_at": at(1)}
    payload = {"source_events": ["m1"], "extractor": "rules", "preferences": [again]}
    tell({"type": "facts.extracted", "payload": payload, "occurred_at": at(3)})
    assert rows(models, "SELECT status FROM preferences WHERE status IN ('active', 'stale')") == []
