"""List pages: the rows of a read model, the events and the namespaces, as pages of JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from recollect.events.backends.log import EventLog
from recollect.events.envelope import rfc3339
from recollect.events.errors import InvalidInput, NotFound
from recollect.projections.queries.page_queries import LISTS
from recollect.projections.queries.snapshot import Snapshot

#: Default number of items of a page.
PAGE_ITEMS = 100
#: Largest number of items of a page, so that a response stays small.
PAGE_ITEMS_MAX = 1_000

#: ``{"items": […], "next": what `after` takes for the next page, None at the end}``.
Page = dict[str, Any]


def list_events(log: EventLog, namespace: str, after: str, limit: int, until: int | None = None) -> Page:
    """Return a page of events with versions over `after`, up to `until` when it is given, in order."""
    start, count = _number(after), checked_limit(limit)
    if until is not None:
        count = min(count, until - start)
    events = log.read(namespace, after=start, limit=count) if count > 0 else []
    return _page([event.as_json() for event in events], limit, lambda item: item["version"])


def list_namespaces(log: EventLog, after: str, limit: int) -> Page:
    """Return a page of namespaces with names over `after`, by name, each with its head."""
    items = [
        {"namespace": head.namespace, "version": head.version, "hash": head.hash.hex()}
        for head in log.heads(after=after, limit=checked_limit(limit))
    ]
    return _page(items, limit, lambda item: item["namespace"])


def list_rows(snapshot: Snapshot, name: str, after: str, limit: int) -> Page:
    """Return a page of the list `name`, one of `page_queries.LISTS`.

    Raises:
        InvalidInput: there is no list `name`, or `after` or `limit` is wrong.
    """
    if name not in LISTS:
        raise InvalidInput(f"no list is called {name!r}; give one of {', '.join(LISTS)}", field="name")
    limit = checked_limit(limit)
    definition = LISTS[name]
    rows = snapshot.pages.rows(name, _cursor(name, after), limit=limit)
    following = str(rows[-1][definition.cursor]) if len(rows) == limit else None
    if definition.hides_cursor:
        for row in rows:
            del row[definition.cursor]
    return {"items": [_item(row) for row in rows], "next": following}


def list_fact_history(snapshot: Snapshot, fact_id: str) -> Page:
    """Return the facts that held in turn with a fact, oldest first, at most `PAGE_ITEMS_MAX`.

    Raises:
        NotFound: there is no such fact.
    """
    rows = snapshot.facts.history(fact_id, PAGE_ITEMS_MAX)
    if not rows:
        raise NotFound(f"there is no fact {fact_id!r}; the list of facts has their ids", field="fact_id")
    return {"items": [_item(row) for row in rows], "next": None}


def _cursor(name: str, after: str) -> str | int:
    """Return the cursor `after` in the type of the list's cursor column."""
    if not LISTS[name].is_number:
        return after
    return _number(after)


#: Columns that hold JSON.
_JSON_COLUMNS = frozenset(("aliases", "metadata", "source_events", "steps", "chunks", "relations", "memory_ids"))
#: Columns that hold 0 or 1.
_FLAG_COLUMNS = frozenset(("pinned", "standing"))


def _item(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row as JSON: times in RFC 3339, flags as booleans, JSON columns decoded."""
    item: dict[str, Any] = {}
    for column, value in row.items():
        if column.endswith("_us"):
            item[column.removesuffix("_us")] = None if value is None else rfc3339(value)
        elif column in _JSON_COLUMNS:
            item[column] = None if value is None else orjson.loads(value)
        elif column in _FLAG_COLUMNS:
            item[column] = bool(value)
        else:
            item[column] = value
    return item


def _page(items: list[dict[str, Any]], limit: int, cursor: Callable[[dict[str, Any]], Any]) -> Page:
    return {"items": items, "next": str(cursor(items[-1])) if len(items) == limit else None}


def checked_limit(limit: int) -> int:
    """Return `limit`.

    Raises:
        InvalidInput: it is not from 1 to 1,000.
    """
    if not 1 <= limit <= PAGE_ITEMS_MAX:
        raise InvalidInput(f"give a number from 1 to {PAGE_ITEMS_MAX:,}", field="limit")
    return limit


def _number(after: str) -> int:
    if not after:
        return 0
    if not after.isdecimal() or int(after) >= 1 << 36:
        raise InvalidInput("give the `next` of the previous page: a whole number", field="after")
    return int(after)
