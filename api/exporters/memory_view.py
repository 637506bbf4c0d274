"""Memory view: MEMORY.md, USER.md and memory/*.md as Kira keeps them, generated from a namespace, and their lines.

Each generated line ends with a comment that has a reference to its memory and a hash of its text, so that an import
knows which lines were edited, and what another memory needs to have it as well: dates, confidence, source. All of it is
words of the catalogue, digits and dates, so no stored text can end the comment.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from msgspec import Struct, field

from recollect.api.exporters.exported_rows import ExportedRows, Row, is_current, is_valid, speaker_of
from recollect.api.exporters.markdown_text import escaped, escaped_key, one_line, reference, unescaped
from recollect.events.late_pattern import late_pattern
from recollect.projections.projector.predicates import canonical, has_one_value

#: The kind of a line: a fact, a preference, an episode, a relationship, a procedure.
LineKind = Literal["f", "p", "e", "r", "w"]
_HEADER = late_pattern(
    r"^<!-- recollect memory-md namespace=(?P<namespace>[\w.:@-]{1,200})(?: log=(?P<log>[\w-]{1,64}))?"
    r" version=(?P<version>\d{1,12}) "
)
_LINE = late_pattern(
    r"^\s{0,3}[-*] (?P<text>.*?)\s{0,4}"
    r"<!-- recollect:(?P<kind>[fperw]):(?P<ref>[0-9a-f]{16}):(?P<hash>[0-9a-f]{8})"
    r"(?P<values>(?: [a-z_]{1,20}=[\w.:+-]{1,40}){0,12}) -->\s*$"
)
_KEYED = late_pattern(r"^\*\*(?P<key>(?:[^*\\]|\\.)*?):\*\*(?:\s+(?P<value>.*))?$")
_ENDED = late_pattern(r"^~~(?P<text>.*)~~$")
_HEADING = late_pattern(r"^##\s{1,4}(?P<title>\S.*)$")
#: The mark by which an export of this kind is recognised.
MARK = b"<!-- recollect memory-md "
#: Characters of the log's id in the header.
LOG_ID_CHARS = 12
#: The fields of a memory that its comment has, by the kind of the line; those without a value are left out.
_VALUES: Mapping[LineKind, tuple[str, ...]] = {
    "f": ("type", "layer", "source_type", "confidence", "created_at", "valid_from", "valid_until", "pinned"),
    "p": ("category", "source_type", "strength", "created_at", "pinned"),
    "e": ("occurred_at", "type", "pinned"),
    "r": ("confidence", "created_at", "pinned"),
    "w": ("confidence", "pinned"),
}
_VALUE = late_pattern(r"[\w.:+-]{1,40}")
#: Headings of USER.md, and of the procedures in MEMORY.md.
FACTS_HEADING, PREFERENCES_HEADING, PROCEDURES_HEADING = "Facts", "Preferences", "Procedures"
#: Between the trigger and the steps of a procedure.
STEP_SIGN = " → "


class ViewLine(Struct, frozen=True, kw_only=True):
    """A line of a view."""

    #: The number of the line in its file, from 1.
    number: int
    #: The heading above the line.
    heading: str | None
    #: The text that the line shows, without bullet and comment; of a line with a key, the value.
    text: str
    key: str | None = None
    #: None: the line was added by hand.
    kind: LineKind | None = None
    reference: str = ""
    is_edited: bool = False
    #: Whether the line is struck through.
    is_ended: bool = False
    #: What the comment says of the memory, by name.
    values: Mapping[str, str] = field(default_factory=dict[str, str])


class ViewHeader(Struct, frozen=True, kw_only=True):
    """The comment at the beginning of a generated file."""

    namespace: str
    version: int
    #: The beginning of the id of the log; None: an older release wrote the file.
    log_id: str | None


def render_view(rows: ExportedRows) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each file."""
    speakers = rows.speakers()
    facts = [row for row in rows.lists["facts"] if is_valid(row, rows.exported_at)]
    profile = [row for row in facts if str(row["subject"]).casefold() in speakers and _is_attribute(row)]
    yield "USER.md", _user_file(rows, profile)
    of_profile = {row["id"] for row in profile}
    yield "MEMORY.md", _memory_file(rows, [row for row in facts if row["id"] not in of_profile])
    for day, episodes in rows.days():
        lines = [f"# {day}", _header(rows), "", *map(_episode_line, episodes)]
        yield f"memory/{day}.md", "\n".join(lines) + "\n"


def _user_file(rows: ExportedRows, facts: list[Row]) -> str:
    preferences = [row for row in rows.lists["preferences"] if is_valid(row, rows.exported_at)]
    of_user = [row for row in facts if row["subject"] == "user"]
    lines = ["# USER.md", _header(rows), "", f"## {FACTS_HEADING}", "", *map(_fact_line, of_user)]
    lines += _by_subject(_fact_lines(row for row in facts if row["subject"] != "user"))
    lines += ["", f"## {PREFERENCES_HEADING}", "", *map(_preference_line, preferences)]
    return "\n".join(lines) + "\n"


