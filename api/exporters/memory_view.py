"""Memory view: MEMORY.md, USER.md and memory/*.md as Kira keeps them, generated from a namespace, and their lines.

Each generated line ends with a comment that has a reference to its memory and a hash of its text, so that an import
knows which lines were edited. Both are hex digits, so no stored text can end the comment.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from recollect.api.exporters.exported_rows import ExportedRows, Row, is_valid, speaker_of
from recollect.api.exporters.markdown_text import escaped, escaped_key, one_line, reference, unescaped
from recollect.projections.projector.predicates import canonical, has_one_value

#: The kind of a line: a fact, a preference, an episode.
LineKind = Literal["f", "p", "e"]
_HEADER = re.compile(
    r"^<!-- recollect memory-md namespace=(?P<namespace>[\w.:@-]{1,200}) version=(?P<version>\d{1,12}) "
)
_LINE = re.compile(
    r"^\s{0,3}[-*] (?P<text>.*?)\s{0,4}"
    r"<!-- recollect:(?P<kind>[fpe]):(?P<ref>[0-9a-f]{16}):(?P<hash>[0-9a-f]{8}) -->\s*$"
)
_KEYED = re.compile(r"^\*\*(?P<key>(?:[^*\\]|\\.)*?):\*\*(?:\s+(?P<value>.*))?$")
_ENDED = re.compile(r"^~~(?P<text>.*)~~$")
_HEADING = re.compile(r"^##\s{1,4}(?P<title>\S.*)$")
#: The mark by which an export of this kind is recognised.
MARK = b"<!-- recollect memory-md "
#: Headings of USER.md.
FACTS_HEADING, PREFERENCES_HEADING = "Facts", "Preferences"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewLine:
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


def render_view(rows: ExportedRows) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each file."""
    speakers = rows.speakers()
    facts = [row for row in rows.facts if is_valid(row, rows.exported_at)]
    profile = [row for row in facts if str(row["subject"]).casefold() in speakers and _is_attribute(row)]
    yield "USER.md", _user_file(rows, profile)
    of_profile = {row["id"] for row in profile}
    yield "MEMORY.md", _memory_file(rows, [row for row in facts if row["id"] not in of_profile])
    for day, episodes in rows.days():
        lines = [f"# {day}", _header(rows), "", *map(_episode_line, episodes)]
        yield f"memory/{day}.md", "\n".join(lines) + "\n"


def _user_file(rows: ExportedRows, facts: list[Row]) -> str:
    preferences = [row for row in rows.preferences if is_valid(row, rows.exported_at)]
    lines = ["# USER.md", _header(rows), "", f"## {FACTS_HEADING}", "", *map(_fact_line, facts)]
    lines += ["", f"## {PREFERENCES_HEADING}", "", *map(_preference_line, preferences)]
    return "\n".join(lines) + "\n"


def _memory_file(rows: ExportedRows, facts: list[Row]) -> str:
    by_subject: defaultdict[str, list[Row]] = defaultdict(list)
    for row in facts:
        by_subject[row["subject"]].append(row)
    lines = ["# MEMORY.md", _header(rows)]
    for subject, of_subject in sorted(by_subject.items()):
        lines += ["", f"## {escaped(subject) or 'Unnamed'}", "", *map(_fact_line, of_subject)]
    return "\n".join(lines) + "\n"


def _is_attribute(row: Row) -> bool:
    """Return whether a fact is an attribute of a person, such as a name or a home, which has one value at a time."""
    return has_one_value(canonical(str(row["predicate"])))


def _header(rows: ExportedRows) -> str:
    return (
        f"<!-- recollect memory-md namespace={rows.namespace} version={rows.version} "
        "Generated. Edit what follows a key to correct it, strike a line through to end it, add lines; then: "
        f"recollect import FOLDER --namespace {rows.namespace} -->"
    )


def _fact_line(row: Row) -> str:
    return _line("f", row["id"], f"**{escaped_key(row['predicate'])}:** {escaped(row['object'])}")


def _preference_line(row: Row) -> str:
    whose = f"{row['subject']}, " if row.get("subject") not in (None, "", "user") else ""
    return _line("p", row["id"], f"**{escaped_key(whose + str(row['name']))}:** {escaped(row['value'])}")


def _episode_line(row: Row) -> str:
    said = f"{str(row['occurred_at'])[11:16]} {escaped(speaker_of(row))}: {escaped(row['text'])}"
    return _line("e", row["id"], said)


def _line(kind: LineKind, id: str, text: str) -> str:
    """Return a line with its reference, and the hash of what an import reads in it."""
    return f"- {text} <!-- recollect:{kind}:{reference(kind, id)}:{_hash(text)} -->"


def _hash(text: str) -> str:
    return reference(one_line(text))[:8]


def view_header(text: str) -> tuple[str, int] | None:
    """Return the namespace and the version of a generated file; None for another file."""
    for line in text.splitlines()[:5]:
        match = _HEADER.match(line)
        if match is not None:
            return match["namespace"], int(match["version"])
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
    kind: LineKind = match["kind"]  # pyright: ignore[reportAssignmentType] -- one of the three letters
    return ViewLine(
        number=number,
        heading=heading,
        text=unescaped(text if keyed is None else keyed["value"] or "").strip(),
        key=None if keyed is None else unescaped(keyed["key"]).strip(),
        kind=kind,
        reference=match["ref"],
        is_edited=_hash(text) != match["hash"],
        is_ended=ended is not None,
    )
