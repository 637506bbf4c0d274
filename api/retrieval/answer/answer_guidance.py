"""Answer guidance: evidence, related entities and grounding, from which a bot decides how to answer (`004`)."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.api.retrieval.contract.result import AnswerGuidance, Item
from recollect.api.retrieval.search.search_context import SearchContext

#: The action is `direct` from this grounding on, and up to this share of outdated items.
_DIRECT_MIN = 0.8
_CONTRADICTIONS_MAX = 0.2
#: An item is authoritative only from this share of the highest score on, and from this score on.
_RELIABLE_SCORE_SHARE = 0.5
_RELIABLE_SCORE_MIN = 0.25
#: The action is `direct` only when the authoritative items have this share of the query's words, or one of them has
#: this score, so that the premise of the query is in the memory.
_PREMISE_COVERAGE_MIN = 0.5
_CERTAIN_SCORE_MIN = 0.9
#: Relations in one result.
_RELATIONS_MAX = 20


def answer_guidance(context: SearchContext, items: Sequence[Item], grounding: float) -> AnswerGuidance:
    """Return the guidance for `items`, best first.

    Parameters:
        grounding: the probability that memory has an answer, 0 to 1.
    """
    if not items:
        return AnswerGuidance(grounding=grounding)
    score_min = max(_RELIABLE_SCORE_MIN, _RELIABLE_SCORE_SHARE * max(item.score for item in items))
    relations = _document_relations(context, items)
    outweighed = _outweighed(relations)
    authoritative = [
        item
        for item in items
        if item.score >= score_min and _is_reliable(context, item) and _document_of(item) not in outweighed
    ]
    identities = {id(item) for item in authoritative}
    contradiction_rate = sum(item.outdated or item.contradicted_by is not None for item in items) / len(items)
    is_direct = (
        grounding >= _DIRECT_MIN
        and contradiction_rate <= _CONTRADICTIONS_MAX
        and (
            any(item.score >= _CERTAIN_SCORE_MIN for item in authoritative)
            or (bool(authoritative) and _coverage(context, authoritative) >= _PREMISE_COVERAGE_MIN)
        )
    )
    entities = tuple(dict.fromkeys([*_entities(context, items), *(target for _, _, target, _ in relations)]))
    return AnswerGuidance(
        authoritative=tuple(item.id for item in authoritative),
        supporting=tuple(item.id for item in items if id(item) not in identities),
        entities=entities,
        governing=tuple(context.snapshot.entities.governing(entities)),
        relations=tuple(dict.fromkeys([*_relations(context), *(relation[:3] for relation in relations)])),
        grounding=grounding,
        action="direct" if is_direct else "scoped",
        contradiction_rate=contradiction_rate,
        citation_coverage=_coverage(context, items),
    )


def _document_of(item: Item) -> str | None:
    """Return the id of the document of a passage."""
    return item.id.rpartition("#")[0] if item.kind == "document" else None


def _document_relations(context: SearchContext, items: Sequence[Item]) -> list[tuple[str, str, str, float]]:
    """Return the relations of the documents among the items, as (document, type, target, weight)."""
    documents = [document for item in items if (document := _document_of(item)) is not None]
    return context.snapshot.entities.relations_of_documents(documents, limit=_RELATIONS_MAX)


def _outweighed(relations: Sequence[tuple[str, str, str, float]]) -> set[str]:
    """Return the documents that are related to nothing as strongly as another one is: one mentions, one governs it."""
    strongest: dict[str, float] = {}
    for _, _, target, weight in relations:
        strongest[target] = max(weight, strongest.get(target, 0.0))
    leading = {document for document, _, target, weight in relations if weight >= strongest[target]}
    return {document for document, _, _, _ in relations} - leading


def _is_reliable(context: SearchContext, item: Item) -> bool:
    """Return whether an item is authoritative, current, confirmed, uncontradicted, and from the person concerned.

    A question about a participant concerns that participant; messages of others only support the answer.
    """
    if not item.authoritative or item.outdated or item.unconfirmed_since_us is not None or item.contradicted_by:
        return False
    names = context.query.participant_names
    return item.kind != "episode" or not names or (item.speaker or "").casefold() in names


def _coverage(context: SearchContext, items: Sequence[Item]) -> float:
    """Return the share of the query's words in the items with sources, compared by stem."""
    stem = context.snapshot.keywords.stemmer()
    words = [stem(word) for word in context.query.words]
    missing = {term for stems in words for term in stems}
    for item in items:
        if not missing:
            break
        if item.source_events:
            missing.difference_update(stem(f"{item.speaker or ''} {item.text}"))
    return sum(bool(stems) and missing.isdisjoint(stems) for stems in words) / len(words) if words else 0.0


def _entities(context: SearchContext, items: Sequence[Item]) -> tuple[str, ...]:
    """Return the names of the entities of the query and of the items."""
    entities = [*context.query.participants, *context.query.entities]
    names = context.snapshot.entities.names(entities)
    return tuple(dict.fromkeys([*names, *(item.id for item in items if item.kind == "entity")]))


def _relations(context: SearchContext) -> tuple[tuple[str, str, str], ...]:
    """Return the relations of the entities of the query, as (source, type, target)."""
    if context.hidden.ids:
        # A relation does not say which message states it.
        return ()
    entities = [*context.query.entities, *context.query.participants]
    return tuple(context.snapshot.entities.relations(entities, limit=_RELATIONS_MAX))
