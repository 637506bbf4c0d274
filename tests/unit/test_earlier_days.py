"""Earlier days: a day without a month follows the days that were named before it."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from recollect.projections.text.date_patterns import DateReading, possible_dates
from recollect.projections.text.earlier_days import days_named, earlier_cues, follow

_SAID = datetime(2026, 3, 14, 10, tzinfo=UTC)


def _candidates(text: str, earlier: tuple[date, ...]) -> set[date]:
    [(reading, _)] = follow(possible_dates(text, _SAID), earlier)
    return {start for start, _ in reading.candidates}


def test_a_month_names_its_day_in_the_years_around_and_a_year_only_its_own() -> None:
    assert days_named("flying to Phoenix on 9 October", _SAID) == (date(2025, 10, 9), date(2026, 10, 9))
    assert days_named("flying to Phoenix on 9 October 2026", _SAID) == (date(2026, 10, 9),)
    assert days_named("we met in May 2019", _SAID) == ()
    assert days_named("see you tomorrow", _SAID) == ()


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("the hike is on the 11th", date(2026, 10, 11)),
        ("so hike on sunday?", date(2026, 10, 11)),
        ("sunday the 11th then", date(2026, 10, 11)),
    ],
)
def test_a_day_without_a_month_may_be_one_near_the_days_that_were_named(text: str, day: date) -> None:
    earlier = days_named("flying to Phoenix on 9 October", _SAID)
    assert day in _candidates(text, earlier)
    assert day not in _candidates(text, ())


def test_what_says_its_month_follows_nothing() -> None:
    earlier = days_named("flying to Phoenix on 9 October", _SAID)
    for text in ("the hike is on 11 May", "see you next sunday", "tomorrow"):
        assert _candidates(text, earlier) == _candidates(text, ())


def test_days_of_the_same_message_are_followed_too() -> None:
    readings: list[DateReading] = [
        reading for reading, _ in follow(possible_dates("out on 8 June, then Lecce on the 10th", _SAID), ())
    ]
    assert date(2026, 6, 10) in {start for start, _ in readings[1].candidates}


def test_the_cues_say_whether_the_nearest_day_follows() -> None:
    earlier = days_named("flying to Phoenix on 9 October", _SAID)
    [(far, days)] = follow(possible_dates("the hike is on the 11th", _SAID), earlier)
    assert "earlier_far" in {*earlier_cues(far, days)}
    [(near, days)] = follow(possible_dates("the hike is on the 11th", _SAID), days_named("in March", _SAID))
    assert "earlier_near" in {*earlier_cues(near, days)}
    assert [*earlier_cues(near, ())] == []
