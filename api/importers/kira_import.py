"""Kira import: a folder with MEMORY.md, USER.md and memory/*.md, as Kira and OpenClaw keep it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath

from recollect.api.importers.markdown_notes import note_facts, note_lines, topic_of
from recollect.api.importers.records import (
    Conversation,
    Failed,
    ImportedEvent,
    ReadOptions,
    Record,
    Skipped,
    guarded,
    short_hash,
)
from recollect.api.importers.source_files import SourceFiles

#: Curated files, whose lines are facts about the user.
CURATED = ("MEMORY.md", "USER.md")
#: Daily notes: the date is that of the name; the time a file was written is not the time of what it says.
_DAILY = re.compile(r"(?P<date>\d{4}-\d{2}-\d{2})(?:-(?P<slug>[\w-]{1,80}))?\.md")
#: `(21:19 UTC)`
_TIME = re.compile(r"\((?P<hour>[01]?\d|2[0-3]):(?P<minute>[0-5]\d)(?: ?UTC)?\)")
#: Files of the agent, not of the user; machine files.
_PERSONA = frozenset({"SOUL.md", "IDENTITY.md", "AGENTS.md", "TOOLS.md", "HEARTBEAT.md", "BOOTSTRAP.md"})
_MACHINE = frozenset({"retrieved-context.md", "context-buffer.md"})
#: The hour of a note without a time, so that it lies in its day in every zone of Europe, Africa and America.
_NOON = timedelta(hours=12)


def read_kira(files: SourceFiles, options: ReadOptions) -> Iterator[Record]:
    """Yield facts from MEMORY.md and USER.md, and one observation for each line of a daily note."""
    has_files = False
    for name in files.names:
        path = PurePosixPath(name)
        daily = _DAILY.fullmatch(path.name)
        if path.name in CURATED:
            has_files = True
            yield from guarded(
                name, lambda name=name, path=path: note_facts(_text(files, name), options, key=path.name)
            )
        elif daily is not None:
            has_files = True
            yield from guarded(name, lambda name=name, daily=daily: _daily(_text(files, name), name, daily))
        elif path.name in _PERSONA:
            yield Skipped(reason="persona file")
        elif path.name in _MACHINE or path.suffix != ".md":
            yield Skipped(reason="machine file")
        else:
            yield Skipped(reason="file without a date that is neither MEMORY.md nor USER.md")
    if not has_files:
        yield Failed(where=str(files.path), reason="has no MEMORY.md, no USER.md and no memory/YYYY-MM-DD.md")


def _text(files: SourceFiles, name: str) -> str:
    return files.read(name).decode("utf-8", errors="replace")


def _daily(text: str, name: str, match: re.Match[str]) -> Iterator[Record]:
    """Yield the lines of a daily note, at the times that they or their headings name."""
    day = datetime.fromisoformat(match["date"]).replace(tzinfo=UTC)
    slug = (match["slug"] or "").replace("-", " ")
    conversation = Conversation(id=PurePosixPath(name).stem, title=slug or match["date"], started_at=day)
    for heading, line in note_lines(text):
        time = _TIME.search(line) or (None if heading is None else _TIME.search(heading))
        occurred_at = day + (_NOON if time is None else timedelta(hours=int(time["hour"]), minutes=int(time["minute"])))
        topic = topic_of(None if heading is None else _TIME.sub("", heading).strip())
        said = _TIME.sub("", line).replace("**", "").strip()
        yield ImportedEvent(
            key=f"{name}:{short_hash(heading or '', line)}",
            fields={
                "type": "observation.recorded",
                "occurred_at": occurred_at,
                "payload": {"text": f"{topic}: {said}" if topic and topic != match["date"] else said},
            },
            where=f"{name}: {line[:60]}",
            conversation=conversation,
        )
