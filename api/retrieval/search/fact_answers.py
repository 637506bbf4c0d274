"""Fact answers: finds the messages that state the facts which a question asks for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from recollect.api.retrieval.search.search_context import SearchContext
from recollect.api.retrieval.understanding.asked_predicates import (
    CHARS_MAX,
    WORDED_PREDICATES,
    asks_about_other,
    asks_about_speaker,
)
from recollect.projections.search_index.episode_arrays import Ints
from recollect.projections.search_index.knowledge_graph import Node
from recollect.projections.search_index.knowledge_index import KnowledgeIndex
from recollect.projections.text.stems import content_stems


def versions_stating_answers(context: SearchContext) -> Ints:
    """Return the versions of the live episodes that state a valid fact which the question asks for, ascending.

    A question about the past asks for what no longer holds, so it has none.
    """
    query, knowledge = context.query, context.index.knowledge
    if query.intent.past:
        return np.empty(0, np.int64)
    named = frozenset((*query.participants, *query.entities))
    unnamed = frozenset[Node]() if query.participants else knowledge.graph.speakers - named
    speakers = frozenset[Node](query.askers) or unnamed
    source_ids: set[str] = set()
    for predicate in _candidates(query.question, knowledge):
        rows_by_subject = knowledge.active_facts[predicate]
        for subjects, asks in ((named, asks_about_other), (speakers, asks_about_speaker)):
            stating = [row for subject in subjects & rows_by_subject.keys() for row in rows_by_subject[subject]]
            if stating and asks(query.question, predicate):
                for item in (knowledge.items[row] for row in stating):
                    source_ids.update(item.source_events if item.is_valid_at(context.asked_at_us) else ())
    return np.array(sorted(context.snapshot.episodes.versions_of(source_ids)), np.int64)


def _candidates(question: str, knowledge: KnowledgeIndex) -> Iterator[str]:
    """Yield the predicates of facts that the words of a question may ask for."""
    yield from WORDED_PREDICATES & knowledge.active_facts.keys()
    if len(question) <= CHARS_MAX:
        for stem in content_stems(question):
            yield from knowledge.attributes.get(stem, ())
