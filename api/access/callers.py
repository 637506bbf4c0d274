"""Callers: who sends a request, with the scopes and the namespaces that they have; and the right that a route needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast, get_args

from msgspec import Struct

from recollect.events.errors import InvalidInput, NotFound, ScopeMissing
from recollect.events.late_pattern import late_pattern

#: What a token allows. No scope includes another one: `write` can neither erase nor export.
Scope = Literal["read", "write", "export", "erase", "review", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)

#: What a route is about: nothing secret; the server's description, for every caller; the namespaces of the caller; one
#: namespace, that of the path; or the whole server, all namespaces together.
Extent = Literal["public", "any", "own", "namespace", "server"]

#: A namespace, or the beginning of names and `*`. No other wildcard, so that a match is one comparison.
_PATTERN = late_pattern(r"[A-Za-z0-9._:@-]{1,200}\*?|\*")
#: Patterns of one token; a bot for more namespaces gives them a common beginning.
PATTERNS_MAX = 100


class Right(Struct, frozen=True, kw_only=True):
    """The right that a route needs."""

    #: The scopes that the caller must have, all of them.
    scopes: frozenset[Scope]
    extent: Extent
    #: How many requests it counts as in the rate of the caller.
    cost: int = 1
    #: Whether each call is a line of the audit log. Calls that are denied are always one.
    is_audited: bool = False
    #: Whether a user waits for the answer, so that background work of the process pauses meanwhile.
    is_live: bool = False


class Caller(Struct, frozen=True, kw_only=True):
    """Who sends a request."""

    #: The id of the token; `local` without one.
    id: str
    scopes: frozenset[Scope]
    #: The patterns of the namespaces that the caller reaches.
    patterns: tuple[str, ...]

    def covers(self, namespace: str) -> bool:
        """Return whether the caller reaches `namespace`."""
        return any(matches(pattern, namespace) for pattern in self.patterns)

    @property
    def covers_all(self) -> bool:
        """Return whether the caller reaches every namespace."""
        return "*" in self.patterns

    def require_namespace(self, namespace: str, *, field: str = "namespace") -> None:
        """Refuse a namespace out of reach, in the same words whether it exists or not.

        Raises:
            NotFound: the caller does not reach it.
        """
        if not self.covers(namespace):
            raise NotFound("there is no such namespace for this token", field=field)

    def require_scopes(self, scopes: frozenset[Scope] | set[Scope]) -> None:
        """Refuse a caller without all of `scopes`; raise `ScopeMissing` with those that are missing."""
        missing = sorted(scopes - self.scopes)
        if missing:
            raise ScopeMissing(
                f"the token has no scope {' and '.join(missing)}; use another token, or create one with "
                f"recollect token create --scope {' --scope '.join(missing)}"
            )


#: The caller without a token: programs of this machine, while no token exists, and the commands of the data folder.
LOCAL_CALLER = Caller(id="local", scopes=frozenset(SCOPES), patterns=("*",))


def matches(pattern: str, namespace: str) -> bool:
    """Return whether `namespace` is `pattern`, or begins with it up to the `*` at its end."""
    if pattern.endswith("*"):
        return namespace.startswith(pattern[:-1])
    return namespace == pattern


def check_patterns(patterns: Sequence[str]) -> tuple[str, ...]:
    """Return the patterns of a token without repetitions; raise `InvalidInput` for one that is not allowed."""
    for pattern in patterns:
        if not _PATTERN.fullmatch(pattern):
            raise InvalidInput(
                "give a namespace such as ann, or the beginning of names and *, such as team-*; * alone is every "
                "namespace",
                field="namespace",
            )
    if not 1 <= len(patterns) <= PATTERNS_MAX:
        raise InvalidInput(f"give 1 to {PATTERNS_MAX} patterns", field="namespace")
    return tuple(dict.fromkeys(patterns))


def check_scopes(scopes: Sequence[str]) -> frozenset[Scope]:
    """Return the scopes of a token; raise `InvalidInput` for an unknown one, or for none."""
    if not scopes or not set(scopes).issubset(SCOPES):
        raise InvalidInput(f"give one or more of {', '.join(SCOPES)}", field="scope")
    return frozenset(cast("list[Scope]", scopes))