def _memory_file(rows: ExportedRows, facts: list[Row]) -> str:
    relations = [row for row in rows.lists["relationships"] if is_current(row)]
    procedures = [row for row in rows.lists["procedures"] if is_current(row)]
    lines = ["# MEMORY.md", _header(rows)]
    if rows.lists["documents"]:
        missing = f"the texts of {len(rows.lists['documents'])} documents, which the formats events and okf have"
        lines += ["", f"Not in these files: {missing}."]
    lines += ["", f"## {PROCEDURES_HEADING}", "", *map(_procedure_line, procedures)] if procedures else []
    # The subjects come last: a line that is added at the end is about one.
    lines += _by_subject([*_fact_lines(facts), *((row["source"], _relationship_line(row)) for row in relations)])
    return "\n".join(lines) + "\n"


def _fact_lines(facts: Iterable[Row]) -> list[tuple[str, str]]:
    """Return the lines of facts, each with its subject."""
    return [(row["subject"], _fact_line(row)) for row in facts]


def _by_subject(lines_of: list[tuple[str, str]]) -> list[str]:
    """Return lines below headings of their subjects."""
    by_subject: defaultdict[str, list[str]] = defaultdict(list)
    for subject, line in lines_of:
        by_subject[subject].append(line)
    lines: list[str] = []
    for subject, of_subject in sorted(by_subject.items()):
        lines += ["", f"## {escaped(subject) or 'Unnamed'}", "", *of_subject]
    return lines


def _is_attribute(row: Row) -> bool:
    """Return whether a fact is an attribute of a person, such as a name or a home, which has one value at a time."""
    return has_one_value(canonical(str(row["predicate"])))


def _header(rows: ExportedRows) -> str:
    return (
        f"<!-- recollect memory-md namespace={rows.namespace} log={rows.log_id} version={rows.version} "
        "Generated. Edit what follows a key to correct it, strike a line through to end it, add lines; then: "
        f"recollect import FOLDER --namespace {rows.namespace} -->"
    )


def _fact_line(row: Row) -> str:
    return _line("f", row, f"**{escaped_key(row['predicate'])}:** {escaped(row['object'])}")


def _preference_line(row: Row) -> str:
    whose = f"{row['subject']}, " if row.get("subject") not in (None, "", "user") else ""
    text = f"**{escaped_key(whose + str(row['name']))}:** {escaped(row['value'])}"
    return _line("p", row, text, f" whose={len(one_line(whose)) - 1}" if whose else "")


def _relationship_line(row: Row) -> str:
    return _line("r", row, f"**{escaped_key(row['type'])}:** {escaped(row['target'])}")


def _procedure_line(row: Row) -> str:
    text = STEP_SIGN.join([row["trigger"], *row["steps"]])
    return _line("w", row, f"**{escaped_key(row['name'])}:** {escaped(text)}")


def _episode_line(row: Row) -> str:
    said = f"{str(row['occurred_at'])[11:16]} {escaped(speaker_of(row))}: {escaped(row['text'])}"
    return _line("e", row, said)


def _line(kind: LineKind, row: Row, text: str, more: str = "") -> str:
    """Return a line with its reference, the hash of what an import reads in it, and the values of its memory."""
    given = {name: "1" if row.get(name) is True else str(row.get(name) or "") for name in _VALUES[kind]}
    values = "".join(f" {name}={value}" for name, value in given.items() if _VALUE.fullmatch(value))
    return f"- {text} <!-- recollect:{kind}:{reference(kind, row['id'])}:{_hash(text)}{values}{more} -->"


def _hash(text: str) -> str:
    return reference(one_line(text))[:8]


def view_header(text: str) -> ViewHeader | None:
    """Return the header of a generated file; None for another file."""
    for line in text.splitlines()[:5]:
        match = _HEADER.match(line)
        if match is not None:
            return ViewHeader(namespace=match["namespace"], version=int(match["version"]), log_id=match["log"])
    return None


def view_lines(text: str) -> Iterator[ViewLine]:
    """Yield the generated lines of a file, and the bullets that were added by hand."""
    heading: str | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        title = _HEADING.match(line)
        if title is not None:
            heading = unescaped(title["title"].strip())
            continue
        generated = _LINE.match(line)
        if generated is not None:
            yield _generated(number, heading, generated)
        elif line.lstrip().startswith(("- ", "* ")):
            yield ViewLine(number=number, heading=heading, text=line.lstrip()[2:].strip())


def _generated(number: int, heading: str | None, match: re.Match[str]) -> ViewLine:
    ended = _ENDED.match(match["text"])
    text = match["text"] if ended is None else ended["text"]
    keyed = _KEYED.match(text)
    kind: LineKind = match["kind"]  # pyright: ignore[reportAssignmentType] -- one of the letters
    return ViewLine(
        number=number,
        heading=heading,
        text=unescaped(text if keyed is None else keyed["value"] or "").strip(),
        key=None if keyed is None else unescaped(keyed["key"]).strip(),
        kind=kind,
        reference=match["ref"],
        is_edited=_hash(text) != match["hash"],
        is_ended=ended is not None,
        values=dict(pair.split("=", 1) for pair in match["values"].split()),
    )
