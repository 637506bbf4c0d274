"""Item merge: leaves out the items of a language model that the rules have read in the same messages.

The rules' items are stored already, and nothing of a model's answer removes one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from recollect.jobs.extraction.rule_extractor import ExtractedItem, Item, sources_of
from recollect.jobs.llm.grounding import without_dates
from recollect.projections.projector.predicates import canonical, has_one_value
from recollect.projections.text.date_reading import read_dates
from recollect.projections.text.stems import content_stems

#: Share of the words of two items together that both have, from which they say the same.
_SAME_MIN = 0.6
#: The words of a date are the same at any time.
_ANY_TIME = datetime(2020, 1, 1, tzinfo=UTC)


def added_items(stored: Iterable[Item], by_llm: Sequence[ExtractedItem]) -> list[ExtractedItem]:
    """Return the items of the model that differ from the stored items of their messages, each once."""
    words: dict[str, list[frozenset[str]]] = {}
    for item in stored:
        for source in sources_of(item):
            words.setdefault(source, []).append(_words(item))
    added: list[ExtractedItem] = []
    for extracted in by_llm:
        own, sources = _words(extracted.item), sources_of(extracted.item)
        if not any(_same(own, other) for source in sources for other in words.get(source, ())):
            added.append(extracted)
            for source in sources:
                words.setdefault(source, []).append(own)
    return added


def shared_words(first: Item, second: Item) -> float:
    """Return the share of the words of two items together that both have."""
    return _share(_words(first), _words(second))


def _words(item: Mapping[str, Any]) -> frozenset[str]:
    """Return the stems of what an item says; a predicate with one value has its first spelling, and no dates."""
    if "object" not in item:
        return content_stems(" ".join(str(item.get(field) or "") for field in ("subject", "value", "key")))
    predicate, object = canonical(item["predicate"]), str(item["object"])
    value = content_stems(object)
    if has_one_value(predicate):
        # `moved to Lisbon last week (2025-12-26)` is `lives in Lisbon`.
        value = content_stems(without_dates(object, read_dates(object, _ANY_TIME))) or value
    return content_stems(f"{item['subject']} {predicate}") | value


def _same(first: frozenset[str], second: frozenset[str]) -> bool:
    return _share(first, second) >= _SAME_MIN


def _share(first: frozenset[str], second: frozenset[str]) -> float:
    return len(first & second) / max(1, len(first | second))
