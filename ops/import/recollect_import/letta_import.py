"""Letta import: an agent file (.af) with its messages and memory blocks."""

from __future__ import annotations

from collections.abc import Iterator
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
    guarded,
    json_of,
    knowledge,
    message,
    short_hash,
)
from recollect.api.importers.importer import Importer, Match, has_signs
from recollect.api.importers.markdown_notes import note_facts
from recollect.api.importers.source_files import SourceFiles
from recollect.events.errors import InvalidInput

#: Blocks about the agent itself.
_PERSONA = frozenset({"persona", "system", "instructions"})
#: Blocks about the user.
_HUMAN = frozenset({"human", "user"})
#: The tool by which older agents speak.
_SPEAKING_TOOL = "send_message"


def _read(files: SourceFiles, options: ReadOptions) -> Iterator[Record]:
    """Yield the messages of each agent, and its blocks as facts or documents. Tools are ignored.

    Archival passages are not part of an agent file.
    """
    for name in files.names:
        if not name.endswith((".af", ".json")):
            yield Skipped(reason="file of another kind")
            continue
        try:
            content = as_object(json_of(files.read(name)))
        except (InvalidInput, ValueError) as error:
            yield Failed(where=name, reason=str(error)[:300])
            continue
        if "agents" not in content and "blocks" not in content:
            yield Failed(where=name, reason="has no agents and no blocks; it is not an agent file")
        for number, block in enumerate(as_list(content.get("blocks"))):
            yield from guarded(f"{name}, block {number}", lambda block=block: _block(block, options))
        for number, agent in enumerate(as_list(content.get("agents"))):
            yield from _agent(f"{name}, agent {number}", agent, options)


def _block(fields: dict[str, Any], options: ReadOptions) -> Iterator[Record]:
    """Yield a memory block: facts about the user, or a document."""
    label, value = as_text(fields.get("label")), as_text(fields.get("value"))
    key = f"block:{as_text(fields.get('id')) or label}"
    if not value or label.casefold() in _PERSONA:
        yield Skipped(reason="empty block" if not value else "persona")
    elif label.casefold() in _HUMAN:
        yield from note_facts(value, options, key=key)
    else:
        payload = {
            "document_id": f"letta:{short_hash(key)}",
            "title": label or "memory block",
            "text": value,
            "metadata": {"import": "letta"},
        }
        yield knowledge(key, "document.added", payload, where=key)


def _agent(where: str, agent: Any, options: ReadOptions) -> Iterator[Record]:
    """Yield the messages of an agent."""
    fields = as_object(agent)
    name = as_name(fields.get("name"))
    conversation = ImportedConversation(
        id=as_text(fields.get("id")) or name or where, title=name, started_at=as_moment(fields.get("created_at"))
    )
    for number, entry in enumerate(as_list(fields.get("messages"))):
        yield from guarded(
            f"{where}, message {number}",
            lambda entry=entry, number=number: [_message(conversation, number, entry, options)],
        )


def _message(conversation: ImportedConversation, number: int, fields: dict[str, Any], options: ReadOptions) -> Record:
    role = as_text(fields["role"])
    text = _said(fields) if role == "assistant" else _text(fields)
    if role not in ("user", "assistant") or not text:
        return Skipped(reason="system message or tool output")
    if role == "user":
        text = _unpacked(text)
        if not text:
            return Skipped(reason="event of the agent's host")
    return message(
        conversation,
        as_text(fields.get("id")) or str(number),
        role=role,
        name=options.user if role == "user" else conversation.title,
        text=text,
        occurred_at=as_moment(fields.get("created_at")),
        is_own_words=role == "user",
    )


def _text(fields: dict[str, Any]) -> str:
    content = fields.get("content")
    if isinstance(content, str):
        return content.strip()
    blocks = [as_object(block) for block in as_list(content)]
    return "\n".join(as_text(block.get("text")) for block in blocks if block.get("type") == "text").strip()


def _said(fields: dict[str, Any]) -> str:
    """Return what an assistant says: by the tool for it, and otherwise in its text."""
    said: list[str] = []
    for call in map(as_object, as_list(fields.get("tool_calls"))):
        function = as_object(call.get("function"))
        if function.get("name") == _SPEAKING_TOOL:
            said.append(as_text(as_object(_json_or_none(as_text(function.get("arguments")))).get("message")))
    return "\n".join(filter(None, said)) or ("" if fields.get("tool_calls") else _text(fields))


def _unpacked(text: str) -> str:
    """Return a user's message without the JSON that older agents pack it in; empty for an event of the host."""
    packed = as_object(_json_or_none(text)) if text.startswith("{") else {}
    if "message" not in packed:
        return text if packed.get("type") is None else ""
    return as_text(packed["message"]) if packed.get("type", "user_message") == "user_message" else ""


def _json_or_none(text: str) -> Any:
    try:
        return json_of(text.encode())
    except ValueError:
        return None


def _match(files: SourceFiles) -> Match:
    is_agent = any(name.endswith(".af") for name in files.names) or has_signs(files, (b'"agents"', b'"blocks"'))
    return Match.CERTAIN if is_agent else Match.NONE


IMPORTERS = (
    Importer(
        name="letta",
        files="an agent file `.af`",
        content="messages, the block `human` as facts, other blocks as documents. Archival passages are not in it",
        match=_match,
        read=_read,
    ),
)
