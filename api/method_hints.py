"""Method hints: our methods and commands by their names in other memory libraries."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

#: Names of other memory libraries and first guesses, with the methods or commands that are meant.
_OTHER_NAMES = {
    **dict.fromkeys(("search", "search_memories", "search_memory", "query", "recall", "ask", "find"), ("retrieve",)),
    **dict.fromkeys(("remember", "store", "save", "put", "insert", "add_memory", "add_memories", "add_text"), ("add",)),
    **dict.fromkeys(("add_message", "add_messages", "add_episode"), ("add",)),
    **dict.fromkeys(("get_all", "get_memories", "list_memories", "memories", "facts", "show"), ("list",)),
    **dict.fromkeys(("delete", "remove", "delete_memory"), ("forget", "erase")),
    **dict.fromkeys(("delete_all", "delete_user", "clear", "reset"), ("erase",)),
    **dict.fromkeys(("edit", "correct"), ("update",)),
    **dict.fromkeys(("users", "list_users", "get_users", "namespaces"), ("namespaces", "stats")),
}


def meant_by(name: str, own: Collection[str]) -> str:
    """Return the names among `own` that another library's name means, joined by "or"; empty when it is not known."""
    return " or ".join(meant for meant in _OTHER_NAMES.get(name, ()) if meant in own)


class MethodHints:
    """A class whose AttributeError names the method that is meant; Python names one that is spelled alike."""

    # Hidden from type checkers, for which every attribute would exist.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            meant = meant_by(name, dir(type(self)))
            hint = f"; did you mean {meant}?" if meant else ""
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}", name=name, obj=self)
