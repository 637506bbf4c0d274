"""Route hints: names the routes that a caller means with a path that there is not."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from recollect.events.late_pattern import late_pattern

_NAMESPACE = "/v1/namespaces/{namespace}"
_ADD = f"POST {_NAMESPACE}/messages"
_SEARCH = f"POST {_NAMESPACE}/retrieve"
_LIST = f"GET {_NAMESPACE}/facts"
_MEMORY = f"GET, PATCH or DELETE {_NAMESPACE}/memories/{{memory_id}}"
_ERASE = f"DELETE {_NAMESPACE}?confirm={{namespace}}"
#: Paths of other memory services and first guesses, without a version and an id, with our routes.
_OTHER_PATHS = {
    "add": (_ADD,),
    "remember": (_ADD,),
    "memory": (_ADD, _SEARCH),
    "memories": (_ADD, _SEARCH, _LIST),
    "search": (_SEARCH,),
    "query": (_SEARCH,),
    "recall": (_SEARCH,),
    "context": (_SEARCH,),
    "get_all": (_LIST,),
    "users": (f"GET {_NAMESPACE}/entities", "GET /v1/namespaces"),
    "threads": (f"GET {_NAMESPACE}/sessions",),
    "forget": (_MEMORY,),
    "delete": (_MEMORY,),
    "reset": (_ERASE,),
    "delete_all": (_ERASE,),
}
#: Lists whose items have ids of memories.
_ITEMS = frozenset(
    ("memory", "memories", "messages", "episodes", "facts", "preferences", "procedures", "relationships")
)
_VERSION = late_pattern(r"v\d{1,2}|api")
#: Parts of a path, characters of each, and routes that are named.
_PARTS_MAX = 8
_PART_CHARS_MAX = 40
_ROUTES_MAX = 3
#: Similarity of two names: `fact` and `facts` have 0.89.
_SIMILARITY_MIN = 0.75


def unknown_path(path: str, routes: Iterable[tuple[str, str]]) -> str:
    """Return what to call in place of a path that there is not.

    Parameters:
        routes: the method and the template of the path of each route.
    """
    named = _named(path, [*routes])
    return f"there is no such path; {f'you may mean {named}; all' if named else 'all'} are at /docs"


def _named(path: str, routes: Sequence[tuple[str, str]]) -> str:
    """Return the routes of a path, from the last of its parts that names some; empty when none does."""
    parts = [part[:_PART_CHARS_MAX].casefold() for part in path.split("/")[: _PARTS_MAX + 1]]
    parts = [part for part in parts if part and not _VERSION.fullmatch(part)]
    if len(parts) > 1 and parts[-2] in _ITEMS and parts[-1] not in _OTHER_PATHS:
        return _MEMORY
    by_name: dict[str, list[str]] = {}
    for method, template in routes:
        name = next((part for part in reversed(template.split("/")) if part and "{" not in part), "")
        by_name.setdefault(name, []).append(f"{method} {template.replace(':path}', '}')}")
    for part in reversed(parts):
        if part in _OTHER_PATHS:
            return " or ".join(_OTHER_PATHS[part])
        names = difflib.get_close_matches(part, by_name, n=1, cutoff=_SIMILARITY_MIN)
        if names and part != "namespaces":
            return " or ".join(by_name[names[0]][:_ROUTES_MAX])
    return ""
