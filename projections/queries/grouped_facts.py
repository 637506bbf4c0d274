"""Grouped facts: facts about an entity with several names."""

from __future__ import annotations

import orjson

from recollect.events.late_pattern import late_pattern

#: A person named by the relation to another one: `Ann's mom`.
_ROLE = late_pattern(r"['’]s [^\W\d_]+$")


def subject_with_role(subject: str, name: str, aliases: str | None) -> str:
    """Return the subject of a fact with the other kind of name: `Wendy (Ann's mom)`, `Ann's mom (Wendy)`.

    Parameters:
        name, aliases: of the entity that it names; `aliases` is JSON, None without any.
    """
    if aliases is None:
        return subject
    is_role = _ROLE.search(subject) is not None
    others = [other for other in (name, *orjson.loads(aliases)) if (_ROLE.search(other) is not None) != is_role]
    return f"{subject} ({others[0]})" if others else subject
