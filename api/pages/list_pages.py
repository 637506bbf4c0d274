"""List pages: the rows of a read model, the events and the namespaces, as pages of JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict, cast

import orjson

from recollect.api.as_of import AsOf
from recollect.api.knowledge_types import ForgottenItem
from recollect.api.result_types import MemoryItem, Page
from recollect.events.backends.log import EventLog
from recollect.events.envelope import Head, microseconds, rfc3339
from recollect.events.errors import InvalidInput, NotFound
from recollect.projections.queries.page_filters import FILTERS, Filter
from recollect.projections.queries.page_queries import KINDS, LISTS, Selection
from recollect.projections.queries.snapshot import Snapshot

#: Default number of items of a page.
PAGE_ITEMS = 100
#: Largest number of items of a page, so that a response stays small.
PAGE_ITEMS_MAX = 1_000


def list_events(log: EventLog, namespace: str, after: str, limit: int, until: int | None = None) -> Page[Any]:
    """Return a page of events with versions over `after`, up to `until` when it is given, in order."""
    start, count = _number(after), checked_limit(limit)
    if until is not None:
        count = min(count, until - start)
    events = log.read(namespace, after=start, limit=count) if count > 0 else []
    page = _page([event.as_json() for event in events], limit, lambda item: item["version"])
    # A page with much content is shorter.
    if 0 < len(events) < count and events[-1].version < log.head(namespace).version:
        page["next"] = str(events[-1].version)
    return page


def list_namespaces(log: EventLog, after: str, limit: int, patterns: Sequence[str] | None = None) -> Page[Any]:
    """Return a page of namespaces with names over `after`, by name, each with its head.

    Parameters:
        patterns: only these: a name, or the beginning of names and `*`; all namespaces when None.
    """
    heads = log.heads(after=after, limit=checked_limit(limit)) if patterns is None else []
    if patterns is not None:
        matching = {head.namespace: head for pattern in patterns for head in _matching(log, pattern, after, limit)}
        heads = [matching[name] for name in sorted(matching)][: checked_limit(limit)]
    items = [{"namespace": head.namespace, "version": head.version, "hash": head.hash.hex()} for head in heads]
    return _page(items, limit, lambda item: item["namespace"])


def _matching(log: EventLog, pattern: str, after: str, limit: int) -> Iterator[Head]:
    """Yield the heads of the first `limit` namespaces over `after` that a pattern matches; no others are read."""
    name = pattern.removesuffix("*")
    # The beginning may be a name itself, and names over it come after it.
    if name and name > after and (head := log.head(name)).version:
        yield head
    if name != pattern:
        for head in log.heads(after=max(after, name), limit=limit):
            if not head.namespace.startswith(name):
                return
            yield head


#: Filters of a list by name. A value, or several values to match any of; of `metadata` a mapping of these by name.
Filters = Mapping[str, Any]


class ListOptions(TypedDict, total=False):
    """The arguments of a list by name; `Recollect.list` says what each does."""

    after: str
    limit: int
    as_of: AsOf
    filters: Filters | None


def list_rows(snapshot: Snapshot, name: str, after: str, limit: int, filters: Filters | None = None) -> Page[Any]:
    """Return a page of the list `name`, one of `page_queries.LISTS`, with the rows that pass all `filters`.

    Raises:
        InvalidInput: there is no list or no filter of this name, or `after`, `limit` or the value of a filter is wrong.
    """
    if name not in LISTS:
        reason = f"no list is called {name!r}; give one of {', '.join(LISTS)}"
        types = "; tasks, decisions, problems and events are facts with the filter type, such as type=task"
        raise InvalidInput(f"{reason}{types}; the log itself is read by export and follow", field="name")
    limit = checked_limit(limit)
    definition = LISTS[name]
    selections = [selection for key, value in (filters or {}).items() for selection in _selections(name, key, value)]
    rows = snapshot.pages.rows(name, _cursor(name, after), limit=limit, selections=selections)
    following = str(rows[-1][definition.cursor]) if len(rows) == limit else None
    if definition.hides_cursor:
        for row in rows:
            del row[definition.cursor]
    return {"items": [_item(row) for row in rows], "next": following}


def forgotten_item(log: EventLog, namespace: str, row: Mapping[str, Any]) -> ForgottenItem:
    """Return a row of the list `forgotten` with the message that asked for it, and with the text in the log."""
    event, memory = log.find(namespace, row["event_id"]), log.find(namespace, row["id"])
    payload: dict[str, Any] = {} if memory is None or memory.is_erased else memory.data()
    return {
        "version": row["version"],
        "event_id": row["event_id"],
        "id": row["id"],
        "request_id": None if event is None else event.causation_id,
        "text": "\n".join(turn.get("text") or "" for turn in payload.get("turns") or [payload]) or None,
    }


def list_fact_history(snapshot: Snapshot, fact_id: str) -> Page[Any]:
    """Return the facts that held in turn with a fact, oldest first, at most `PAGE_ITEMS_MAX`.

    Raises:
        NotFound: there is no such fact.
    """
    rows = snapshot.facts.history(fact_id, PAGE_ITEMS_MAX)
    if not rows:
        raise NotFound(f"there is no fact {fact_id!r}; the list of facts has their ids", field="fact_id")
    return {"items": [_item(row) for row in rows], "next": None}


def list_preference_history(snapshot: Snapshot, preference_id: str) -> Page[Any]:
    """Return the values that held in turn of a preference, oldest first, at most `PAGE_ITEMS_MAX`.

    Raises:
        NotFound: there is no such preference.
    """
    rows = snapshot.facts.preference_history(preference_id, PAGE_ITEMS_MAX)
    if not rows:
        raise NotFound(
            f"there is no preference {preference_id!r}; the list of preferences has their ids", field="preference_id"
        )
    return {"items": [_item(row) for row in rows], "next": None}


def find_memory(snapshot: Snapshot, memory_id: str) -> MemoryItem | None:
    """Return the memory with an id of a list or of a retrieval's item as JSON, with its `kind`; None: there is none."""
    # A retrieval returns chunks of documents, whose id is that of the document, # and a number.
    document_id, _, number = memory_id.rpartition("#")
    for name, kind in KINDS.items():
        wanted = memory_id
        if kind == "entity":
            wanted = snapshot.pages.entity_name(memory_id) or memory_id
        row = snapshot.pages.row(name, wanted)
        if row is None and kind == "document" and number.isdecimal():
            row = snapshot.pages.row(name, document_id)
        if row is not None:
            if LISTS[name].hides_cursor:
                del row[LISTS[name].cursor]
            memory: Any = {"kind": kind, **_item(row)}
            return memory
    return None


