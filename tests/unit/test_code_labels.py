"""Codes of doors, alarms and phones in held-out messages with labels, and questions for them: `ops/train/codes`."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

#: Of 90 codes, which the words of `stated_secrets` alone find 11 of; 70 more messages have none.
_FOUND_MIN, _FALSE_MAX = 45, 5
#: Of the questions for a code that is found, and of others about the same things.
_ASKED_SHARE_MIN, _OTHERS_SHARE_MAX = 0.65, 0.08


@pytest.fixture
def held_out(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the module that counts."""
    folder = Path(__file__).parents[2] / "ops" / "train" / "codes"
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    # `ops/train/dates` has a module of that name, too.
    monkeypatch.delitem(sys.modules, "held_out", raising=False)
    return import_module("held_out")


def test_codes_are_found_by_the_words_around_them_and_few_other_numbers_are(held_out: Any) -> None:
    counts = held_out.found()
    assert counts["codes"] == 90
    assert counts["found"] >= _FOUND_MIN
    assert counts["others"] <= _FALSE_MAX


def test_a_code_is_shown_to_who_asks_for_it_and_to_few_other_questions_about_the_same_thing(held_out: Any) -> None:
    counts = held_out.shown()
    assert counts["ask shown"] >= _ASKED_SHARE_MIN * counts["ask"] > 60
    assert counts["other shown"] <= _OTHERS_SHARE_MAX * counts["other"]


def test_no_language_model_is_sent_most_passwords_without_that_name(held_out: Any) -> None:
    """Of 94 passwords; 90 more messages have names of networks, users, files and titles instead."""
    counts = held_out.found("words")
    assert counts["codes"] == 94
    assert counts["found"] >= 55
    assert counts["others"] <= 15


def test_codes_are_found_in_the_replies_that_repeat_them_and_no_amounts(held_out: Any) -> None:
    counts = held_out.found("replies")
    assert counts["codes"] == 52
    assert counts["found"] >= 30
    assert counts["others"] <= 3
