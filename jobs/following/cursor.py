"""Cursor: how far a follower has handled the events of a namespace, and the port of the store of cursors."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct


class Cursor(Struct, frozen=True, kw_only=True):
    """The state of a follower in one namespace."""

    #: Version of an event; this event and all before it are handled.
    position: int
    #: Version of the last erasure for which what the follower derived was removed; 0: none.
    erasure_version: int = 0
    #: Attempts at the next events that failed in turn.
    failures: int = 0
    #: The time before which these events are not tried again, in microseconds since 1970 UTC.
    retry_at_us: int = 0
    #: The hash of the event at `position`, in hex, by which other events in its place are noticed; empty: not known.
    hash: str = ""


class CursorStore(Protocol):
    """Stores cursors by name and the key of a namespace: the name of its folder, since no names of users are stored."""

    def cursor(self, name: str, namespace_key: str) -> Cursor | None:
        """Return a cursor; None: there is none of this name in the namespace."""
        ...

    def cursors(self, name: str) -> dict[str, Cursor]:
        """Return the cursors of a name in all namespaces, by namespace key."""
        ...

    def set_cursor(self, name: str, namespace_key: str, cursor: Cursor | None) -> None:
        """Store a cursor, which a crash may only set back; None removes it."""
        ...
