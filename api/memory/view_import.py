"""View import: MEMORY.md, USER.md and memory/*.md that `recollect export --format memory-md` wrote, and their edits.

Into another log or namespace each line comes as a new statement, with its dates, confidence and source. In the memory
that the files are from, an edited line corrects its memory, a line that is struck through ends it, an added line
states a new fact. A line that is missing changes nothing: a file that was cut or filtered must not make a memory forget
(`003`: files are views, and edits go through an import).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import PurePosixPath
from typing import Any

from recollect.api.exporters.exported_rows import is_valid
from recollect.api.exporters.markdown_text import reference
from recollect.api.exporters.memory_view import (
    FACTS_HEADING,
    MARK,
    PREFERENCES_HEADING,
    PROCEDURES_HEADING,
    STEP_SIGN,
    ViewHeader,
    ViewLine,
    view_header,
    view_lines,
)
from recollect.api.importers.imported_records import Failed, ImportReport, short_hash
from recollect.api.importers.imported_statements import (
    TASK_PREDICATE,
    imported_fact,
    is_keyed,
    keyed_statement,
    note,
    statement,
    task_fact,
)
from recollect.api.importers.source_files import SourceFiles
from recollect.api.memory.memory_edits import edit_drafts, end_event, update_events
from recollect.api.memory.recollect import Recollect
from recollect.api.pages.list_pages import PAGE_ITEMS_MAX
from recollect.events.envelope import EventDraft, now_us, rfc3339
from recollect.events.errors import InvalidInput
from recollect.events.intake.quarantine import imported_id, with_quarantine
from recollect.events.memory_kinds import MEMORY_KINDS

#: The headings below which a line is about the user.
_OF_USER = (None, FACTS_HEADING, PREFERENCES_HEADING, PROCEDURES_HEADING)
#: The name of the format.
FORMAT = "memory-md"
_KINDS = {"f": "fact", "p": "preference", "r": "relationship", "w": "procedure"}
_LISTS = {letter: kind.list_name for letter, name in _KINDS.items() for kind in MEMORY_KINDS if kind.name == name}
_VALUES = {"fact": "object", "preference": "value", "relationship": "target"}


def is_view(files: SourceFiles) -> bool:
    """Return whether files are an export of a memory as Markdown."""
    return any(MARK in files.peek(name)[:2_000] for name in files.names if name.endswith(".md"))


def import_view(memory: Recollect, files: SourceFiles, namespace: str | None, *, dry_run: bool = False) -> ImportReport:
    """Append the edits of the files; the same edits again append nothing.

    Parameters:
        namespace: that of the files when None.

    Raises:
        InvalidInput: the files are those of several namespaces. The errors of `append`.
    """
    texts = {
        name: files.read(name).decode(errors="replace") for name in files.names if PurePosixPath(name).suffix == ".md"
    }
    headers = [header for text in texts.values() if (header := view_header(text)) is not None]
    own = {header.namespace for header in headers}
    if len(own) != 1:
        raise InvalidInput(f"the files are of several namespaces: {', '.join(sorted(own))}", field="--namespace")
    newest = max(headers, key=lambda header: header.version)
    target = namespace or newest.namespace
    lines = {name: [*view_lines(text)] for name, text in texts.items() if view_header(text) is not None}
    edit = _Edit(memory, target, dry_run=dry_run)
    if target == newest.namespace:
        edit.is_own = _is_of_log(memory, newest) or any(map(edit.has, chain.from_iterable(lines.values())))
    if others := len(texts) - len(lines):
        edit.report.skip("file of another kind", others)
    for name, of_file in lines.items():
        for line in of_file:
            edit.add(name, line)
    if edit.is_own:
        edit.count_missing(newest.version, set(texts))
    return edit.report


def _is_of_log(memory: Recollect, header: ViewHeader) -> bool:
    """Return whether files are an export of this log; older ones without its id are, when it is as long as they are."""
    log = memory.parts.log
    if header.log_id is not None:
        return log.log_id.startswith(header.log_id)
    return log.head(header.namespace).version >= header.version


class _Edit:
    """The memories that lines refer to, and the report."""

    def __init__(self, memory: Recollect, namespace: str, *, dry_run: bool) -> None:
        self._memory = memory
        self._namespace = namespace
        #: Whether the lines are of memories of this namespace.
        self.is_own = False
        self._dry_run = dry_run
        self._now = rfc3339(now_us())
        self.report = ImportReport(format=FORMAT, is_dry_run=dry_run)
        self._rows: dict[tuple[str, str], dict[str, Any]] = {
            (kind, reference(kind, row["id"])): row | {"kind": _KINDS[kind]}
            for kind in _LISTS
            for row in self._items(_LISTS[kind])
        }
        self._references: set[tuple[str, str]] = set()

    def has(self, line: ViewLine) -> bool:
        """Return whether a line is of a memory of this namespace."""
        return (str(line.kind), line.reference) in self._rows

    def add(self, name: str, line: ViewLine) -> None:
        """Apply one line, or count why it changes nothing."""
        self.report.seen += 1
        where = f"{name}, line {line.number}"
        try:
            if line.kind is None:
                self._state(name, line)
            elif not self.is_own:
                self._bring(line)
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
        change = _steps(line) if row["kind"] == "procedure" else {_VALUES[row["kind"]]: line.text}
        self._apply(row, f"{line.reference}:{line.text}", lambda: update_events(row, change))

    def _shown(self, row: dict[str, Any]) -> str:
        """Return the key that a line shows for a memory."""
        if row["kind"] == "fact":
            return " ".join(str(row["predicate"]).split())
        if row["kind"] == "relationship":
            return " ".join(str(row["type"]).split())
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

    def _bring(self, line: ViewLine) -> None:
        """State what a line says that is of another memory."""
        if line.is_ended or not line.text or (line.kind == "e" and "occurred_at" not in line.values):
            self.report.skip("line without a text or a time, or struck through")
            return
        events = [{name: value for name, value in _EVENTS[str(line.kind)](line).items() if value is not None}]
        payload: dict[str, Any] = events[0]["payload"]
        events[0]["payload"] = {name: value for name, value in payload.items() if value is not None}
        id = imported_id(FORMAT, short_hash(self._namespace, "brought", line.reference, line.text))
        if line.values.get("pinned"):
            events.append({"type": "memory.pinned", "payload": {"memory_id": id}})
        self._append_once(id, events)

    def _state(self, name: str, line: ViewLine) -> None:
        """State what a line says that was added by hand."""
        if PurePosixPath(name).name not in ("MEMORY.md", "USER.md"):
            self.report.skip("line added to a daily note: append a message instead")
            return
        subject = _subject(line)
        fact = keyed_statement(line.text, subject) or statement(line.text, subject) or note(line.text, subject)
        if fact is None:
            raise InvalidInput("says nothing", field=name)
        event: dict[str, Any] = {"type": "fact.stated", "payload": fact}
        if line.heading == PREFERENCES_HEADING and is_keyed(line.text):
            key = str(fact["predicate"]).removesuffix(" is")
            event = {"type": "preference.stated", "payload": {"key": key, "value": fact["object"]}}
        id = imported_id(FORMAT, short_hash(self._namespace, "added", *map(str, event["payload"].values())))
        self._append_once(id, [event])

    def _append_once(self, id: str, events: list[dict[str, Any]]) -> None:
        """Append events whose first one has an id, unless it is in the log."""
        if self._memory.parts.log.find(self._namespace, id) is not None:
            self.report.duplicates += 1
            return
        first, *others = events
        self._append(with_quarantine(edit_drafts([first | {"id": id}, *others]), imported=True))

    def _append(self, drafts: list[EventDraft]) -> None:
        if not self._dry_run:
            self._memory.append_drafts(self._namespace, drafts)
        for draft in drafts:
            self.report.add(self._namespace, draft)

    def _items(self, name: str) -> Iterator[dict[str, Any]]:
        """Yield the items of all pages of a list."""
        after: Any = ""
        while after is not None:
            page = self._memory.list(self._namespace, name, after=str(after), limit=PAGE_ITEMS_MAX)
            yield from page["items"]
            after = page["next"]


def _steps(line: ViewLine) -> dict[str, Any]:
    """Return the trigger and the steps of the line of a procedure.

    Raises:
        InvalidInput: it has no step.
    """
    trigger, *steps = [part.strip() for part in line.text.split(STEP_SIGN.strip())]
    if not steps or not all((trigger, *steps)):
        raise InvalidInput(f"give a trigger and steps with{STEP_SIGN}between them", field="line")
    return {"trigger": trigger, "steps": steps}


def _subject(line: ViewLine) -> str:
    """Return whom a line of a fact is about: its heading, or the user."""
    return "user" if line.heading in _OF_USER else str(line.heading)


def _fact_event(line: ViewLine) -> dict[str, Any]:
    """Return the event of a fact of another memory; without values, it is of an older release, and has no date."""
    values = line.values
    fact = {"subject": _subject(line), "predicate": line.key or "note", "object": line.text}
    if not values:
        return {"type": "fact.stated", "payload": imported_fact(fact)}
    if values.get("type") == "task" and line.key == TASK_PREDICATE:
        # The file has no statement, by whose words a task of a note is found.
        fact = task_fact(line.text, fact["subject"])
    names = ("type", "layer", "source_type", "valid_from", "valid_until")
    given = {name: values.get(name) for name in names}
    fact |= given | {"confidence": _number(values.get("confidence")), "stated_at": values.get("created_at")}
    return {"type": "fact.stated", "payload": fact}


def _preference_event(line: ViewLine) -> dict[str, Any]:
    """Return the event of a preference of another memory. The user decides what is in every prompt."""
    values, key = line.values, line.key or "preference"
    whose = int(values["whose"]) if values.get("whose", "").isdecimal() else 0
    payload: dict[str, Any] = {
        "subject": key[:whose] or None,
        "key": key[whose:].removeprefix(",").strip(),
        "value": line.text,
        "category": values.get("category"),
        "strength": _number(values.get("strength")),
        "source_type": values.get("source_type", "inferred"),
        "stated_at": values.get("created_at"),
    }
    return {"type": "preference.stated", "payload": payload}


def _episode_event(line: ViewLine) -> dict[str, Any]:
    """Return an observation of what was said: it is searched, and nothing is derived from it a second time."""
    said = line.text[len("HH:MM ") :]
    if line.values.get("type") == "observation":
        said = said.partition(": ")[2] or said
    return {"type": "observation.recorded", "occurred_at": line.values.get("occurred_at"), "payload": {"text": said}}


def _relationship_event(line: ViewLine) -> dict[str, Any]:
    """Return the event of a relationship of another memory."""
    confidence, stated_at = _number(line.values.get("confidence")), line.values.get("created_at")
    ends = {"source": _subject(line), "type": line.key or "related to", "target": line.text}
    return {"type": "relationship.stated", "payload": ends | {"confidence": confidence, "stated_at": stated_at}}


def _procedure_event(line: ViewLine) -> dict[str, Any]:
    """Return the event of a procedure of another memory."""
    payload = {"name": line.key or "procedure", "confidence": _number(line.values.get("confidence"))} | _steps(line)
    return {"type": "procedure.recorded", "payload": payload}


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


_EVENTS: dict[str, Callable[[ViewLine], dict[str, Any]]] = {
    "f": _fact_event,
    "p": _preference_event,
    "e": _episode_event,
    "r": _relationship_event,
    "w": _procedure_event,
}
