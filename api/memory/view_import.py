"""View import: the edits of MEMORY.md, USER.md and memory/*.md that `recollect export --format memory-md` wrote.

An edited line corrects its memory, a line that is struck through ends it, a line that was added states a new fact. A
line that is missing changes nothing: a file that was cut or filtered must not make a memory forget (`003`: files are
views, and edits go through an import).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Any

from recollect.api.exporters.exported_rows import is_valid
from recollect.api.exporters.markdown_text import reference
from recollect.api.exporters.memory_view import (
    FACTS_HEADING,
    MARK,
    PREFERENCES_HEADING,
    ViewLine,
    view_header,
    view_lines,
)
from recollect.api.importers.records import Failed, ImportReport, short_hash
from recollect.api.importers.source_files import SourceFiles
from recollect.api.importers.statements import is_keyed, statement
from recollect.api.memory.memory_edits import edit_drafts, end_event, update_events
from recollect.api.memory.recollect import Recollect
from recollect.api.pages.list_pages import PAGE_ITEMS_MAX
from recollect.events.envelope import EventDraft, now_us, rfc3339
from recollect.events.errors import InvalidInput
from recollect.events.intake.quarantine import imported_id, with_quarantine

#: The name of the format.
FORMAT = "memory-md"
_KINDS = {"f": "fact", "p": "preference"}
_LISTS = {"f": "facts", "p": "preferences"}
_VALUES = {"fact": "object", "preference": "value"}


def is_view(files: SourceFiles) -> bool:
    """Return whether files are an export of a memory as Markdown."""
    return any(MARK in files.peek(name)[:2_000] for name in files.names if name.endswith(".md"))


def import_view(memory: Recollect, files: SourceFiles, namespace: str | None, *, dry_run: bool = False) -> ImportReport:
    """Append the edits of the files; the same edits again append nothing.

    Parameters:
        namespace: that of the files when None.

    Raises:
        InvalidInput: the files are those of another namespace. The errors of `append`.
    """
    texts = {
        name: files.read(name).decode(errors="replace") for name in files.names if PurePosixPath(name).suffix == ".md"
    }
    headers = {header for text in texts.values() if (header := view_header(text)) is not None}
    own = {header[0] for header in headers}
    if len(own) != 1 or namespace not in (None, *own):
        raise InvalidInput(
            f"the files are of the namespace {', '.join(sorted(own)) or 'of no export'}; give that one, or import them "
            "with --format kira as new facts",
            field="--namespace",
        )
    edit = _Edit(memory, own.pop(), dry_run=dry_run)
    for name, text in texts.items():
        if view_header(text) is None:
            edit.report.skip("file of another kind")
            continue
        for line in view_lines(text):
            edit.add(name, line)
    edit.count_missing(max(version for _, version in headers), set(texts))
    return edit.report


class _Edit:
    """The memories that lines refer to, and the report."""

    def __init__(self, memory: Recollect, namespace: str, *, dry_run: bool) -> None:
        self._memory = memory
        self._namespace = namespace
        self._dry_run = dry_run
        self._now = rfc3339(now_us())
        self.report = ImportReport(format=FORMAT, is_dry_run=dry_run)
        self._rows: dict[tuple[str, str], dict[str, Any]] = {
            (kind, reference(kind, row["id"])): row | {"kind": _KINDS[kind]}
            for kind in _LISTS
            for row in self._items(_LISTS[kind])
        }
        self._references: set[tuple[str, str]] = set()

    def add(self, name: str, line: ViewLine) -> None:
        """Apply one line, or count why it changes nothing."""
        self.report.seen += 1
        where = f"{name}, line {line.number}"
        try:
            if line.kind is None:
                self._state(name, line)
            elif line.kind == "e":
                self._episode(line)
            else:
                self._references.add((line.kind, line.reference))
                self._change(where, line)
        except InvalidInput as error:
            self.report.fail(Failed(where=where, reason=error.reason))

    def count_missing(self, version: int, names: set[str]) -> None:
        """Count the memories that the export had and the files have no line of."""
        if {"MEMORY.md", "USER.md"} <= {PurePosixPath(name).name for name in names}:
            missing = sum(
                row["version"] <= version and is_valid(row, self._now) and key not in self._references
                for key, row in self._rows.items()
            )
            if missing:
                self.report.skip("line missing: its memory is left as it is; strike a line through to end it", missing)

    def _change(self, where: str, line: ViewLine) -> None:
        """Correct or end the memory of a generated line."""
        if not line.is_edited and not line.is_ended:
            self.report.duplicates += 1
            return
        row = self._rows.get((str(line.kind), line.reference))
        if row is None:
            raise InvalidInput("its memory was forgotten, or the reference was changed", field=where)
        if line.is_ended:
            self._apply(row, f"{line.reference}:end", lambda: [end_event(row, None, "struck through in an export")])
            return
        old = self._shown(row)
        if line.key is None or line.key != old:
            raise InvalidInput(
                f"only what follows **{old}:** can be edited; strike it through and add a line", field=where
            )
        if not line.text:
            raise InvalidInput("the text is empty; strike the line through to end its memory", field=where)
        change = {_VALUES[row["kind"]]: line.text}
        self._apply(row, f"{line.reference}:{line.text}", lambda: update_events(row, change))

    def _shown(self, row: dict[str, Any]) -> str:
        """Return the key that a line shows for a memory."""
        if row["kind"] == "fact":
            return " ".join(str(row["predicate"]).split())
        whose = f"{row['subject']}, " if row.get("subject") not in (None, "", "user") else ""
        return " ".join(f"{whose}{row['name']}".split())

    def _apply(self, row: dict[str, Any], key: str, events_of: Callable[[], list[dict[str, Any]]]) -> None:
        """Append the events of an edit, unless it was applied before."""
        id = imported_id(FORMAT, short_hash(self._namespace, key))
        if self._memory.parts.log.find(self._namespace, id) is not None:
            self.report.duplicates += 1
        elif row["status"] not in ("active", "stale"):
            raise InvalidInput(f"its memory is {row['status']} meanwhile; export again and edit that", field="line")
        else:
            *others, last = events_of()
            self._append(edit_drafts([*others, last | {"id": id}]))

    def _episode(self, line: ViewLine) -> None:
        if line.is_edited or line.is_ended:
            self.report.skip("line of a daily note edited: correct the message with `recollect update`")
        else:
            self.report.duplicates += 1

    def _state(self, name: str, line: ViewLine) -> None:
        """State what a line says that was added by hand."""
        if PurePosixPath(name).name not in ("MEMORY.md", "USER.md"):
            self.report.skip("line added to a daily note: append a message instead")
            return
        heading = line.heading if line.heading not in (None, FACTS_HEADING, PREFERENCES_HEADING) else None
        fact = statement(line.text, heading or "user")
        if fact is None:
            raise InvalidInput("says nothing", field=name)
        event: dict[str, Any] = {"type": "fact.stated", "payload": fact}
        if line.heading == PREFERENCES_HEADING and is_keyed(line.text):
            key = str(fact["predicate"]).removesuffix(" is")
            event = {"type": "preference.stated", "payload": {"key": key, "value": fact["object"]}}
        id = imported_id(FORMAT, short_hash(self._namespace, "added", *map(str, event["payload"].values())))
        if self._memory.parts.log.find(self._namespace, id) is not None:
            self.report.duplicates += 1
            return
        self._append(with_quarantine(edit_drafts([event | {"id": id}]), imported=True))

    def _append(self, drafts: list[EventDraft]) -> None:
        if not self._dry_run:
            self._memory.append_drafts(self._namespace, drafts)
        for draft in drafts:
            if draft.type == "memory.quarantined":
                self.report.quarantined += 1
            else:
                self.report.imported[draft.type] = self.report.imported.get(draft.type, 0) + 1
        self.report.namespaces.add(self._namespace)

    def _items(self, name: str) -> Iterator[dict[str, Any]]:
        """Yield the items of all pages of a list."""
        after: Any = ""
        while after is not None:
            page = self._memory.list(self._namespace, name, after=str(after), limit=PAGE_ITEMS_MAX)
            yield from page["items"]
            after = page["next"]
