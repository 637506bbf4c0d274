"""Grouped facts: facts about an entity with several names, of which lists and retrieval read the newest value."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import orjson

#: A person named by the relation to another one: `Ann's mom`.
_ROLE = re.compile(r"['’]s [^\W\d_]+$")


def newest_values(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the facts without the older values of an entity with several names: `Ann's mom lives in Leeds`.

    The facts of one name follow each other in the table; those of two names are compared here, so that a merge can be
    undone.
    """
    listed = list(rows)
    newest: dict[tuple[int, str], int] = {}
    for row in listed:
        if row["has_one_value"] and row["aliases"] is not None:
            key = row["entity_id"], row["topic"].rpartition("|")[2]
            newest[key] = max(newest.get(key, 0), row["updated_at_us"])
    return [
        row
        for row in listed
        if not row["has_one_value"]
        or row["updated_at_us"] >= newest.get((row["entity_id"], row["topic"].rpartition("|")[2]), 0)
    ]


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
