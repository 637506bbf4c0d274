"""Notes import: a folder of Markdown notes, of Obsidian or Logseq, or with the memory files of Kira and OpenClaw.

Lines of MEMORY.md and USER.md become facts, preferences and notes, lines of daily notes observations of their day. Any
other note becomes a document, whose text stays as it is, tasks and headings included. Open tasks are facts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import PurePosixPath
from typing import Any

from recollect.api.importers.imported_records import (
    IMPORTED_CONFIDENCE,
    Failed,
    ImportedConversation,
    ImportedEvent,
    ReadOptions,
    Record,
    Skipped,
    as_list,
    as_moment,
    as_name,
    as_text,
    guarded,
    knowledge,
    short_hash,
)
from recollect.api.importers.imported_statements import detailed, task_of
from recollect.api.importers.importer import Importer, Match
from recollect.api.importers.markdown_notes import (
    note_facts,
    note_lines,
    note_task,
    split_front_matter,
    split_title,
    topic_of,
)
from recollect.api.importers.source_files import SourceFiles
from recollect.events.errors import InvalidInput
from recollect.events.late_pattern import late_pattern

#: Curated files, whose lines are about the user.
_CURATED = ("MEMORY.md", "USER.md")
#: Daily notes, `2026_02_11` in Logseq: the date is that of the name. The time a file was written is another one.
_DAILY = late_pattern(r"(?P<date>\d{4}([-_.]?)\d{2}\2\d{2})(?:[- ](?P<slug>[\w -]{1,80}))?\.md")
_SEPARATOR = late_pattern(r"[-_.]")
_CLOCK = r"(?P<hour>[01]?\d|2[0-3]):(?P<minute>[0-5]\d)"
#: `14:30 Called Ed` at the beginning of a line or a heading, and `(21:19 UTC)` within it.
_TIME = late_pattern(
    rf"^[*_]{{0,3}}{_CLOCK}\b(?: ?UTC\b)?[*_\s:–—-]{{0,6}}|\s{{0,2}}\({_CLOCK.replace('<', '<at_')}(?: ?UTC)?\)"
)
#: Files of the agent, not of the user; machine files.
_PERSONA = frozenset({"SOUL.md", "IDENTITY.md", "AGENTS.md", "TOOLS.md", "HEARTBEAT.md", "BOOTSTRAP.md"})
_MACHINE = frozenset({"retrieved-context.md", "context-buffer.md"})
#: The hour of a note without a time, so that it lies in its day in every zone of Europe, Africa and America.
_NOON = timedelta(hours=12)
#: `[[Rosie|our daughter]]` shows what follows the bar.
_LINK = late_pattern(r"!?\[\[(?P<target>[^\]|#\n]{1,200})(?:#[^\]|\n]{0,200})?(?:\|(?P<shown>[^\]|\n]{1,200}))?\]\]")
#: Targets of links that a document has as relations.
_LINKS_MAX = 200
#: Aliases and tags of a note.
_NAMES_MAX = 50
#: A property of a page in Logseq: `alias:: Ed, Eddie`.
_PROPERTY = late_pattern(r"(?:- )?(?P<name>[\w.-]{1,40}):: ?(?P<value>.*)\n?")
_FIELDS_MAX = 100
#: Properties of blocks that are the program's own.
_MACHINE_PROPERTY = late_pattern(
    r"^[ \t]{0,40}(?:- )?(?:id|collapsed|heading|logseq\.[\w.-]{1,40}):: ?.*\n?", re.MULTILINE
)
#: Its folder of settings and copies.
_LOGSEQ = "logseq"
#: Fields of front matter with the day of a note.
_DATES = ("date", "created", "created_at")
#: Fields that are read elsewhere, and those of the program; any other one, such as `birthday`, is a line of the text.
_READ_FIELDS = frozenset(
    (*_DATES, "title", "alias", "aliases", "tags", "tag", "id", "cssclass", "cssclasses", "publish")
)
_FIELD_CHARS_MAX = 500


def _read(files: SourceFiles, options: ReadOptions) -> Iterator[Record]:
    """Yield facts from MEMORY.md and USER.md, observations from daily notes, and documents from other notes."""
    has_files = False
    documents = {PurePosixPath(name).stem.casefold(): _id(name) for name in files.names if name.endswith(".md")}
    for name in files.names:
        path = PurePosixPath(name)
        if path.name in _PERSONA:
            yield Skipped(reason="persona file")
        elif path.name in _MACHINE or path.suffix != ".md" or path.parts[0] == _LOGSEQ or _is_hidden(path):
            yield Skipped(reason="file of a program, no note")
        else:
            has_files = True
            yield from guarded(name, lambda name=name: _note(files, name, documents, options))
    if not has_files:
        yield Failed(where=str(files.path), reason="has no MEMORY.md, no USER.md and no other note (.md)")


def _is_hidden(path: PurePosixPath) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _note(files: SourceFiles, name: str, documents: Mapping[str, str], options: ReadOptions) -> Iterator[Record]:
    """Yield the records of one note."""
    path = PurePosixPath(name)
    source = files.read(name).decode("utf-8", errors="replace")
    fields, text = _parts(_LINK.sub(lambda link: link["shown"] or link["target"], source))
    daily = _DAILY.fullmatch(path.name)
    day = None if daily is None else as_moment(_SEPARATOR.sub("", daily["date"]))
    if path.name in _CURATED:
        yield from note_facts(text, options, key=path.name)
    elif daily is not None and day is not None:
        yield from _daily(text, name, day, options.subject, slug=daily["slug"])
    elif text.strip():
        links = dict.fromkeys(link["target"].strip() for link in _LINK.finditer(source))
        targets = [documents.get(target.casefold(), target) for target in [*links][:_LINKS_MAX]]
        yield from _document(fields, text.strip(), name, [target for target in targets if target != _id(name)])
        for headings, line in note_lines(text):
            task = task_of(line)
            if task is not None:
                yield from note_task((path.stem, *headings), task, name, options.subject)
    else:
        yield Skipped(reason="empty note")


def _parts(text: str) -> tuple[dict[str, Any], str]:
    """Return the fields of a note, of its front matter or the properties it begins with, and its text."""
    try:
        fields, text = split_front_matter(text)
    except InvalidInput:
        fields = {}
    while len(fields) < _FIELDS_MAX and (field := _PROPERTY.match(text)) is not None:
        fields[field["name"]] = field["value"]
        text = text[field.end() :]
    return fields, _MACHINE_PROPERTY.sub("", text)


def _document(fields: dict[str, Any], text: str, name: str, targets: list[str]) -> Iterator[Record]:
    """Yield a note as a document, whose title has its folders, and its other names.

    Parameters:
        targets: the ids of the notes, or the names, that it links to.
    """
    path = PurePosixPath(name)
    heading, body = split_title(text)
    own_title = as_name(fields.get("title")) or heading or path.stem.replace("___", " / ")
    aliases = [*_names(fields.get("aliases")), *_names(fields.get("alias"))]
    title = " / ".join((*path.parts[:-1], own_title)) + (f" ({', '.join(aliases)})" if aliases else "")
    metadata: dict[str, Any] = {"path": name}
    if tags := _names(fields.get("tags")):
        metadata["tags"] = ", ".join(tags)
    properties = [*_properties(fields)]
    whole = "\n".join((*properties, "", body)) if properties else body
    payload: dict[str, Any] = {"document_id": _id(name), "title": title, "text": whole, "metadata": metadata}
    if targets:
        payload["relations"] = [{"type": "mentions", "target": target} for target in targets]
    moments = (as_moment(fields.get(field)) for field in _DATES)
    occurred_at = next((moment for moment in moments if moment is not None), None)
    # An edited note is another event, which replaces the document.
    key = f"{name}:{short_hash(title, text, *properties)}"
    yield knowledge(key, "document.added", payload, where=name, occurred_at=occurred_at)
    if aliases:
        entity = {"name": own_title, "aliases": aliases, "confidence": IMPORTED_CONFIDENCE}
        yield knowledge(f"{key}:names", "entity.described", entity, where=name, occurred_at=occurred_at)


def _id(name: str) -> str:
    return f"note:{short_hash(name)}"


def _properties(fields: dict[str, Any]) -> Iterator[str]:
    """Yield the other fields of a note as lines: `birthday: 1988-02-09`."""
    for name, value in [*fields.items()][:_FIELDS_MAX]:
        text = ", ".join(map(as_text, as_list(value))) or as_text(value)
        if text and name.casefold() not in _READ_FIELDS:
            yield f"{name}: {text}"[:_FIELD_CHARS_MAX]


def _names(value: object) -> list[str]:
    """Return the names of a field of front matter: a list, or a text with commas."""
    items = as_list(value) or as_text(value).strip("[]").split(",")
    return [name for item in items[:_NAMES_MAX] if (name := as_name(as_text(item).strip("\"'#")))]


def _daily(text: str, name: str, day: datetime, subject: str, *, slug: str | None) -> Iterator[Record]:
    """Yield the lines of a daily note, at the times that they or their headings name, and its tasks."""
    title = (slug or "").replace("-", " ") or day.date().isoformat()
    conversation = ImportedConversation(id=PurePosixPath(name).stem, title=title, started_at=day)
    for headings, line in note_lines(text):
        own_time = time = _TIME.search(line)
        topics: list[str] = []
        for heading in headings:
            of_heading = _TIME.search(heading)
            if of_heading is not None and own_time is not None and own_time["hour"] is not None:
                # A line that begins with a time does not belong to what was at another time.
                break
            time = own_time or of_heading or time
            topics.append(_untimed(heading))
        topic = topic_of(tuple(topics))
        said = _untimed(line)
        if not any(map(str.isalnum, said)):
            yield Skipped(reason="line without words")
            continue
        occurred_at = day + (_NOON if time is None else _clock(time))
        task = task_of(line)
        ended_at = None
        if task is not None:
            ended_at = as_moment(task.ended_on)
            said = f"{task.state}: {detailed(task.text, task.details)}"
            if ended_at is not None and ended_at != day:
                occurred_at = ended_at + _NOON
        event = ImportedEvent(
            key=f"{name}:{short_hash(topic or '', line)}",
            fields={
                "type": "observation.recorded",
                "occurred_at": occurred_at,
                "payload": {"text": f"{topic}: {said}" if topic else said},
            },
            where=f"{name}: {line[:60]}",
            conversation=conversation,
        )
        if task is None or ended_at is not None:
            yield event
        if task is not None:
            # Ticked without a day, it was done when an import sees it first, and on the day of the note only if that
            # is the first import.
            otherwise = None if task.is_open or ended_at is not None else event
            yield from note_task(tuple(topics), task, name, subject, day + _NOON, otherwise)


def _clock(time: re.Match[str]) -> timedelta:
    return timedelta(hours=int(time["hour"] or time["at_hour"]), minutes=int(time["minute"] or time["at_minute"]))


def _untimed(text: str) -> str:
    return _TIME.sub("", text).replace("**", "").strip()


def _match_kira(files: SourceFiles) -> Match:
    if files.named(*_CURATED):
        return Match.CERTAIN
    return Match.KIND if any(PurePosixPath(name).parent.name == "memory" for name in _notes(files)) else Match.NONE


def _match_markdown(files: SourceFiles) -> Match:
    return Match.KIND if _notes(files) and not _match_kira(files) else Match.NONE


def _notes(files: SourceFiles) -> list[str]:
    """Return the Markdown files. A bundle in the Open Knowledge Format has none: the extra `import` reads it."""
    is_bundle = "index.md" in files.names and b"okf_version:" in files.peek("index.md")
    return [] if is_bundle else [name for name in files.names if name.endswith(".md")]


IMPORTERS = (
    Importer(
        name="kira",
        files="a folder with `MEMORY.md`, `USER.md`, `memory/YYYY-MM-DD.md` (OpenClaw, too)",
        content="lines of the curated files, see below; lines of daily notes as observations of that day, at the times "
        "they name; other notes as documents; not the persona and the machine files",
        match=_match_kira,
        read=_read,
        is_folder=True,
    ),
    Importer(
        name="markdown",
        files="a folder of notes, such as a vault of Obsidian or a graph of Logseq, or one note",
        content="daily notes (`YYYY-MM-DD.md`, `YYYY_MM_DD.md`) as observations, any other note as a document with its "
        "folders, title, aliases, tags, headings and links; open tasks of all of them as facts",
        match=_match_markdown,
        read=_read,
        is_folder=True,
    ),
)
