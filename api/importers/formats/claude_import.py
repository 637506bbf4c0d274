"""Claude import: an export of Anthropic with conversations, projects and what Claude remembers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Any

from recollect.api.importers.imported_records import (
    Failed,
    ImportedConversation,
    ReadOptions,
    Record,
    Skipped,
    as_list,
    as_moment,
    as_name,
    as_object,
    as_text,
    branch,
    knowledge,
    message,
    short_hash,
)
from recollect.api.importers.importer import Importer, Match, has_signs
from recollect.api.importers.json_elements import JsonPath
from recollect.api.importers.json_records import read_json_items
from recollect.api.importers.markdown_notes import note_facts
from recollect.api.importers.source_files import SourceFiles
from recollect.events.errors import InvalidInput

_ROLES = {"human": "user", "assistant": "assistant"}
#: Types of blocks that hold what was said.
_SPOKEN = "text"
#: What a file holds: the name of the file, or of a folder above it.
_KINDS = ("memories", "projects", "conversations")


def _read(files: SourceFiles, options: ReadOptions) -> Iterator[Record]:
    """Yield what Claude remembers, the documents of projects, and the last branch of each conversation."""
    has_files = False
    for name in files.names:
        kind = _kind_of(files, name)
        if kind is None:
            continue
        has_files = True
        read = _READERS[kind]
        yield from read_json_items(
            files,
            name,
            "item",
            lambda fields, read=read: read(fields, options),
            descends=_descent(files, name),
            may_be_empty=True,
        )
    if not has_files:
        yield Failed(where=str(files.path), reason="has no conversations.json, memories.json or projects")


def _kind_of(files: SourceFiles, name: str) -> str | None:
    """Return what a file holds: conversations, memories, projects; None for another file."""
    path = PurePosixPath(name)
    if path.suffix != ".json":
        return None
    for kind in _KINDS:
        if path.name == f"{kind}.json" or kind in path.parts[:-1]:
            return kind
    if len(files.names) > 1:
        return None
    beginning = files.peek(name)
    return "memories" if b'"conversations_memory"' in beginning else "conversations"


def _descent(files: SourceFiles, name: str) -> Callable[[JsonPath], bool]:
    """Return the rule of descent: into a list, not into a file of one object."""
    is_list = files.peek(name).lstrip()[:1] == b"["
    return lambda path: path == () and is_list


def _conversation(fields: dict[str, Any], options: ReadOptions) -> Iterator[Record]:
    """Yield the messages of the branch that ends with the last message."""
    id = as_text(fields.get("uuid"))
    messages = [as_object(entry) for entry in as_list(fields["chat_messages"])]
    if not id:
        raise InvalidInput("the conversation has no uuid", field="uuid")
    conversation = ImportedConversation(
        id=id, title=as_name(fields.get("name")), started_at=as_moment(fields.get("created_at"))
    )
    kept = _branch(messages)
    if len(kept) < len(messages):
        yield Skipped(reason="abandoned branch", count=len(messages) - len(kept))
    for number, entry in enumerate(kept):
        role = _ROLES.get(as_text(entry.get("sender")))
        if role is None:
            yield Skipped(reason="system message or tool output")
            continue
        yield message(
            conversation,
            as_text(entry.get("uuid")) or str(number),
            role=role,
            name=options.user if role == "user" else None,
            text=_text(entry),
            occurred_at=as_moment(entry.get("created_at")) or conversation.started_at,
            attachments=_attachments(entry),
            is_own_words=role == "user",
        )


def _branch(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages from the first one to the last; all of them when the export names no parents."""
    by_id = {as_text(entry.get("uuid")): entry for entry in messages}
    if not any(as_text(entry.get("parent_message_uuid")) in by_id for entry in messages):
        return messages
    return branch(by_id, as_text(messages[-1].get("uuid")), "parent_message_uuid")


def _text(fields: dict[str, Any]) -> str:
    """Return the text of a message: its blocks of text, without thoughts and tools; the field of old exports."""
    blocks = [as_object(block) for block in as_list(fields.get("content"))]
    spoken = [as_text(block.get("text")) for block in blocks if block.get("type") == _SPOKEN]
    return "\n\n".join(filter(None, spoken)) or ("" if blocks else as_text(fields.get("text")))


def _attachments(fields: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the attached files, by their names."""
    files = [*as_list(fields.get("attachments")), *as_list(fields.get("files"))]
    names = [as_text(as_object(file).get("file_name")) for file in files]
    return [{"media_type": "application/octet-stream", "caption": name} for name in names if name]


def _memories(fields: dict[str, Any], options: ReadOptions) -> Iterator[Record]:
    """Yield what Claude remembers of the user, and of each project."""
    account = as_text(fields.get("account_uuid"))
    yield from note_facts(as_text(fields.get("conversations_memory")), options, key=f"memories:{account}")
    for project, text in as_object(fields.get("project_memories")).items():
        yield from note_facts(as_text(text), options, key=f"memories:{account}:{project}")


def _project(fields: dict[str, Any], _: ReadOptions) -> Iterator[Record]:
    """Yield the documents of a project, and its description and instructions as one document."""
    id, name = as_text(fields.get("uuid")), as_text(fields.get("name")) or "project"
    occurred_at = as_moment(fields.get("created_at"))
    about = "\n\n".join(filter(None, (as_text(fields.get("description")), as_text(fields.get("prompt_template")))))
    documents = [{"uuid": "about", "filename": name, "content": about}] if about else []
    for number, document in enumerate([*documents, *map(as_object, as_list(fields.get("docs")))]):
        text = as_text(document.get("content"))
        if not text:
            yield Skipped(reason="empty document")
            continue
        key = f"project:{id}:{as_text(document.get('uuid')) or number}"
        title = as_text(document.get("filename")) or name
        payload = {
            "document_id": f"claude:{short_hash(key)}",
            "title": title if title == name else f"{name}: {title}",
            "text": text,
            "metadata": {"import": "claude", "project": name},
        }
        yield knowledge(key, "document.added", payload, where=key, occurred_at=occurred_at)


_READERS = {"conversations": _conversation, "memories": _memories, "projects": _project}


def _match(files: SourceFiles) -> Match:
    names = files.named("conversations.json", "memories.json")
    signs = ((b'"chat_messages"',), (b'"conversations_memory"',))
    return Match.CERTAIN if has_signs(files, *signs, names=names) else Match.NONE


IMPORTERS = (
    Importer(
        name="claude",
        files="the zip of Anthropic, or a file of it",
        content="the last branch of each conversation, `memories.json` as facts, the documents of projects",
        match=_match,
        read=_read,
    ),
)
