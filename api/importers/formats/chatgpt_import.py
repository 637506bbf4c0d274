"""ChatGPT import: an export of OpenAI, as one conversations.json or in the shards of 2026."""

from __future__ import annotations

from collections.abc import Iterator
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
from recollect.api.importers.imported_statements import imported_fact, note, statement
from recollect.api.importers.importer import Importer, Match, has_signs
from recollect.api.importers.json_records import read_json_items
from recollect.api.importers.source_files import SourceFiles
from recollect.events.late_pattern import late_pattern

#: One file until 2025, numbered shards from 2026 on.
_CONVERSATIONS = late_pattern(r"conversations(?:-\d{1,6})?\.json")
#: Roles of authors as roles of messages.
_ROLES = {"user": "user", "assistant": "assistant"}
#: Types of content that hold what was said; others are thoughts, tool calls and their output.
_SPOKEN = frozenset({"text", "multimodal_text"})
#: What stands before the words of the user's own in the form of the profile.
_REST = "Other Information: "


def _conversation_files(files: SourceFiles) -> list[str]:
    """Return the files with conversations; the file itself when it is the only one."""
    named = [name for name in files.names if _CONVERSATIONS.fullmatch(PurePosixPath(name).name)]
    return named or (list(files.names) if len(files.names) == 1 else [])


def _read(files: SourceFiles, options: ReadOptions) -> Iterator[Record]:
    """Yield the messages that the user sees in each conversation: the branch that ends with `current_node`.

    Answers that were generated again, hidden messages, thoughts and tool calls are skipped. What the user stated
    about themselves becomes facts and a preference.
    """
    names = _conversation_files(files)
    if not names:
        yield Failed(where=str(files.path), reason="has no conversations.json or conversations-000.json")
    for name in names:
        yield from read_json_items(files, name, "conversation", lambda fields: _conversation(fields, options))


def _conversation(fields: dict[str, Any], options: ReadOptions) -> Iterator[Record]:
    """Yield the records of one conversation, oldest first."""
    mapping: dict[str, Any] = fields["mapping"]
    id = as_text(fields.get("conversation_id")) or as_text(fields.get("id"))
    if not id:
        id = short_hash(as_text(fields.get("title")), as_text(fields.get("create_time")), *mapping)
    conversation = ImportedConversation(
        id=id, title=as_name(fields.get("title")), started_at=as_moment(fields.get("create_time"))
    )
    current = as_text(fields.get("current_node"))
    nodes = branch(mapping, current if current in mapping else _last_leaf(mapping), "parent")
    abandoned = sum(as_object(node).get("message") is not None for node in mapping.values()) - sum(
        as_object(node).get("message") is not None for node in nodes
    )
    if abandoned > 0:
        yield Skipped(reason="abandoned branch", count=abandoned)
    for node in nodes:
        content = node.get("message")
        if content is not None:
            yield from _message(conversation, as_text(node.get("id")), content, options)


def _last_leaf(mapping: dict[str, Any]) -> str | None:
    leaves = [key for key, node in mapping.items() if not as_list(as_object(node).get("children"))]
    return leaves[-1] if leaves else None


def _message(
    conversation: ImportedConversation, node_id: str, fields: dict[str, Any], options: ReadOptions
) -> Iterator[Record]:
    """Yield the records of one message."""
    metadata, content = as_object(fields.get("metadata")), as_object(fields.get("content"))
    content_type = content.get("content_type", "text")
    role = _ROLES.get(as_text(as_object(fields.get("author")).get("role")))
    if content_type == "user_editable_context":
        yield from _profile(content, as_object(metadata.get("user_context_message_data")), options)
    elif metadata.get("is_visually_hidden_from_conversation") is True or fields.get("weight") == 0:
        yield Skipped(reason="hidden message")
    elif role is None:
        yield Skipped(reason="system message or tool output")
    elif content_type not in _SPOKEN or fields.get("recipient") not in (None, "all"):
        yield Skipped(reason="thoughts and tool calls")
    else:
        text, attachments = _parts(as_list(content.get("parts")))
        model = as_name(metadata.get("model_slug"))
        yield message(
            conversation,
            as_text(fields.get("id")) or node_id,
            role=role,
            name=options.user if role == "user" else None,
            text=text or as_text(content.get("text")),
            occurred_at=as_moment(fields.get("create_time")) or conversation.started_at,
            attachments=attachments,
            is_own_words=role == "user",
            metadata={"model": model} if model else None,
        )


def _parts(parts: list[Any]) -> tuple[str, list[dict[str, Any]]]:
    """Return the text of the parts of a message, and its pictures and recordings."""
    texts: list[str] = []
    attachments: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
            continue
        fields = as_object(part)
        # A recording has its transcript.
        if spoken := as_text(fields.get("text")):
            texts.append(spoken)
        elif pointer := as_text(fields.get("asset_pointer")):
            is_picture = "image" in as_text(fields.get("content_type"))
            attachments.append({"media_type": "image/*" if is_picture else "audio/*", "uri": pointer})
    return "\n".join(texts).strip(), attachments


def _profile(content: dict[str, Any], own: dict[str, Any], options: ReadOptions) -> Iterator[Record]:
    """Yield what the user stated about themselves, and how it should answer. Every conversation repeats it.

    Parameters:
        own: the texts as the user wrote them, where the export has them.
    """
    about = as_text(own.get("about_user_message")) or _unwrapped(as_text(content.get("user_profile")))
    for line in about.replace(_REST, "").splitlines():
        fact = statement(line, options.subject) or note(line, options.subject)
        if fact is not None:
            key = short_hash("profile", line.strip())
            yield knowledge(f"profile:{key}", "fact.stated", imported_fact(fact), where="user_profile")
    instructions = as_text(own.get("about_model_message")) or _unwrapped(as_text(content.get("user_instructions")))
    if instructions:
        # Not standing: what applies to every conversation is decided here, by `update --standing`.
        preference = {"category": "communication", "key": "custom instructions", "value": instructions}
        key = short_hash("instructions", instructions)
        yield knowledge(f"profile:{key}", "preference.stated", preference, where="user_instructions")


def _unwrapped(text: str) -> str:
    """Return a text of the user without the words for the model that OpenAI writes around it: what is in the fence."""
    _, fence, rest = text.partition("```")
    return rest.rpartition("```")[0].strip() or rest.strip() if fence else text


def _match(files: SourceFiles) -> Match:
    signs = (b'"mapping"', b'"parent"')
    return Match.CERTAIN if has_signs(files, signs, names=_conversation_files(files)[:1]) else Match.NONE


IMPORTERS = (
    Importer(
        name="chatgpt",
        files="the zip of OpenAI, or its `conversations.json`, `conversations-000.json` …",
        content="the branch of each conversation that you see; what you told ChatGPT about yourself as facts, the "
        "custom instructions as a preference",
        match=_match,
        read=_read,
    ),
)
