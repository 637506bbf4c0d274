"""Answer guidance: evidence, related entities and grounding, from which a bot decides how to answer (`004`)."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.api.retrieval.contract.result import AnswerGuidance, Item
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.projections.text.words import content_words

#: The action is `direct` from this grounding on, and up to this share of outdated items.
_DIRECT_MIN = 0.8
_CONTRADICTIONS_MAX = 0.2
#: An item is authoritative only from this share of the highest score on.
_RELIABLE_SCORE_SHARE = 0.5
#: Relations in one result.
_RELATIONS_MAX = 20


def answer_guidance(context: SearchContext, items: Sequence[Item], grounding: float) -> AnswerGuidance:
    """Return the guidance for `items`, best first.

    Parameters:
        grounding: the probability that memory has an answer, 0 to 1.
    """
    if not items:
        return AnswerGuidance(grounding=grounding)
    score_min = _RELIABLE_SCORE_SHARE * max(item.score for item in items)
    authoritative = [item for item in items if _is_reliable(item) and item.score >= score_min]
    contradiction_rate = sum(item.outdated for item in items) / len(items)
    is_direct = grounding >= _DIRECT_MIN and contradiction_rate <= _CONTRADICTIONS_MAX and authoritative
    return AnswerGuidance(
        authoritative=tuple(item.id for item in authoritative),
        supporting=tuple(item.id for item in items if item not in authoritative),
        entities=_entities(context, items),
        relations=_relations(context),
        grounding=grounding,
        action="direct" if is_direct else "scoped",
        contradiction_rate=contradiction_rate,
        citation_coverage=_coverage(context, items),
    )


def _is_reliable(item: Item) -> bool:
    """Return whether an item is authoritative, current and confirmed."""
    return item.authoritative and not item.outdated and item.unconfirmed_since_us is None


def _coverage(context: SearchContext, items: Sequence[Item]) -> float:
    """Return the share of the query's words in the items with sources."""
    cited = {word for item in items if item.source_events for word in content_words(item.text)}
    words = context.query.words
    return sum(word in cited for word in words) / len(words) if words else 0.0


def _entities(context: SearchContext, items: Sequence[Item]) -> tuple[str, ...]:
    """Return the names of the entities of the query and of the items."""
    entities = [*context.query.participants, *context.query.entities]
    names = context.snapshot.entities.names(entities)
    return tuple(dict.fromkeys([*names, *(item.id for item in items if item.kind == "entity")]))


def _relations(context: SearchContext) -> tuple[tuple[str, str, str], ...]:
    """Return the relations of the entities of the query, as (source, type, target)."""
    entities = [*context.query.entities, *context.query.participants]
    return tuple(context.snapshot.entities.relations(entities, limit=_RELATIONS_MAX))
