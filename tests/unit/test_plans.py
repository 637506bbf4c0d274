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
