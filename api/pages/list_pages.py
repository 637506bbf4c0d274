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
    start, most = _number(after), checked_limit(limit)
    if until is not None:
        most = min(most, until - start)
    events = log.read(namespace, after=start, limit=most) if most > 0 else []
    return _page([event.as_json() for event in events], limit, lambda item: item["version"])


def list_namespaces(log: EventLog, after: str, limit: int) -> Page:
    """Return namespaces with names over `after`, by name, each with its head."""
    items = [
        {"namespace": head.namespace, "version": head.version, "hash": head.hash.hex()}
        for head in log.heads(after=after, limit=checked_limit(limit))
    ]
    return _page(items, limit, lambda item: item["namespace"])


def list_rows(connection: apsw.Connection, name: str, after: str, limit: int) -> Page:
    """Return a page of the list `name`, one of `LISTS`."""
    return LISTS[name](connection, after, checked_limit(limit))


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


def _documents(connection: apsw.Connection, after: str, limit: int) -> Page:
    rows = connection.execute(
        "SELECT id, title, text, uri, metadata, added_at_us, version, "
        "(SELECT json_group_array(json_object('number', number, 'text', chunks.text)) FROM chunks "
        "WHERE document_id = documents.id) AS chunks, "
        "(SELECT json_group_array(json_object('type', type, 'target', target, 'weight', weight)) "
        "FROM document_relations WHERE document_id = documents.id) AS relations "
        "FROM documents WHERE id > ? ORDER BY id LIMIT ?",
        (after, limit),
    )
    return _page([_item(rows, row) for row in rows], limit, lambda item: item["id"])


def _digests(connection: apsw.Connection, after: str, limit: int) -> Page:
    rows = connection.execute(
        "SELECT day, text, occurred_at_us FROM daily_digests WHERE day > ? ORDER BY day LIMIT ?", (after, limit)
    )
    return _page([_item(rows, row) for row in rows], limit, lambda item: item["day"])


def _clusters(connection: apsw.Connection, after: str, limit: int) -> Page:
    rows = connection.execute(
        "SELECT number, label, json_group_array(memory_id) AS memory_ids FROM "
        "(SELECT * FROM clusters ORDER BY memory_id) WHERE number >= ? GROUP BY number ORDER BY number LIMIT ?",
        (_number(after) + 1 if after else 0, limit),
    )
    return _page([_item(rows, row) for row in rows], limit, lambda item: item["number"])


def _keyed(table: str, columns: str, source: str | None = None) -> _List:
    """Return the list of a table whose rows have a key that counts up."""

    def rows_of(connection: apsw.Connection, after: str, limit: int) -> Page:
        rows = connection.execute(
            f"SELECT {table}.key, {columns} FROM {source or table} WHERE {table}.key > ? ORDER BY {table}.key LIMIT ?",
            (_number(after), limit),
        )
        items = [_item(rows, row) for row in rows]
        page = _page(items, limit, lambda item: item["key"])
        for item in items:
            del item["key"]
        return page

    return rows_of


_STATE = "status, pinned, superseded_by, source_events, stale_at_us, created_at_us, updated_at_us, version"

#: The lists of a read model.
LISTS: Mapping[str, _List] = {
    "episodes": _episodes,
    "sessions": _sessions,
    "entities": _entities,
    "facts": _keyed(
        "facts",
        "id, subject, predicate, object, type, layer, confidence, source_type, valid_from_us, valid_until_us, "
        f"conflict_key, evidence_count, {_STATE}",
    ),
    "preferences": _keyed(
        "preferences",
        f"id, category, name, value, strength, standing, source_type, evidence_count, {_STATE}",
    ),
    "procedures": _keyed(
        "procedures",
        "id, name, trigger, steps, context, confidence, success_count, failure_count, partial_count, last_used_us, "
        f"last_outcome, {_STATE}",
    ),
    "relationships": _keyed(
        "relationships",
        "relationships.id, source.name AS source, relationships.type, target.name AS target, weight, confidence, "
        f"evidence_count, {_STATE}",
        "relationships JOIN entities AS source ON source.id = source_id "
        "JOIN entities AS target ON target.id = target_id",
    ),
    "documents": _documents,
    "observations": _keyed("observations", "event_id, session_id, text, token_count, occurred_at_us, status"),
    "questions": _keyed("questions", "event_id, text"),
    "dates": _keyed("date_mentions", "event_id, text, start_us, end_us"),
    "clusters": _clusters,
    "digests": _digests,
}
_JSON_COLUMNS = frozenset(("aliases", "metadata", "source_events", "steps", "chunks", "relations", "memory_ids"))

_FLAGS = frozenset(("pinned", "standing"))


def _item(rows: apsw.Cursor, row: tuple[Any, ...]) -> dict[str, Any]:
    """Return a row as the outside sees it: RFC 3339 times, JSON as JSON."""
    item: dict[str, Any] = {}
    for (column, *_), value in zip(rows.get_description(), row, strict=True):
        if column.endswith("_us"):
            item[column.removesuffix("_us")] = None if value is None else rfc3339(value)
        elif column in _JSON_COLUMNS:
            item[column] = None if value is None else orjson.loads(value)
        elif column in _FLAGS:
            item[column] = bool(value)
        else:
            item[column] = value
    return item


def _page(items: list[dict[str, Any]], limit: int, cursor: Callable[[dict[str, Any]], Any]) -> Page:
    return {"items": items, "next": str(cursor(items[-1])) if len(items) == limit else None}


def checked_limit(limit: int) -> int:
    """Return `limit`, or raise `InvalidInput`: a page has from 1 to 1,000 items."""
    if not 1 <= limit <= PAGE_ITEMS_MAX:
        raise InvalidInput(f"give a number from 1 to {PAGE_ITEMS_MAX:,}", field="limit")
    return limit


def _number(after: str) -> int:
    if not after:
        return 0
    if not after.isdecimal() or int(after) >= 1 << 36:
        raise InvalidInput("give what the previous page has as next: a whole number", field="after")
    return int(after)