def _selections(name: str, key: str, value: object) -> list[Selection]:
    """Return the selections of the filter `key` of the list `name`.

    Raises:
        InvalidInput: the list has no such filter, or the value is wrong.
    """
    chosen = FILTERS[name].get(key)
    if chosen is None:
        raise InvalidInput(
            f"{name} has no filter of this name; it has {', '.join(FILTERS[name])}, and after, limit, as_of", field=key
        )
    if chosen.kind != "metadata":
        return [Selection(key, tuple(_bound(chosen, key, member) for member in _values(value, key)))]
    if not isinstance(value, Mapping):
        raise InvalidInput('give an object with names and values, such as {"channel": "email"}', field=key)
    labels = cast(Mapping[object, object], value)
    return [_metadata_selection(key, str(label), values) for label, values in labels.items()]


def _metadata_selection(key: str, label: str, values: object) -> Selection:
    """Return the selection of the rows whose metadata has one of `values` under the name `label`."""
    field = f"{key}.{label}"
    return Selection(key, tuple(_metadata_value(value, field) for value in _values(values, field)), label)


def _values(value: object, field: str) -> Sequence[object]:
    """Return the values of a filter; raise `InvalidInput` when there is none."""
    values = list(cast(Sequence[object], value)) if isinstance(value, list | tuple | set | frozenset) else [value]
    if not 1 <= len(values) <= _VALUES_MAX:
        raise InvalidInput(f"give from 1 to {_VALUES_MAX} values", field=field)
    return values


#: Values of one filter: enough for all names of a group, and far below the placeholders of a statement.
_VALUES_MAX = 100


def _bound(chosen: Filter, field: str, value: object) -> str | int:
    """Return the value of a filter as it is bound; raise `InvalidInput` for a value that it cannot have."""
    if chosen.kind == "time":
        return _time_us(value, field)
    if chosen.kind == "flag":
        if str(value).lower() not in ("true", "false"):
            raise InvalidInput("give true or false", field=field)
        return int(str(value).lower() == "true")
    if not isinstance(value, str):
        raise InvalidInput("give text", field=field)
    if chosen.choices and value not in chosen.choices:
        raise InvalidInput(f"{value[:80]!r} is not one of {', '.join(chosen.choices)}", field=field)
    return value.casefold() if chosen.kind == "name" else value


def _time_us(value: object, field: str) -> int:
    """Return a time in microseconds; raise `InvalidInput` when it is not a valid time, or has no zone."""
    moment = value
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            moment = None
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise InvalidInput("give a time with its zone, such as 2026-11-20T09:00:00Z", field=field)
    return microseconds(moment)


def _metadata_value(value: object, field: str) -> str:
    """Return a value of metadata as JSON; raise `InvalidInput` for an object or a list, which cannot be compared."""
    if value is not None and not isinstance(value, str | int | float | bool):
        raise InvalidInput("give text, a number, true, false or null", field=field)
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError as error:
        raise InvalidInput(f"cannot be compared: {error}", field=field) from None


def _cursor(name: str, after: str) -> str | int:
    """Return the cursor `after` in the type of the list's cursor column."""
    if not LISTS[name].is_number:
        return after
    return _number(after)


#: Columns that hold JSON.
_JSON_COLUMNS = frozenset(
    (
        "aliases",
        "chunks",
        "details",
        "evidence",
        "memory_ids",
        "merged",
        "metadata",
        "properties",
        "relations",
        "source_events",
        "steps",
        "tags",
    )
)
#: Columns with the times of messages and sessions, which have a zone.
_ZONED_COLUMNS = frozenset(("occurred_at_us", "started_at_us", "ended_at_us", "last_at_us"))
#: Columns that hold 0 or 1.
_FLAG_COLUMNS = frozenset(("pinned", "standing"))


def _item(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row as JSON: times in RFC 3339, those of a conversation in its zone, flags as booleans, JSON decoded."""
    item: dict[str, Any] = {}
    utc_offset = row.pop("utc_offset", 0)
    for column, value in row.items():
        if column.endswith("_us"):
            offset = utc_offset if column in _ZONED_COLUMNS else 0
            item[column.removesuffix("_us")] = None if value is None else rfc3339(value, offset)
        elif column in _JSON_COLUMNS:
            item[column] = None if value is None else orjson.loads(value)
        elif column in _FLAG_COLUMNS:
            item[column] = bool(value)
        else:
            item[column] = value
    return item


def _page(items: list[dict[str, Any]], limit: int, cursor: Callable[[dict[str, Any]], Any]) -> Page[Any]:
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
