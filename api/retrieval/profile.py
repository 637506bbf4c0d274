"""Profile: the statements about a person, by topic: who, home, work, people, health, likes, plans.

"What do you know about me?" is answered in statements, each of them one line; the messages are their evidence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice

from msgspec.structs import replace

from recollect.api.retrieval.contract.result import Item
from recollect.api.retrieval.result_items import knowledge_item
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.api.retrieval.whose_words import speakers_of
from recollect.events.catalogue.knowledge_events import SAYS
from recollect.projections.projector.predicates import normalised, place_in_kind
from recollect.projections.queries.knowledge_items import KnowledgeItem

#: The topics in their order, each with the most statements that are shown of it.
_TOPICS = {
    "identity": 4, "home": 3, "work": 4, "relation": 5, "health": 4, "preference": 4, "possession": 3, "habit": 3,
    "decision": 2, "task": 3, "plan": 4, "event": 3, "stated": 10, "other": 2,
}  # fmt: skip
#: The place of each topic, from 0.
TOPIC_ORDER = {topic: place for place, topic in enumerate(_TOPICS)}
#: The topics that say who a person is, each with the most statements at the start of a session.
_LIFE = {"identity": 2, "home": 2, "work": 2, "relation": 2, "health": 2, "preference": 2}
#: Statements under which the messages say more.
_STATEMENTS_MIN = 4
_KINDS = ("fact", "relationship", "preference")
#: Confidence of words that were said, from which on they are shown: a probability of .5 that they are worth keeping.
_SAID_MIN = 0.75


def profile(context: SearchContext, is_requested: Callable[[KnowledgeItem], bool]) -> list[Item]:
    """Return the statements of a person, when a query asks for all of them; none when few are known.

    Parameters:
        is_requested: whether the request allows the kind, the time and the metadata of an item.
    """
    query, request = context.query, context.request
    is_of_participant = query.intent.overview and bool(query.participants) and not query.has_topic
    is_asked = query.asks_profile or (is_of_participant and not query.time_ranges and not query.entities)
    if not is_asked or request.mode != "active" or request.kinds is not None or request.session_id is not None:
        return []
    people = {speakers_of(context).asker or ""} if query.asks_profile else query.participant_names
    of_people = _of_people(context, {normalised(name) for name in people})
    statements = [item for item in of_people if is_requested(item) and is_shown_unasked(item)]
    if len(statements) < _STATEMENTS_MIN:
        return []
    allowed = (
        pair
        for pair in without_repetition(context, _best_first(statements, _TOPICS))
        if pair[1].trust >= request.min_trust
    )
    shown = sorted(islice(allowed, request.limit), key=lambda pair: TOPIC_ORDER[topic_of(pair[0])])
    return [
        replace(item, score=1.0 - place / (len(shown) + 1), ranks={"topic": place}, matched_by=("topic",))
        for place, (_, item) in enumerate(shown, start=1)
    ]


def without_repetition(
    context: SearchContext, statements: Iterable[KnowledgeItem]
) -> Iterator[tuple[KnowledgeItem, Item]]:
    """Yield statements with their items; what the line of an earlier one has in the same words is left out."""
    texts: list[str] = []
    for statement in statements:
        if statement.object and any(statement.object in text for text in texts):
            continue
        item = knowledge_item(context, statement, 0.5, {})
        texts.append(item.text)
        yield statement, item


def is_shown_unasked(item: KnowledgeItem) -> bool:
    """Return whether a statement may be shown without a question about it: words that were said are, if they last."""
    return item.pinned or item.predicate != SAYS or item.confidence >= _SAID_MIN


def who_is(items: Iterable[KnowledgeItem]) -> list[KnowledgeItem]:
    """Return the items that say who a person is: the best one of each topic of a life, then the second ones."""
    return _best_first(items, _LIFE)


def is_about(item: KnowledgeItem, name: str) -> bool:
    """Return whether a statement begins with a normalised name, and not with a longer one: `Anna` is not about Ann."""
    line = normalised(item.line)
    return line.startswith(name) and not line[len(name) : len(name) + 1].isalnum()


def _of_people(context: SearchContext, people: set[str]) -> list[KnowledgeItem]:
    """Return what is stated of people; without a name, all that is not stated of another one."""
    items = (item for item in context.index.knowledge.items if item.kind in _KINDS)
    return [
        item
        for item in items
        if item.is_valid_at(context.asked_at_us) and (people == {""} or any(is_about(item, name) for name in people))
    ]


def _best_first(statements: Iterable[KnowledgeItem], topics: Mapping[str, int]) -> list[KnowledgeItem]:
    """Return the best statement of each topic, then the second one of each, and so on.

    The best one says who a person is plainly, in the order of its predicates and with most certainty, and was said
    first; of what happens, it is the newest one.
    """
    by_topic: dict[str, list[KnowledgeItem]] = defaultdict(list)
    for item in sorted(statements, key=lambda item: (not item.pinned, -item.occurred_at_us, item.id)):
        by_topic[topic_of(item)].append(item)
    for topic in _LIFE.keys() - {"preference"}:
        by_topic[topic].sort(key=_place_in_life)
    places = sorted((place, TOPIC_ORDER[topic], topic) for topic, most in topics.items() for place in range(most))
    return [by_topic[topic][place] for place, _, topic in places if place < len(by_topic[topic])]


def _place_in_life(item: KnowledgeItem) -> tuple[bool, bool, int, float, int]:
    """Return the place of a statement among those that say who a person is."""
    place = 0 if item.kind == "relationship" else place_in_kind(item.predicate)
    return not item.pinned, item.predicate == SAYS, place, -item.confidence, item.occurred_at_us


def topic_of(item: KnowledgeItem) -> str:
    """Return the topic of a statement."""
    if item.kind == "relationship":
        return "relation"
    if item.kind == "preference":
        return "preference"
    # A caller or an import states facts without a kind.
    return item.statement_kind if item.statement_kind in _TOPICS else "stated"
