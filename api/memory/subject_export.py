"""Subject export: everything that a namespace holds about a person, readable and complete."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from typing import Any, cast

import orjson

from recollect.api.pages.list_pages import PAGE_ITEMS_MAX
from recollect.api.result_types import EventItem, Page, SubjectExport, Trace, TraceSummary
from recollect.events.envelope import now_us, rfc3339
from recollect.events.json_texts import json_texts
from recollect.events.memory_kinds import MEMORY_KINDS

#: The lists of an export, after the events.
EXPORTED_LISTS = ("sessions", *(kind.list_name for kind in reversed(MEMORY_KINDS)))
#: Fields of a row or a payload that name the speaker, or the person spoken of.
_PERSON_FIELDS = ("name", "speaker", "actor", "subject", "user_id")
#: Fields that a line of Markdown does not repeat.
_HIDDEN_FIELDS = frozenset(
    "id hash namespace version schema_version occurred_at recorded_at updated_at payload".split()
)
#: Those of a trace that Markdown has, with the ids of what was shown. How it was ranked is in the JSON.
_TRACE_FIELDS = ("trace_id", "at", "query", "context")
_ROLE_NAMES = frozenset({"user", "assistant", "system"})


class SubjectExporting(ABC):
    """Exports everything about a subject."""

    @abstractmethod
    def list(self, namespace: str, name: str, *, after: str = "", limit: int = PAGE_ITEMS_MAX) -> Page:
        """Return a page of a list."""

    @abstractmethod
    def events(self, namespace: str, *, after: int = 0, limit: int = PAGE_ITEMS_MAX) -> Page[EventItem]:
        """Return a page of the log."""

    @abstractmethod
    def traces(self, namespace: str, *, after: str = "", limit: int = PAGE_ITEMS_MAX) -> Page[TraceSummary]:
        """Return a page of the latest retrievals."""

    @abstractmethod
    def trace(self, namespace: str, trace_id: str) -> Trace:
        """Return the trace of a retrieval."""

    def export_subject(self, namespace: str, subject: str | None = None) -> SubjectExport:
        """Return everything about a subject as JSON: events, memories of every kind, sessions and traces.

        What a subject said, what names the subject by name or alias, and what was derived from either. Messages that
        compaction took out of the read model are included, since the log has them. Each memory has its id, by which
        `update` corrects and `forget` forgets it. Of a retrieval that the subject asked for, that names the subject or
        showed such a memory, and of an extraction from several messages, the parts about others are left out.

        Parameters:
            subject: a name as messages and facts have it; everything of the namespace when None.
        """
        lists = {
            name: [*_pages(lambda after, name=name: self._page(namespace, name, after))] for name in EXPORTED_LISTS
        }
        events = [*_pages(lambda after: self.events(namespace, after=int(after or 0), limit=PAGE_ITEMS_MAX))]
        traces = [
            self.trace(namespace, item["trace_id"])
            for item in _pages(lambda after: self.traces(namespace, after=after, limit=PAGE_ITEMS_MAX))
        ]
        names = () if subject is None else _names(subject, lists["entities"])
        if subject is not None:
            about = _About(names, lists["sessions"])
            events = [about.own_part(event) for event in events if about.event(event)]
            lists = {name: [row for row in rows if about.row(row)] for name, rows in lists.items()}
            traces = [own for trace in traces if (own := about.own_trace(trace)) is not None]
        exported: dict[str, Any] = {
            "namespace": namespace,
            "subject": subject,
            "names": sorted(names),
            "exported_at": rfc3339(now_us()),
            "counts": {
                "events": len(events),
                **{name: len(rows) for name, rows in lists.items()},
                "traces": len(traces),
            },
            "events": events,
            **lists,
            "traces": traces,
        }
        return cast("SubjectExport", exported)

    def _page(self, namespace: str, name: str, after: str) -> Page:
        """Return a page of a list, as long as pages can be."""
        return self.list(namespace, name, after=after, limit=PAGE_ITEMS_MAX)


def _names_pattern(names: Collection[str]) -> re.Pattern[str]:
    """Return the pattern that finds any of the names as a whole word."""
    longest_first = sorted(names, key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)", re.IGNORECASE)


class _About:
    """Decides what is about a subject. Ids of what is about the subject are remembered, for what is derived from it."""

    def __init__(self, names: Collection[str], sessions: list[dict[str, Any]]) -> None:
        self._folded = frozenset(name.casefold() for name in names)
        self._pattern = _names_pattern(names)
        self._sessions = {row["id"] for row in sessions if str(row.get("user_id")).casefold() in self._folded}
        self._ids: set[str] = set()
        self._versions: set[int] = set()

    def event(self, event: dict[str, Any]) -> bool:
        """Return whether the subject caused an event, is named by it, or it is about an event of the subject."""
        payload: dict[str, Any] = event["payload"]
        ids = [payload.get("memory_id"), event["causation_id"], *payload.get("source_events", ())]
        is_about = (
            self._is_person(event)
            or self._is_person(payload)
            or (event["session_id"] in self._sessions and payload.get("role") == "user")
            or self._is_named(payload)
            or not self._ids.isdisjoint(ids)
        )
        if is_about:
            self._ids.add(event["id"])
            self._versions.add(event["version"])
        return is_about

    def row(self, row: dict[str, Any]) -> bool:
        """Return whether a row of a list is about the subject, or derived from what is."""
        is_about = row.get("id") in self._ids or row.get("id") in self._sessions or self._is_own(row)
        if is_about and isinstance(row.get("id"), str):
            self._ids.add(row["id"])
        return is_about

    def own_part(self, event: EventItem) -> EventItem:
        """Return a derived event without what it has of the messages of others."""
        payload = event["payload"]
        if "source_events" not in payload:
            return event
        own = {name: self._own_elements(value) for name, value in payload.items()}
        return cast("EventItem", {**event, "payload": own})

    def _own_elements(self, value: Any) -> Any:
        """Return a list of objects without those about others; another value as it is."""
        if not isinstance(value, list):
            return value
        return [
            element for element in cast("list[Any]", value) if not isinstance(element, dict) or self._is_own(element)
        ]

    def own_trace(self, trace: Trace) -> Trace | None:
        """Return the part of a retrieval that is about the subject; None when none of it is.

        It is about the subject when the subject asked, or it names the subject, or it showed such a memory. A memory
        that was only considered was not shown. A context in which others have lines is left out.
        """
        request = trace["request"]
        has_asked = self._is_person({"speaker": request.get("speaker")}) or request.get("session_id") in self._sessions
        is_own_query = has_asked or self._is_named(trace["query"])
        items = [item for item in trace["items"] if item["id"] in self._ids]
        if not is_own_query and not items:
            return None
        is_own_context = len(items) == len(trace["items"])
        own = {
            "query": trace["query"] if is_own_query else "",
            "understood": trace["understood"] if is_own_query else [],
            "request": request if has_asked else {},
            "context": trace["context"] if is_own_context else "",
            "answer": trace["answer"] if is_own_context else {},
            "items": items,
            "lines": [line for line in trace["lines"] if line.get("id") in self._ids],
            "sources": {id: sources for id, sources in trace["sources"].items() if id in self._ids},
            "candidates": [row for row in trace["candidates"] if row.get("version") in self._versions],
            "dropped": [],
        }
        return cast("Trace", {**trace, **own})

    def _is_own(self, fields: Any) -> bool:
        """Return whether an object names the subject, or was derived from what is about the subject."""
        sources = fields.get("source_events") or ()
        return self._is_person(fields) or self._is_named(fields) or not self._ids.isdisjoint(sources)

    def _is_person(self, fields: dict[str, Any]) -> bool:
        """Return whether a field names the subject as the speaker, or as the person spoken of."""
        return any(str(fields.get(field)).casefold() in self._folded for field in _PERSON_FIELDS)

    def _is_named(self, value: Any) -> bool:
        """Return whether a text names the subject."""
        return any(self._pattern.search(text) is not None for text in json_texts(value))


def as_markdown(exported: SubjectExport) -> str:
    """Return an export as a text that people read; a line ends with the id by which it is corrected or forgotten."""
    namespace, subject = exported["namespace"], exported["subject"]
    about = f"about {subject} in {namespace}" if subject else f"in {namespace}"
    lines = [
        f"# Everything {about}",
        "",
        f"Exported at {exported['exported_at']}. To correct a memory: `recollect update {namespace} ID TEXT`; "
        f"to forget one: `recollect forget {namespace} ID`.",
    ]
    for name in ("events", *EXPORTED_LISTS, "traces"):
        rows: list[dict[str, Any]] = cast("Mapping[str, Any]", exported)[name]
        if name == "traces":
            rows = [
                {field: trace.get(field) for field in _TRACE_FIELDS}
                | {"shown": [item["id"] for item in trace["items"]]}
                for trace in rows
            ]
        if rows:
            lines += ["", f"## {name.capitalize()} ({len(rows)})", "", *map(_line, rows)]
    return "\n".join(lines) + "\n"


def _line(row: dict[str, Any]) -> str:
    """Return an event, a memory or a trace as a line."""
    times = ("occurred_at", "updated_at", "recorded_at", "at")
    moment = next((_minute(row[field]) for field in times if row.get(field)), "")
    fields: dict[str, Any] = row["payload"] if isinstance(row.get("payload"), dict) else row
    said = ", ".join(
        f"{name}: {value if isinstance(value, str) else orjson.dumps(value).decode()}"
        for name, value in fields.items()
        if name not in _HIDDEN_FIELDS and value not in (None, [], {}, "", False)
    )
    id = row.get("id") or row.get("trace_id") or row.get("name")
    kind = f"{row['type']}: " if "payload" in row else ""
    return f"- [{moment}] {kind}{' '.join(said.split())} (id: {id})"


def _minute(time: str) -> str:
    """Return a time of a row to the minute, with its offset."""
    return datetime.fromisoformat(time).isoformat(timespec="minutes").replace("+00:00", "Z")


def _names(subject: str, entities: list[dict[str, Any]]) -> set[str]:
    """Return the names of a subject: the given one, and those of the entity that has it as a name or alias."""
    names = {subject}
    for entity in entities:
        own = {entity["name"], *entity.get("aliases", ())}
        if subject.casefold() in {name.casefold() for name in own}:
            names |= own
    return {name for name in names if name.casefold() not in _ROLE_NAMES or name == subject}


def _pages(page: Callable[[str], Page[Any]]) -> Iterator[Any]:
    """Yield the items of all pages."""
    after: Any = ""
    while after is not None:
        content = page(str(after))
        yield from content["items"]
        after = content["next"]
