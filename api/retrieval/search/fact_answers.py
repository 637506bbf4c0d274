"""Fact answers: finds the messages that state the facts which a question asks for.

Only what most people ask of each other has words here, such as `lives in` for "where does she live?". A fact with
another predicate is asked for when the question has all words of the predicate: `shoe size is`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from recollect.api.retrieval.search.search_context import SearchContext
from recollect.api.retrieval.understanding.first_person import is_first_person
from recollect.events.late_pattern import late_pattern
from recollect.projections.projector.predicates import attribute_stems, canonical
from recollect.projections.search_index.episode_arrays import Ints
from recollect.projections.search_index.knowledge_graph import Node
from recollect.projections.search_index.knowledge_index import KnowledgeIndex
from recollect.projections.text.stems import content_stems


class _Wording(NamedTuple):
    """How people ask for a predicate."""

    #: What one has: `my job`, `Ann's job`.
    nouns: str
    #: What one does: `where do I live`.
    clause: str


_WORDINGS = {
    "lives in": _Wording(
        "home ?town|address|home|flat|house",
        r"\bwhere\b.{0,60}\b(?:lives?|living|based)\b|\b(?:city|town|country)\b.{0,60}\blive",
    ),
    "comes from": _Wording("origin|home country", r"\bwhere\b.{0,60}\bfrom\b|\bwhere\b.{0,60}\b(?:grew|grow) up"),
    "born in": _Wording("birth ?place|place of birth", r"\bwhere\b.{0,60}\bborn\b"),
    "born on": _Wording("birthday|bday|date of birth|birth date", r"\bwhen\b.{0,60}\bborn\b"),
    "works as": _Wording(
        "job|profession|occupation|work",
        r"\bwhat\b.{0,60}\bdo(?:es|ing)? (?:for (?:work|a living|money)|professionally)",
    ),
    "works at": _Wording(
        "job|employer|company|work ?place", r"\b(?:where|who|(?:what|which) company)\b.{0,60}\bwork(?:s|ing)?\b"
    ),
    "studies": _Wording("studies|degree|major|subject", r"\bwhat\b.{0,60}\bstud(?:y|ies|ying)\b"),
    "studies at": _Wording(
        "university|college|school", r"\bwhere\b.{0,60}\b(?:study|studies|studying|school|university)\b"
    ),
    "name is": _Wording("(?:full |first |last |real )?name", r"\bwhat am i called\b|\bwho am i\b"),
    "age is": _Wording("age", r"\bhow old\b"),
    "allergic to": _Wording("allerg(?:y|ies)", r"\ballergic\b"),
    "diet is": _Wording("diet", r"\b(?:vegetarian|vegan|diet|eat meat)\b"),
    "speaks": _Wording("languages?|mother tongue", r"\blanguages?\b.{0,60}\bspeak"),
    "married to": _Wording("husband|wife|spouse|partner", r"\bmarried\b"),
    "engaged to": _Wording("fianc[eé]e?|partner", r"\bengaged\b"),
    "dating": _Wording("boyfriend|girlfriend|partner", r"\b(?:dating|seeing|going out with)\b"),
    "has pet": _Wording("pets?|dogs?|cats?|animals?", r"\bpets?\b|\banimals?\b"),
    "has children": _Wording("kids?|child(?:ren)?|sons?|daughters?", r"\b(?:kids|children)\b"),
    "drives": _Wording("car|vehicle", r"\b(?:drive|car)\b"),
    "plays": _Wording("instruments?", r"\bplay\b"),
    "phone is": _Wording(r"(?:phone |mobile |cell )?number|phone", r"\bcall me\b.{0,60}\bnumber\b"),
}
_PATTERNS = {
    predicate: (
        late_pattern(rf"\b(?:my|our) (?:\w{{1,20}} )?(?:{wording.nouns})\b", re.I),
        late_pattern(rf"['’]s? (?:\w{{1,20}} )?(?:{wording.nouns})\b", re.I),
        late_pattern(wording.clause, re.I),
    )
    for predicate, wording in _WORDINGS.items()
}
#: The predicates that have words of their own here.
WORDED_PREDICATES = frozenset(_PATTERNS)
_FIRST_PERSON_SUBJECT = late_pattern(r"\b(?:i|we|me|us)\b", re.I)
#: Characters of a question that is read; longer texts are messages.
CHARS_MAX = 200


def asks_about_speaker(question: str, predicate: str) -> bool:
    """Return whether a question asks for a predicate of the asker: `what is my job`, `where do I live`."""
    if len(question) > CHARS_MAX:
        return False
    name = canonical(predicate)
    patterns = _PATTERNS.get(name)
    if patterns is None:
        return _has_name(question, name) and is_first_person(question)
    own_noun, _, clause = patterns
    is_own_clause = _FIRST_PERSON_SUBJECT.search(question) is not None and clause.search(question) is not None
    return is_own_clause or own_noun.search(question) is not None


def asks_about_other(question: str, predicate: str) -> bool:
    """Return whether a question asks for a predicate of someone that it names: `where does Ann live`."""
    if len(question) > CHARS_MAX:
        return False
    name = canonical(predicate)
    patterns = _PATTERNS.get(name)
    if patterns is None:
        return _has_name(question, name)
    _, others_noun, clause = patterns
    return others_noun.search(question) is not None or clause.search(question) is not None


def _has_name(question: str, predicate: str) -> bool:
    """Return whether a question has all words of a predicate that names an attribute: `shoe size is`."""
    stems = attribute_stems(predicate)
    return bool(stems) and stems <= content_stems(question)


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
