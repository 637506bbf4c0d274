"""Fact answers: finds the messages that state the facts which a question asks for."""

from __future__ import annotations

import numpy as np

from recollect.api.retrieval.search.search_context import SearchContext
from recollect.api.retrieval.understanding.asked_predicates import asks_about_other, asks_about_speaker
from recollect.projections.search_index.episode_arrays import Ints


def versions_stating_answers(context: SearchContext) -> Ints:
    """Return the versions of the live episodes that state a valid fact which the question asks for, ascending.

    A question about the past asks for what no longer holds, so it has none.
    """
    query, knowledge = context.query, context.index.knowledge
    if query.intent.past:
        return np.empty(0, np.int64)
    named = frozenset((*query.participants, *query.entities))
    speakers = frozenset[int | str]() if query.participants else knowledge.graph.speakers
    is_asked: dict[tuple[str, bool], bool] = {}
    source_ids: set[str] = set()
    for item in knowledge.items:
        if (
            item.kind != "fact"
            or not item.entities
            or item.status != "active"
            or not item.is_valid_at(context.asked_at_us)
        ):
            continue
        is_named = item.entities[0] in named
        if not is_named and item.entities[0] not in speakers:
            continue
        key = item.predicate, is_named
        if key not in is_asked:
            asks = asks_about_other if is_named else asks_about_speaker
            is_asked[key] = asks(query.question, item.predicate)
        if is_asked[key]:
            source_ids.update(item.source_events)
    return np.array(sorted(context.snapshot.episodes.versions_of(source_ids)), np.int64)
