"""Left-out items: takes from a result what the request excludes, and what a review has not approved yet."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from recollect.api.retrieval.contract.result import Item
from recollect.api.retrieval.ranking.search_result import SearchResult
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.api.retrieval.whose_words import speakers_of
from recollect.events.intake.instructions import without_instructions


def without_orders(item: Item, waiting: frozenset[str]) -> Item:
    """Return an item; of a document that waits for a review, without the sentences that look like instructions."""
    if item.kind != "document" or item.id.rpartition("#")[0] not in waiting:
        return item
    return replace(item, text=without_instructions(item.text))


def without_sources(items: Sequence[Item], event_ids: Sequence[str]) -> list[Item]:
    """Return the items without those that only the events `event_ids` state, and without what these events ended."""
    excluded = frozenset(event_ids)
    return [
        replace(item, later=None) if item.later is not None and item.later.source_event in excluded else item
        for item in items
        if not item.source_events or not excluded.issuperset(item.source_events)
    ]


def without_rules_of_others(context: SearchContext, items: Sequence[Item]) -> list[Item]:
    """Return the items without the standing instructions of users other than the asker."""
    standing = context.index.knowledge.standing
    if context.request.shared_rules or not standing:
        return [*items]
    speakers = speakers_of(context)
    others = {item.id for item in standing if not speakers.may_rule(item)}
    return [item for item in items if item.id not in others]


def without_standing(context: SearchContext, result: SearchResult) -> SearchResult:
    """Return the result without standing instructions."""
    standing = {item.id for item in context.index.knowledge.standing}
    return replace(result, items=[item for item in result.items if item.id not in standing])
