"""How well the rules read: sentences written by hand, half of them before the rules, half after and never looked at."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from recollect.events.catalogue.knowledge_events import SAYS
from recollect.jobs.extraction.extraction_job import FACT_CONFIDENCE_MIN
from recollect.jobs.extraction.rule_extractor import ExtractedItem, IncomingMessage, extract_by_rules

_SENTENCES = Path(__file__).parents[1] / "data" / "extraction.jsonl"
_SAID_AT = datetime(2026, 11, 20, 12, tzinfo=UTC)
#: What the rules promise, for every kind in the set.
_PRECISION_MIN = 0.9
_RECALL_MIN = 0.85


def rows(part: str) -> list[dict[str, Any]]:
    lines = _SENTENCES.read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row["part"] == part]


def shown(found: ExtractedItem) -> list[str]:
    """Return what was found, as the set writes it."""
    item = found.item
    match found.kind:
        case "facts":
            sure = item["confidence"] >= FACT_CONFIDENCE_MIN
            ended = " (ended)" if item.get("valid_until") == _SAID_AT else ""
            return [f"{'fact' if sure else 'rejected'} {item['predicate']} = {item['object']}{ended}"]
        case "preferences":
            return ["standing"] if item.get("standing") else [f"pref {item['value'].split()[-1]} = {item['key']}"]
        case "corrections":
            return [f"correction {item['predicate']} = {item['object']}"]
        case "entities":
            return [f"alias {name}" for name in item.get("aliases", [])] or [f"entity {item['name']}"]
        case "relationships":
            return [f"relation {item['type']} {item['target']}"]
        case "dates":
            return [f"date {item['text']}"]
        case _:
            return ["question"]


def read_all(said: list[str]) -> list[str]:
    """Return what the rules read in the last of these messages, a conversation of one person."""
    before: list[Any] = []
    found: list[ExtractedItem] = []
    for number, text in enumerate(said):
        found = list(
            extract_by_rules(IncomingMessage(f"m{number}", "s1", "Ann", text, _SAID_AT, is_assistant=False), before)
        )
    # Endings end only what the memory holds; `test_endings.py` shows which. What no rule reads is in the words of its
    # speaker; `test_reader_labels.py` shows how much of it is worth keeping.
    by_rules = (item for item in found if item.kind not in ("endings", "doubts") and item.item.get("predicate") != SAYS)
    # A date is found by each range that it may mean.
    return [*dict.fromkeys(one for item in by_rules for one in shown(item))]


@pytest.mark.parametrize("part", ["development", "held out"])
def test_what_is_read_is_right_and_little_is_missed(part: str) -> None:
    right: Counter[str] = Counter()
    read_kinds: Counter[str] = Counter()
    wanted_kinds: Counter[str] = Counter()
    for row in rows(part):
        found, wanted = read_all(row["said"]), list(row["wanted"])
        read_kinds.update(one.split()[0] for one in found)
        wanted_kinds.update(one.split()[0] for one in wanted)
        for one in found:
            if one in wanted:
                wanted.remove(one)
                right[one.split()[0]] += 1
            else:
                print(f"wrong:  {row['said'][-1]} -> {one}")
        for one in wanted:
            print(f"missed: {row['said'][-1]} -> {one}")
    print(f"\n{part}, {len(rows(part))} sentences")
    for kind in sorted(wanted_kinds | read_kinds):
        precision = right[kind] / max(1, read_kinds[kind])
        recall = right[kind] / max(1, wanted_kinds[kind])
        print(f"{kind:<12} {wanted_kinds[kind]:>3} wanted  precision {precision:.2f}  recall {recall:.2f}")
    assert sum(right.values()) >= _PRECISION_MIN * sum(read_kinds.values())
    assert sum(right.values()) >= _RECALL_MIN * sum(wanted_kinds.values())
    assert all(right[kind] >= _PRECISION_MIN * count for kind, count in read_kinds.items())


def test_the_set_is_large_enough() -> None:
    assert len(rows("development")) + len(rows("held out")) >= 150
