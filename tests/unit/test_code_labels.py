"""Codes of doors, alarms and phones in held-out messages with labels, and questions for them: `ops/train/codes`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from recollect.api.retrieval.answer.withheld_secrets import SecretFilter
from recollect.events.intake.screening import SecretPolicies
from recollect.events.intake.secrets import probable_secrets

_LABELS = Path(__file__).parents[2] / "ops" / "train" / "codes" / "labels"
#: Of 90 codes, which the words of `stated_secrets` alone find 11 of; 68 more messages have none.
_FOUND_MIN, _FALSE_MAX = 45, 5
#: Of the questions for a code that is found, and of others about the same things.
_ASKED_SHARE_MIN, _OTHERS_SHARE_MAX = 0.65, 0.08


def _rows(name: str) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (_LABELS / name).read_bytes().splitlines()]


def _marked(text: str) -> list[str]:
    return [text[secret.start : secret.end] for secret in probable_secrets(text)]


def test_codes_are_found_by_the_words_around_them_and_few_other_numbers_are() -> None:
    found = wrong = 0
    for row in _rows("own-heldout.jsonl"):
        marked = _marked(row["text"])
        found += sum(any(code in it or it in code for it in marked) for code in row["codes"])
        wrong += sum(not any(code in it or it in code for code in row["codes"]) for it in marked)
    assert found >= _FOUND_MIN
    assert wrong <= _FALSE_MAX


def test_a_code_is_shown_to_who_asks_for_it_and_to_few_other_questions_about_the_same_thing() -> None:
    messages = _rows("own-heldout.jsonl")
    shown = {"ask": list[bool](), "other": list[bool]()}
    for row in _rows("questions-heldout.jsonl"):
        number: int = row["n"]
        text: str = messages[number]["text"]
        code: str = row["code"]
        if any(code in it for it in _marked(text)):
            for kind, results in shown.items():
                results += [code in SecretFilter(SecretPolicies(), query).text(text) for query in row[kind]]
    assert sum(shown["ask"]) >= _ASKED_SHARE_MIN * len(shown["ask"]) > 60
    assert sum(shown["other"]) <= _OTHERS_SHARE_MAX * len(shown["other"])
