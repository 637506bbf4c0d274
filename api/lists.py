"""Lists of what a read model holds, in pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import apsw
import orjson

from recollect.events.envelope import rfc3339
from recollect.events.errors import InvalidInput
from recollect.events.log import EventLog

#: Items in a page when nobody says, and at most.
PAGE_ITEMS = 100
PAGE_ITEMS_MAX = 1_000

#: ``{"items": […], "next": what `after` takes for the next page, None at the end}``.
Page = dict[str, Any]
_List = Callable[[apsw.Connection, str, int], Page]


def list_events(log: EventLog, namespace: str, after: str, limit: int, until: int | None = None) -> Page:
    """Return events with versions over `after`, up to `until` when it is given, in order."""
    start, most = _number(after), _checked(limit)
    if until is not None:
        most = min(most, until - start)
    events = log.read(namespace, after=start, limit=most) if most > 0 else []
    return _page([event.as_json() for event in events], limit, lambda item: item["version"])


def list_namespaces(log: EventLog, after: str, limit: int) -> Page:
    """Return namespaces with names over `after`, by name, each with its head."""
    items = [
        {"namespace": head.namespace, "version": head.version, "hash": head.hash.hex()}
        for head in log.heads(after=after, limit=_checked(limit))
    ]
    return _page(items, limit, lambda item: item["namespace"])


def list_rows(connection: apsw.Connection, name: str, after: str, limit: int) -> Page:
    """Return a page of the list `name`, one of `LISTS`."""
    return LISTS[name](connection, after, _checked(limit))


_EPISODES = """
SELECT version, id, session_id, occurred_at_us, type, role, speaker, text, caption, importance, outcome, tier, status,
    pinned, expires_at_us, short, token_count
FROM episodes WHERE version > ? ORDER BY version LIMIT ?
"""


def _episodes(connection: apsw.Connection, after: str, limit: int) -> Page:
    rows = connection.execute(_EPISODES, (_number(after), limit))
    return _page([_item(rows, row) for row in rows], limit, lambda item: item["version"])


def _sessions(connection: apsw.Connection, after: str, limit: int) -> Page:
    rows = connection.execute(
        "SELECT id, channel, user_id, started_at_us, ended_at_us, last_at_us, episode_count, summary, metadata "
        "FROM sessions WHERE id > ? ORDER BY id LIMIT ?",
        (after, limit),
    )
    return _page([_item(rows, row) for row in rows], limit, lambda item: item["id"])


def _entities(connection: apsw.Connection, after: str, limit: int) -> Page:
    rows = connection.execute(
        "SELECT id, name, type, description, aliases, first_seen_us, last_seen_us, mention_count, spoken_count "
        "FROM entities WHERE id > ? ORDER BY id LIMIT ?",
        (_number(after), limit),
    )
    return _page([_item(rows, row) for row in rows], limit, lambda item: item["id"])


#: The lists of a read model.
LISTS: Mapping[str, _List] = {"episodes": _episodes, "sessions": _sessions, "entities": _entities}
_JSON_COLUMNS = ("aliases", "metadata")


def _item(rows: apsw.Cursor, row: tuple[Any, ...]) -> dict[str, Any]:
    """Return a row as the outside sees it: RFC 3339 times, JSON as JSON."""
    item: dict[str, Any] = {}
    for (column, *_), value in zip(rows.get_description(), row, strict=True):
        if column.endswith("_us"):
            item[column.removesuffix("_us")] = None if value is None else rfc3339(value)
        elif column in _JSON_COLUMNS:
            item[column] = None if value is None else orjson.loads(value)
        else:
            item[column] = value
    return item


def _page(items: list[dict[str, Any]], limit: int, cursor: Callable[[dict[str, Any]], Any]) -> Page:
    return {"items": items, "next": str(cursor(items[-1])) if len(items) == limit else None}


def _checked(limit: int) -> int:
    if not 1 <= limit <= PAGE_ITEMS_MAX:
        raise InvalidInput(f"give a number from 1 to {PAGE_ITEMS_MAX:,}", field="limit")
    return limit


def _number(after: str) -> int:
    if not after:
        return 0
    if not after.isdecimal() or int(after) >= 1 << 36:
        raise InvalidInput("give what the previous page has as next: a whole number", field="after")
    return int(after)
