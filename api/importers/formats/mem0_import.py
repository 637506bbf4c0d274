"""Mem0 import: memories as `Memory.get_all()` and the platform list them, Markdown blocks, or the history.db."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from recollect.api.importers.imported_records import (
    ImportedConversation,
    ReadOptions,
    Record,
    Skipped,
    as_moment,
    as_name,
    as_text,
    guarded,
    knowledge,
    message,
    short_hash,
)
from recollect.api.importers.imported_statements import imported_fact, note, statement
from recollect.api.importers.importer import Importer, Match, has_signs
from recollect.api.importers.json_records import read_json_items
from recollect.api.importers.source_files import SourceFiles
from recollect.events.errors import InvalidInput
from recollect.events.late_pattern import late_pattern

#: The containers of memories: a list, or an object with one of these lists.
_LISTS = frozenset({(), ("results",), ("memories",), ("data",)})
_BLOCK = late_pattern(r"^---\n(?P<front>(?:[\w-]{1,40}:[^\n]{0,400}\n){1,20})---\n", re.MULTILINE)
_SQLITE = b"SQLite format 3\x00"
_HISTORY = """
SELECT memory_id, new_memory, event, coalesce(updated_at, created_at), is_deleted FROM history
ORDER BY memory_id, coalesce(updated_at, created_at), rowid
"""
_MESSAGES = "SELECT id, session_scope, role, content, name, created_at FROM messages ORDER BY session_scope, created_at"


def _read(files: SourceFiles, options: ReadOptions) -> Iterator[Record]:
    """Yield the memories as facts about the user, with the times at which they were made and changed."""
    for name in files.names:
        if files.peek(name)[:16] == _SQLITE:
            yield from guarded(name, lambda name=name: _database(files, name, options))
        elif PurePosixPath(name).suffix == ".md":
            yield from guarded(name, lambda name=name: _blocks(files.read(name).decode(errors="replace"), options))
        elif PurePosixPath(name).suffix in (".json", ""):
            yield from read_json_items(
                files, name, "memory", lambda fields: [_memory(fields, options)], descends=_LISTS.__contains__
            )
        else:
            yield Skipped(reason="file of another kind")


def _memory(fields: dict[str, Any], options: ReadOptions) -> Record:
    """Return one memory as a fact."""
    text = as_text(fields.get("memory")) or as_text(fields.get("text"))
    fact = _stated(text, options)
    if fact is None:
        if "memory" not in fields and "text" not in fields:
            raise InvalidInput("has no memory and no text", field="memory")
        return Skipped(reason="empty memory")
    occurred_at = as_moment(fields.get("updated_at")) or as_moment(fields.get("created_at"))
    return _fact(as_text(fields.get("id")), text, fact, occurred_at, until=as_moment(fields.get("expiration_date")))


def _stated(text: str, options: ReadOptions) -> dict[str, Any] | None:
    """Return what a memory states, or a note of its words; None for one without words."""
    return statement(text, options.subject) or note(text, options.subject)


def _fact(
    id: str, text: str, fact: dict[str, Any], occurred_at: datetime | None, *, until: datetime | None = None
) -> Record:
    payload = imported_fact(fact, stated_at=occurred_at, valid_until=until)
    # By its words: an import with another `--user` is of the same memory.
    key = f"{id}:{short_hash(text)}"
    return knowledge(key, "fact.stated", payload, where=f"memory {id or key}", occurred_at=occurred_at)


def _blocks(text: str, options: ReadOptions) -> Iterator[Record]:
    """Yield the memories of a Markdown export: blocks of front matter, each followed by its text."""
    blocks = [*_BLOCK.finditer(text)]
    if not blocks:
        raise InvalidInput("has no block of front matter", field="file")
    for number, block in enumerate(blocks):
        end = blocks[number + 1].start() if number + 1 < len(blocks) else len(text)
        front = dict(line.split(":", 1) for line in block["front"].splitlines())
        fields = {name.strip(): value.strip().strip("\"'") for name, value in front.items()}
        yield _memory(fields | {"memory": " ".join(text[block.end() : end].split())}, options)


def _database(files: SourceFiles, name: str, options: ReadOptions) -> Iterator[Record]:
    """Yield the memories of a history.db with the values that they had before, and its messages."""
    path = files.path / name if files.path.is_dir() else files.path
    if path.suffix == ".zip":
        raise InvalidInput("is in an archive; unpack it and import the folder", field=name)
    # Read only, without the files that SQLite would create next to it.
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
        try:
            tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if "history" not in tables:
                raise InvalidInput("has no table `history`; it is not a database of mem0", field=name)
            yield from _history(database.execute(_HISTORY).fetchall(), options)
            if "messages" in tables:
                for row in database.execute(_MESSAGES):
                    yield _message(row, options)
        except sqlite3.Error as error:
            raise InvalidInput(f"cannot be read: {error}", field=name) from error


def _history(rows: list[tuple[Any, ...]], options: ReadOptions) -> Iterator[Record]:
    """Yield the values of each memory; one that was replaced or deleted ends then."""
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        id, text, event, occurred_at, is_deleted = row
        if event == "DELETE" or is_deleted or not as_text(text):
            yield Skipped(reason="deletion")
            continue
        fact = _stated(as_text(text), options)
        if fact is None:
            yield Skipped(reason="empty memory")
            continue
        until = as_moment(following[3]) if following is not None and following[0] == id else None
        yield _fact(as_text(id), as_text(text), fact, as_moment(occurred_at), until=until)


def _message(row: tuple[Any, ...], options: ReadOptions) -> Record:
    id, scope, role, content, name, occurred_at = row
    is_user = role == "user"
    return message(
        ImportedConversation(id=as_text(scope) or "messages"),
        as_text(id),
        role="user" if is_user else "assistant",
        text=as_text(content),
        occurred_at=as_moment(occurred_at),
        name=(options.user if is_user else None) or as_name(name),
        is_own_words=is_user,
    )


def _match(files: SourceFiles) -> Match:
    signs = ((b'"memory"',), (_SQLITE,), (b"---\nid:",))
    return Match.LIKELY if has_signs(files, *signs, names=files.named("history.db")) else Match.NONE


IMPORTERS = (
    Importer(
        name="mem0",
        files="the JSON of `Memory.get_all()`, the plugin's Markdown, or `history.db`",
        content="memories as facts with their times; of `history.db` also what they said before",
        match=_match,
        read=_read,
    ),
)
