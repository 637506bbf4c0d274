"""Secret owners: checks whether the asker stated an item, for PINs and codes."""

from __future__ import annotations

from functools import cached_property

from recollect.api.retrieval.contract.result import Item
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.api.retrieval.whose_words import speakers_of
from recollect.projections.projector.predicates import normalised

#: The speaker of a user's message without a name.
_UNNAMED = "user"


class SecretOwners:
    """The users of a namespace, and who of them asks.

    In a namespace of one user everything is that user's. With several, a secret is shown only to the user who stated
    it; without the name of the asker, to no user. Documents belong to all users.
    """

    def __init__(self, context: SearchContext) -> None:
        self._context = context
        # The session alone does not identify the asker: several users may speak in it.
        self._asker = normalised(context.request.speaker or "")

    @cached_property
    def is_alone(self) -> bool:
        """Return whether the namespace has no user other than the asker."""
        return not speakers_of(self._context).several

    def owns(self, item: Item) -> bool:
        """Return whether the user who asks stated an item."""
        if item.provenance == "document":
            return True
        if item.namespace != self._context.namespace:
            # The users of another namespace are not known here.
            return normalised(item.speaker or "") in (self._asker or _UNNAMED, _UNNAMED)
        if self.is_alone:
            return True
        return self._asker not in ("", _UNNAMED) and self._speakers_of(item) == {self._asker}

    def _speakers_of(self, item: Item) -> set[str]:
        """Return the users who stated an item; others than users are named by their role."""
        if item.kind == "episode" and item.speaker is not None and item.tier == "raw":
            return {normalised(item.speaker) if item.provenance == "user" else f"the {item.provenance}"}
        episodes = self._context.snapshot.episodes
        details = [episodes.details(version) for version in episodes.versions_of(item.source_events)]
        return {normalised(it.speaker) if it.role == "user" else f"the {it.role}" for it in details}
