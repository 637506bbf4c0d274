"""Notes import: a folder of Markdown notes, as Obsidian keeps them, or with the memory files of Kira and OpenClaw.

Lines of MEMORY.md and USER.md become facts, preferences and notes, lines of daily notes observations of their day. Any
other note becomes a document, whose text stays as it is, tasks and headings included.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from typing import Any

from recollect.api.importers.imported_records import (
    Failed,
    ImportedConversation,
    ImportedEvent,
    ReadOptions,
    Record,
    Skipped,
    as_moment,
    as_name,
    guarded,
    knowledge,
    short_hash,
)
from recollect.api.importers.importer import Importer, Match
from recollect.api.importers.markdown_notes import note_facts, note_lines, split_front_matter, split_title, topic_of
from recollect.api.importers.source_files import SourceFiles
from recollect.events.errors import InvalidInput

#: Curated files, whose lines are about the user.
_CURATED = ("MEMORY.md", "USER.md")
#: Daily notes: the date is that of the name; the time a file was written is not the time of what it says.
_DAILY = re.compile(r"(?P<date>\d{4}-\d{2}-\d{2})(?:[- ](?P<slug>[\w -]{1,80}))?\.md")
_CLOCK = r"(?P<hour>[01]?\d|2[0-3]):(?P<minute>[0-5]\d)"
#: `14:30 Called Ed` at the beginning of a line or a heading, and `(21:19 UTC)` within it.
_TIME = re.compile(
    rf"^[*_]{{0,3}}{_CLOCK}\b(?: ?UTC\b)?[*_\s:–—-]{{0,6}}|\s{{0,2}}\({_CLOCK.replace('<', '<at_')}(?: ?UTC)?\)"
)
#: Files of the agent, not of the user; machine files.
_PERSONA = frozenset({"SOUL.md", "IDENTITY.md", "AGENTS.md", "TOOLS.md", "HEARTBEAT.md", "BOOTSTRAP.md"})
_MACHINE = frozenset({"retrieved-context.md", "context-buffer.md"})
#: The hour of a note without a time, so that it lies in its day in every zone of Europe, Africa and America.
_NOON = timedelta(hours=12)
#: `[[Rosie|our daughter]]` shows what follows the bar.
_LINK = re.compile(r"!?\[\[(?:[^\]|\n]{1,200}\|)?(?P<shown>[^\]|\n]{1,200})\]\]")
#: Fields of front matter with the day of a note.
_DATES = ("date", "created", "created_at")


def _read(files: SourceFiles, options: ReadOptions) -> Iterator[Record]:
    """Yield facts from MEMORY.md and USER.md, observations from daily notes, and documents from other notes."""
    has_files = False
    for name in files.names:
        path = PurePosixPath(name)
        if path.name in _PERSONA:
            yield Skipped(reason="persona file")
        elif path.name in _MACHINE or path.suffix != ".md" or any(part.startswith(".") for part in path.parts):
            yield Skipped(reason="file of a program, no note")
        else:
            has_files = True
            yield from guarded(name, lambda name=name: _note(files, name, options))
    if not has_files:
        yield Failed(where=str(files.path), reason="has no MEMORY.md, no USER.md and no other note (.md)")


def _note(files: SourceFiles, name: str, options: ReadOptions) -> Iterator[Record]:
    """Yield the records of one note."""
    path = PurePosixPath(name)
    fields, text = _parts(_LINK.sub(r"\g<shown>", files.read(name).decode("utf-8", errors="replace")))
    daily = _DAILY.fullmatch(path.name)
    if path.name in _CURATED:
        yield from note_facts(text, options, key=path.name)
    elif daily is not None:
        yield from _daily(text, name, daily)
    elif text.strip():
        yield _document(fields, text.strip(), name)
    else:
        yield Skipped(reason="empty note")


def _parts(text: str) -> tuple[dict[str, Any], str]:
    """Return the front matter of a note and its text."""
    try:
        return split_front_matter(text)
    except InvalidInput:
        return {}, text


def _document(fields: dict[str, Any], text: str, name: str) -> Record:
    """Return a note as a document, whose title has its folders."""
    path = PurePosixPath(name)
    heading, body = split_title(text)
    title = " / ".join((*path.parts[:-1], as_name(fields.get("title")) or heading or path.stem))
    metadata: dict[str, Any] = {"path": name}
    if tags := as_name(fields.get("tags")):
        metadata["tags"] = tags
    payload = {"document_id": f"note:{short_hash(name)}", "title": title, "text": body, "metadata": metadata}
    moments = (as_moment(fields.get(field)) for field in _DATES)
    occurred_at = next((moment for moment in moments if moment is not None), None)
    # An edited note is another event, which replaces the document.
    return knowledge(
        f"{name}:{short_hash(title, text)}", "document.added", payload, where=name, occurred_at=occurred_at
    )


def _daily(text: str, name: str, match: re.Match[str]) -> Iterator[Record]:
    """Yield the lines of a daily note, at the times that they or their headings name."""
    day = datetime.fromisoformat(match["date"]).replace(tzinfo=UTC)
    slug = (match["slug"] or "").replace("-", " ")
    conversation = ImportedConversation(id=PurePosixPath(name).stem, title=slug or match["date"], started_at=day)
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
        yield ImportedEvent(
            key=f"{name}:{short_hash(topic or '', line)}",
            fields={
                "type": "observation.recorded",
                "occurred_at": day + (_NOON if time is None else _clock(time)),
                "payload": {"text": f"{topic}: {said}" if topic else said},
            },
            where=f"{name}: {line[:60]}",
            conversation=conversation,
        )


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
    ),
    Importer(
        name="markdown",
        files="a folder of notes, such as a vault of Obsidian, or one note",
        content="daily notes (`YYYY-MM-DD.md`) as observations, any other note as a document with its folders, title, "
        "headings and tasks",
        match=_match_markdown,
        read=_read,
    ),
)
