"""Item merge: adds the items of a language model to those of the rules.

The rules' items are always kept. Where both state the same, the rules' item is kept, because it has the words of the
message; only a correction that passed its checks replaces a fact of the rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from recollect.jobs.extraction.rule_extractor import ExtractedItem, Item
from recollect.projections.projector.predicates import canonical, has_one_value, normalised
from recollect.projections.text.stems import content_stems

#: Kinds whose items state a value of a subject and a predicate.
_STATEMENTS = ("facts", "rejected", "corrections")


def sources_of(item: Item) -> list[str]:
    """Return the ids of the messages that an item comes from."""
    return item.get("source_events") or [item["source_event"]]


def merged_items(
    by_rules: Sequence[ExtractedItem], by_llm: Sequence[ExtractedItem], confidence_min: float
) -> list[ExtractedItem]:
    """Return the items of the rules, and the items of the model that say something else.

    Parameters:
        confidence_min: facts of the rules below it are not stored as facts, so that they replace none of the model's.
    """
    weak = [extracted for extracted in by_rules if _is_weak(extracted, confidence_min)]
    sure = [extracted for extracted in by_rules if not _is_weak(extracted, confidence_min)]
    corrections = [extracted for extracted in by_llm if extracted.kind == "corrections"]
    kept = [
        extracted
        for extracted in sure
        if extracted.kind != "facts" or not any(_same_topic(extracted.item, other.item) for other in corrections)
    ]
    added = [*_added(kept, by_llm)]
    # A fact of which the rules are not sure makes room for the same one of the model.
    doubted = (it for it in weak if not any(_says_the_same(other, it) for other in added if other.kind == "facts"))
    return [*kept, *doubted, *added]


def _is_weak(extracted: ExtractedItem, confidence_min: float) -> bool:
    return extracted.kind == "facts" and extracted.item["confidence"] < confidence_min


def _added(by_rules: Sequence[ExtractedItem], by_llm: Sequence[ExtractedItem]) -> Iterator[ExtractedItem]:
    """Yield the items of the model that none of the rules says."""
    types = {
        extracted.item["name"].casefold(): extracted.item for extracted in by_rules if extracted.kind == "entities"
    }
    for extracted in by_llm:
        if extracted.kind != "entities":
            if not any(_says_the_same(other, extracted) for other in by_rules):
                yield extracted
            continue
        typed = types.get(extracted.item["name"].casefold())
        if typed is None:
            yield extracted
        elif extracted.item.keys() & {"aliases", "description"}:
            yield ExtractedItem("entities", extracted.item | {name: typed[name] for name in ("type", "confidence")})


def _says_the_same(first: ExtractedItem, second: ExtractedItem) -> bool:
    """Return whether two items of one message say the same, or one says a part of the other."""
    if set(sources_of(first.item)).isdisjoint(sources_of(second.item)):
        return False
    if first.kind in _STATEMENTS and second.kind in _STATEMENTS:
        is_replaced = second.kind != "rejected" and has_one_value(canonical(first.item["predicate"]))
        return _same_statement(first.item, second.item) or (is_replaced and _same_topic(first.item, second.item))
    if first.kind != second.kind:
        return False
    return _SAME[first.kind](first.item, second.item)


def _same_topic(first: Item, second: Item) -> bool:
    """Return whether two statements of one message have one subject and predicate."""
    return (
        not set(sources_of(first)).isdisjoint(sources_of(second))
        and normalised(first["subject"]) == normalised(second["subject"])
        and canonical(first["predicate"]) == canonical(second["predicate"])
    )


def _same_statement(first: Item, second: Item) -> bool:
    if normalised(first["subject"]) != normalised(second["subject"]):
        return False
    if canonical(first["predicate"]) == canonical(second["predicate"]):
        return _overlap(first["object"], second["object"])
    return _overlap(*(f"{item['predicate']} {item['object']}" for item in (first, second)))


def _same_ending(first: Item, second: Item) -> bool:
    if normalised(first["subject"]) != normalised(second["subject"]):
        return False
    return _overlap(*(item.get("object") or item.get("about") or "" for item in (first, second)))


def _same_preference(first: Item, second: Item) -> bool:
    # Only an instruction has `standing`; its key is its topic.
    if "standing" in first or "standing" in second:
        return "standing" in first and "standing" in second and _overlap(first["value"], second["value"])
    # The value names another person than the speaker before its verb: `Tom likes`.
    people = [item["value"].split()[:-1] for item in (first, second)]
    return people[0] == people[1] and _overlap(first["key"], second["key"])


def _same_relationship(first: Item, second: Item) -> bool:
    ends = [frozenset(normalised(item[end]) for end in ("source", "target")) for item in (first, second)]
    return ends[0] == ends[1] and _overlap(first["type"], second["type"])


def _same_procedure(first: Item, second: Item) -> bool:
    """Return True: a message lists the steps of one task, of which the rules have its words."""
    return bool(first["steps"] and second["steps"])


def _overlap(first: str, second: str) -> bool:
    """Return whether two phrases are equal, or the words of one are among those of the other."""
    shorter, longer = sorted((normalised(first), normalised(second)), key=len)
    # Chinese and Japanese have no spaces between words.
    if shorter == longer or (shorter in longer and not shorter.isascii()):
        return True
    stems = content_stems(first), content_stems(second)
    return all(stems) and (stems[0] <= stems[1] or stems[1] <= stems[0])


_SAME: dict[str, Any] = {
    "endings": _same_ending,
    "preferences": _same_preference,
    "relationships": _same_relationship,
    "procedures": _same_procedure,
}
