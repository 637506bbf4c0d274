"""Exported rows: the lists of a namespace that an exporter writes, read page by page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from recollect.events.envelope import parse_rfc3339
from recollect.events.memory_kinds import MEMORY_KINDS

Row = dict[str, Any]
#: Returns a page of a list: its items, and what `after` takes for the next page.
ReadPage = Callable[[str, str], Mapping[str, Any]]

_LISTS = tuple(kind.list_name for kind in MEMORY_KINDS if kind.layer is not None)
#: Statuses of what still counts as remembered.
_CURRENT = frozenset({"active", "stale"})


class ExportedRows(Struct, frozen=True, kw_only=True):
    """The memories of a namespace."""

    namespace: str
    #: The beginning of the id of the log.
    log_id: str
    #: The version that was read, at least.
    version: int
    #: The time of the export, RFC 3339.
    exported_at: str
    #: The items of each list of memories that a retrieval returns.
    lists: Mapping[str, list[Row]]

    def speakers(self) -> frozenset[str]:
        """Return the names, case folded, of those who speak as users; `user` for one without a name."""
        named = {
            str(row["speaker"]).casefold() for row in self.lists["episodes"] if row["role"] == "user" and row["speaker"]
        }
        return frozenset({"user", *named})

    def days(self) -> list[tuple[str, list[Row]]]:
        """Return the current episodes by day, each in the order of time."""
        by_day: defaultdict[str, list[Row]] = defaultdict(list)
        for row in self.lists["episodes"]:
            if is_current(row) and row["text"]:
                by_day[str(row["occurred_at"])[:10]].append(row)
        return [
            (day, sorted(by_day[day], key=lambda row: (parse_rfc3339(str(row["occurred_at"])), row["version"])))
            for day in sorted(by_day)
        ]


def speaker_of(row: Row) -> str:
    """Return who said an episode: a name, a role, or the type of the event."""
    return str(row["speaker"] or row["role"] or row["type"] or "note")


def is_current(row: Row) -> bool:
    """Return whether a memory counts as remembered: it is not superseded, ended, invalidated or held back."""
    return row["status"] in _CURRENT


def is_valid(row: Row, now: str) -> bool:
    """Return whether a fact or a preference is current and has not ended before `now`, RFC 3339."""
    until = row.get("valid_until")
    return is_current(row) and (until is None or str(until) > now)


def read_rows(read_page: ReadPage, namespace: str, *, log_id: str, version: int, exported_at: str) -> ExportedRows:
    """Return the memories of a namespace."""
    lists: dict[str, list[Row]] = {name: [*_items(read_page, name)] for name in _LISTS}
    return ExportedRows(namespace=namespace, log_id=log_id, version=version, exported_at=exported_at, lists=lists)


def _items(read_page: ReadPage, name: str) -> Iterator[Row]:
    """Yield the items of all pages of a list."""
    after: Any = ""
    while after is not None:
        page = read_page(name, str(after))
        yield from page["items"]
        after = page["next"]
