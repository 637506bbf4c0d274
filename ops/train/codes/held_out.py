"""Held-out codes: what the product finds in held-out messages, and what it shows to questions for them.

    .venv/bin/python ops/train/codes/held_out.py

The figures of the model card. Numbers of the conversations of `../../../../shared/data` are counted where they are.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recollect.api.retrieval.answer.withheld_secrets import SecretFilter
from recollect.events.intake.code_numbers import code_numbers, possible_codes
from recollect.events.intake.screening import SecretPolicies
from recollect.events.intake.secrets import unsent_secrets

_LABELS = Path(__file__).parent / "labels"
_DATA = Path(os.environ.get("RECOLLECT_TEST_DATA") or Path(__file__).parents[4] / "shared" / "data")


def found(name: str = "own") -> Counter[str]:
    """Return how many `codes` the held-out messages have and are `found`, and how many `others` are taken for one."""
    counts: Counter[str] = Counter()
    for row in _rows(f"{name}-heldout.jsonl"):
        marked, codes = _marked(row["text"]), row["codes"]
        counts["codes"] += len(codes)
        counts["found"] += sum(any(code in it or it in code for it in marked) for code in codes)
        counts["others"] += sum(not any(code in it or it in code for code in codes) for it in marked)
    return counts


def shown() -> Counter[str]:
    """Return how many questions for a found code, `ask`, and about its thing, `other`, there are, and show it."""
    messages = [row["text"] for row in _rows("own-heldout.jsonl")]
    counts: Counter[str] = Counter()
    for row in _rows("questions-heldout.jsonl"):
        text, code = messages[row["n"]], row["code"]
        if any(code in it for it in _marked(text)):
            for kind in ("ask", "other"):
                counts[kind] += len(row[kind])
                counts[f"{kind} shown"] += sum(
                    code in SecretFilter(SecretPolicies(), query).text(text) for query in row[kind]
                )
    return counts


def in_given_conversations() -> Counter[str]:
    """Return how many numbers of the given conversations may be a code, and are taken for one."""
    counts: Counter[str] = Counter()
    for path in sorted(_DATA.glob("*.json")):
        for event in json.loads(path.read_text(encoding="utf-8"))["events"]:
            text = event["payload"].get("text", "")
            counts["numbers"] += sum(1 for _ in possible_codes(text))
            counts["taken"] += sum(1 for _ in code_numbers(text))
    return counts


def _rows(name: str) -> Iterator[dict[str, Any]]:
    yield from map(json.loads, (_LABELS / name).read_text(encoding="utf-8").splitlines())


def _marked(text: str) -> list[str]:
    return [text[secret.start : secret.end] for secret in unsent_secrets(text)]


if __name__ == "__main__":
    for title, of in (
        ("numbers", found()),
        ("replies and amounts", found("replies")),
        ("questions for numbers", shown()),
        ("words", found("words")),
        ("given conversations", in_given_conversations()),
    ):
        print(f"{title}: {dict(of)}")
