"""Restricted memories: which memories the asker must not be shown, since their speaker said so.

A message with `not_for`, and one that says "don't tell Ben", is left out with all that was derived from it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from msgspec.structs import replace

from recollect.api.retrieval.contract.result import Item
from recollect.events.late_pattern import late_pattern
from recollect.projections.projector.predicates import normalised
from recollect.projections.queries.restriction_queries import NOTHING_HIDDEN, HiddenMemories, Restriction
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.text.withheld_names import EVERYBODY, PERHAPS

#: The speaker of messages without a name.
_UNNAMED = "user"
#: A word of a name; `ben_k` has two.
_NAME_WORD = late_pattern(r"[^\W\d_]+")


def hidden_memories(
    snapshot: Snapshot, asker: str | None, users_of: Callable[[], Collection[str]], *, is_own_namespace: bool = True
) -> HiddenMemories:
    """Return the memories that the asker must not be shown.

    Parameters:
        asker: the name in the request; None: it has none.
        users_of: returns the names of the users who speak in the namespace, normalised. The only one of them asks what
            comes without a name; with several, all that is not for one of them is hidden from a request without a name.
        is_own_namespace: whether the request names the namespace; the users of another one do not ask.
    """
    restrictions = snapshot.restrictions.all()
    if not restrictions:
        return NOTHING_HIDDEN
    # The messages of a speaker may have expired.
    users = {*users_of(), *(normalised(restriction.speaker) for restriction in restrictions)} - {_UNNAMED}
    name = normalised(asker or "")
    if name in ("", _UNNAMED):
        # A namespace without any name has one user.
        is_alone = is_own_namespace and len(users) < 2
        name = next(iter(users), _UNNAMED) if is_alone else ""
    names: set[str] = set()
    if name:
        names = {name, *snapshot.entities.names_and_aliases(sorted(snapshot.entities.ids_by_name([name])))}
    hidden = [restriction for restriction in restrictions if _excludes(restriction, names, users)]
    return snapshot.restrictions.derived(hidden) if hidden else NOTHING_HIDDEN


def without_hidden(items: Sequence[Item], hidden: HiddenMemories) -> list[Item]:
    """Return the items that are not hidden, without hidden sources and later statements."""
    return [_without_hidden_parts(item, hidden) for item in items if not hidden.hides(item.id, item.source_events)]


def _without_hidden_parts(item: Item, hidden: HiddenMemories) -> Item:
    later = item.later if item.later is None or item.later.source_event not in hidden.ids else None
    sources = tuple(source for source in item.sources if source.id not in hidden.ids)
    return item if (later, sources) == (item.later, item.sources) else replace(item, later=later, sources=sources)


def _excludes(restriction: Restriction, names: Collection[str], users: Collection[str]) -> bool:
    """Return whether a message must not be shown to a person of these names; without a name, to an unknown person."""
    stated = [name.removeprefix(PERHAPS) for name in restriction.not_for if _is_name(name, {*users, *names})]
    if not names:
        return bool(stated)
    speaker = normalised(restriction.speaker)
    if EVERYBODY in stated:
        is_only_user = speaker == _UNNAMED and len(users) < 2
        return speaker not in names and not is_only_user
    return any(_may_be_same(name, other) for name in names for other in stated)


def _is_name(name: str, users: Collection[str]) -> bool:
    """Return whether a name of a restriction is one; a word without a capital is where a user is called so."""
    return not name.startswith(PERHAPS) or normalised(name.removeprefix(PERHAPS)) in users


def _may_be_same(name: str, other: str) -> bool:
    """Return whether two names may be those of one person: one has all the words of the other."""
    words, others = (frozenset(_NAME_WORD.findall(text.casefold())) for text in (name, other))
    if not words or not others:
        return normalised(name) == normalised(other)
    return words <= others or others <= words
