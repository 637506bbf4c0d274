"""Asker context: the search context of the asker: whom "I" means, and without what they must not be shown."""

from __future__ import annotations

from msgspec.structs import replace

from recollect.api.retrieval.restricted_memories import hidden_memories
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.api.retrieval.understanding.query import asked_by
from recollect.api.retrieval.whose_words import speakers_of, users_of


def for_asker(context: SearchContext, *, is_own: bool = True) -> SearchContext:
    """Return the search context of the speaker of its request.

    Parameters:
        is_own: whether the namespace is that of the request, and not another one that is searched too.
    """
    speaker, snapshot = context.request.speaker, context.snapshot
    if speaker is not None and speakers_of(context).several:
        context = replace(context, query=asked_by(context.query, snapshot, speaker))
    hidden = hidden_memories(snapshot, speaker, lambda: users_of(context), is_own_namespace=is_own)
    if not hidden.ids:
        return context
    knowledge = context.index.knowledge.without(hidden)
    named = snapshot.restrictions.named_by_others(context.query.entities, hidden)
    entities = tuple(id for id in context.query.entities if id in named or knowledge.graph.rows.get(id))
    query = replace(context.query, entities=entities)
    return replace(context, hidden=hidden, query=query, index=context.index._replace(knowledge=knowledge))
