"""Whose words: which standing instructions hold for a turn, and which memories name their speaker.

A rule holds for the turns of who gave it. Where several users speak in a namespace, what one of them says of another,
and every rule that is shown, names its speaker.
"""

from __future__ import annotations

from msgspec import Struct

from recollect.api.retrieval.search.search_context import SearchContext
from recollect.projections.projector.predicates import normalised
from recollect.projections.queries.knowledge_items import KnowledgeItem
from recollect.projections.text.statement_lines import displayed_name

#: The speaker of messages without a name, who may be any user.
_UNNAMED = "user"


class Speakers(Struct, frozen=True, kw_only=True):
    """The users who speak in a namespace, and the asker."""

    #: Whether more than one user with a name speaks.
    several: bool
    #: Who asks, normalised; None: not known.
    asker: str | None

    def may_rule(self, item: KnowledgeItem) -> bool:
        """Return whether an item is the asker's own, of a user without a name, or the asker is not known."""
        owner = normalised(item.stated_by or "")
        return not self.several or self.asker is None or owner in ("", _UNNAMED, self.asker)

    def attributed(self, item: KnowledgeItem) -> str:
        """Return the line of an item, with its speaker where several users speak."""
        if not self.several or not item.stated_by or item.kind not in ("fact", "relationship", "preference"):
            return item.line
        name = displayed_name(item.stated_by)
        if item.kind == "preference":
            return f"{name}: {item.line}" if item.standing else item.line
        is_own = item.line.casefold().startswith(f"{normalised(item.stated_by)}'s ")
        return item.line if is_own else f"According to {name}, {item.line}"


def users_of(context: SearchContext) -> frozenset[str]:
    """Return the names of the users who speak in the namespace of a query, normalised."""
    return context.episodes.user_names - {_UNNAMED}


def speakers_of(context: SearchContext) -> Speakers:
    """Return the users who speak in the namespace of a query, and its asker.

    Without a name in the request, it is the only user of the session of the request, or of the namespace.
    """
    request, episodes = context.request, context.episodes
    names = users_of(context)
    asker = None if request.speaker is None else normalised(request.speaker)
    if asker is not None and asker != _UNNAMED:
        names |= {asker}
    if len(names) < 2:
        return Speakers(several=False, asker=asker)
    if asker is None:
        of_session = episodes.user_names_of(request.session_id) - {_UNNAMED}
        asker = next(iter(of_session)) if len(of_session) == 1 else None
    return Speakers(several=True, asker=None if asker == _UNNAMED else asker)
