"""Plans are over after the last day that their dates may mean; what begins on a day is not over after it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from recollect.jobs.extraction.plans import end_plan

_SAID = datetime.fromisoformat("2026-07-07T10:00:00+00:00")


def _end(text: str, kind: str = "plan") -> str | None:
    item: dict[str, Any] = {"predicate": "says", "object": text, "statement_kind": kind}
    end_plan(item, _SAID)
    return f"{item['valid_until']:%Y-%m-%d}" if "valid_until" in item else None


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("I fly to Oslo on Friday", "2026-07-11"),
        ("my uncle comes on Friday and stays until the 2nd of August", "2026-08-03"),
        ("the fitting is on the 21st", "2026-07-22"),
        ("we get married on 3 October", "2026-10-04"),
        ("I saw the film yesterday", None),
        ("meeting at 10", None),
        ("her birthday is April 9", None),
        ("I start at the bank on the 1st of August", None),
        ("ab 1. September fängt Marie bei mir an", None),
    ],
)
def test_the_end_of_a_plan(text: str, end: str | None) -> None:
    assert _end(text) == end


def test_a_statement_that_is_no_plan_has_no_end() -> None:
    assert _end("I fly to Oslo on Friday", "habit") is None


def test_a_time_from_a_day_to_another_ends() -> None:
    assert _end("his mum is coming to stay from Thursday to Sunday") == "2026-07-17"


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("I'm moving in with Jonas next month", "2026-09-01"),
        ("im covering for Saskia until Friday", "2026-07-11"),
        ("I'm flying to Oslo on Friday, but I have a cat", None),
        ("I'm starting at the bank on the 1st of August", None),
        ("I'm not going anywhere next month", None),
    ],
)
def test_what_a_speaker_is_doing_on_a_day_is_over_after_it_whatever_it_is_about(text: str, end: str | None) -> None:
    assert _end(text, "home") == end


def test_an_open_task_ends_after_a_day_that_may_be_meant() -> None:
    item: dict[str, Any] = {"predicate": "needs to", "object": "call dad on Sunday, its his 65th birthday"}
    end_plan(item | {"type": "fact"}, _SAID)
    assert "valid_until" not in item
    end_plan(item := item | {"type": "task"}, _SAID)
    assert f"{item['valid_until']:%Y-%m-%d}" == "2026-07-13"


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("My husband is in Denver until July 20", "2026-07-21"),
        ("I'm on antibiotics till Friday", "2026-07-11"),
        ("My sister sleeps on our sofa until Friday", "2026-07-11"),
        ("My sister sleeps on our sofa until Friday and I live in Albany", None),
        ("I worked at the bank until last May", None),
        ("I go to Denver on Fridays", None),
    ],
)
def test_what_is_said_to_hold_until_a_day_ends_with_it_whatever_it_is_about(text: str, end: str | None) -> None:
    assert _end(text, "health") == end
