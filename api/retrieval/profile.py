"""Profile: what memory states of a person, by topic: who, home, work, people, health, likes, plans.

"What do you know about me?" is answered in statements, each of them one line; the messages are their evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from recollect.api.retrieval.contract.result import Item
from recollect.api.retrieval.result_items import knowledge_item
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.api.retrieval.whose_words import speakers_of
from recollect.projections.projector.predicates import normalised
from recollect.projections.queries.knowledge_queries import KnowledgeItem

#: The topics in their order, each with the most statements that are shown of it.
_TOPICS = {
    "identity": 4, "home": 3, "work": 4, "relation": 5, "health": 4, "preference": 4, "possession": 3, "habit": 3,
    "decision": 2, "task": 3, "plan": 4, "event": 3, "other": 2,
}  # fmt: skip
#: The topics that say who a person is, and the statements of each at the start of a session.
_LIFE = ("identity", "home", "work", "relation", "health")
_OF_TOPIC_AT_START = 2
#: Statements under which the messages say more.
_STATEMENTS_MIN = 4
_KINDS = ("fact", "relationship", "preference")


def profile(context: SearchContext) -> list[Item]:
    """Return the statements of a person, when a query asks for all of them; none when few are known."""
    query, request = context.query, context.request
    is_asked = query.intent.overview and not query.has_topic and not query.time_ranges and not query.entities
    if not is_asked or request.mode != "active" or request.kinds is not None or request.session_id is not None:
        return []
    people = query.participant_names or {speakers_of(context).asker or ""}
    statements = _of_people(context, {normalised(name) for name in people})
    if len(statements) < _STATEMENTS_MIN:
        return []
    chosen = _by_topic(statements)[: request.limit]
    return [
        knowledge_item(context, item, 1.0 - place / (len(chosen) + 1), {"topic": place + 1})
        for place, item in enumerate(chosen)
    ]


def who_is(items: Iterable[KnowledgeItem]) -> list[KnowledgeItem]:
    """Return the first few of the items, newest first, that say who a person is: two of each topic of a life."""
    listed = list(items)
    return [item for topic in _LIFE for item in [item for item in listed if _topic(item) == topic][:_OF_TOPIC_AT_START]]


def _of_people(context: SearchContext, people: set[str]) -> list[KnowledgeItem]:
    """Return what is stated of people; without a name, all that is not stated of another one."""
    items = (item for item in context.index.knowledge.items if item.kind in _KINDS and not item.standing)
    return [
        item
        for item in items
        if context.request.includes(item.occurred_at_us)
        and (people == {""} or any(normalised(item.line).startswith(name) for name in people))
    ]


def _by_topic(statements: Sequence[KnowledgeItem]) -> list[KnowledgeItem]:
    """Return the surest and newest statements of each topic, topic after topic."""
    chosen: list[KnowledgeItem] = []
    for topic, most in _TOPICS.items():
        of_topic = [item for item in statements if _topic(item) == topic]
        of_topic.sort(key=lambda item: (not item.pinned, -item.occurred_at_us))
        chosen += of_topic[:most]
    return chosen


def _topic(item: KnowledgeItem) -> str:
    """Return the topic of a statement."""
    if item.kind == "relationship":
        return "relation"
    if item.kind == "preference":
        return "preference"
    return item.statement_kind if item.statement_kind in _TOPICS else "other"
