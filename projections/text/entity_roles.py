"""Entity roles: reads names such as `Ann's mom`, which name a person by the relation to another one."""

from __future__ import annotations

from typing import NamedTuple

from recollect.events.late_pattern import late_pattern

#: Roles with the same meaning, each with the word that stands for them.
_SAME = {
    "mom": "mother",
    "mum": "mother",
    "dad": "father",
    "grandma": "grandmother",
    "grandpa": "grandfather",
    "manager": "boss",
    "flatmate": "roommate",
    "fiancée": "fiance",
    "fiancé": "fiance",
    "fiancee": "fiance",
}
#: Roles of which a person often has one. `My friend` may be any friend, also when the names of some are known.
ROLES = frozenset(
    """
    mother father sister brother wife husband partner girlfriend boyfriend fiance son daughter aunt uncle niece nephew
    grandmother grandfather boss roommate mentor therapist doctor dentist stepmother stepfather landlord landlady
    """.split()
)
_ROLE_NAME = late_pattern(r"^(?P<owner>[^\n]{1,120})['’]s (?P<role>[^\W\d_]{2,20})")


class RoleName(NamedTuple):
    """A name of a person by role."""

    #: The name of the other person, case folded.
    owner: str
    #: One word for all roles with this meaning.
    role: str


def role_name(name: str) -> RoleName | None:
    """Return the parts of a name such as `Ann's mom`; None for other names."""
    match = _ROLE_NAME.fullmatch(name)
    role = None if match is None else role_of(match["role"])
    return None if match is None or role is None else RoleName(match["owner"].casefold(), role)


def words_for(relation: str) -> tuple[str, ...]:
    """Return the words for the role of a relationship's type, `mom`, `mum` and `mother`; empty for other types."""
    role = role_of(relation)
    return () if role is None else (role, *(word for word, same in _SAME.items() if same == role))


def role_of(relation: str) -> str | None:
    """Return the role of a relationship's type, the same one for `mom` and `mother`; None: it is not one person's."""
    role = _SAME.get(relation.casefold(), relation.casefold())
    return role if role in ROLES else None
