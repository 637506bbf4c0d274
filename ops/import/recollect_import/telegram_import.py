"""Telegram import: result.json of Telegram Desktop, of one chat or of an account."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC
from typing import Any

from msgspec import Struct, field

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
    message,
)
from recollect.api.importers.importer import Importer, Match, has_signs
from recollect.api.importers.json_elements import JsonPath
from recollect.api.importers.json_records import read_json_items
from recollect.api.importers.source_files import SourceFiles
from recollect.events.errors import InvalidInput

#: The lists of chats of an account.
_CHATS = frozenset({("chats",), ("left_chats",), ("chats", "list"), ("left_chats", "list")})
#: Media types of what a message may have besides its text.
_MEDIA = {
    "voice_message": "audio/ogg",
    "video_file": "video/mp4",
    "video_message": "video/mp4",
    "sticker": "image/webp",
}


class _Chat(Struct):
    """The chat whose messages are read, and the account's own id."""

    fields: dict[str, Any] = field(default_factory=dict[str, Any])
    owner: str = ""


def _read(files: SourceFiles, options: ReadOptions) -> Iterator[Record]:
    """Yield the messages of each chat; the messages of a day are a session. Service messages are skipped."""
    names = [name for name in files.names if name.endswith("result.json")] or [
        name for name in files.names if name.endswith(".json")
    ]
    if not names:
        yield Failed(where=str(files.path), reason="has no result.json; export as JSON, not as HTML")
    for name in names:
        yield from _file(files, name, options)


def _is_container(path: JsonPath) -> bool:
    """Return whether to descend: to the chats, into each chat, and into its messages."""
    chat = path[:-1] if path[-1:] == ("messages",) else path
    return chat == () or chat in _CHATS or (len(chat) == 3 and chat[:-1] in _CHATS)


def _file(files: SourceFiles, name: str, options: ReadOptions) -> Iterator[Record]:
    chat = _Chat()

    def on_field(path: JsonPath, value: Any) -> None:
        if path == ("personal_information",):
            chat.owner = as_text(as_object(value).get("user_id"))
        elif path[-1] in ("name", "type", "id"):
            # A new chat begins with its name.
            chat.fields = (chat.fields if path[-1] != "name" else {}) | {path[-1]: value}

    yield from read_json_items(
        files,
        name,
        "message",
        lambda fields: [_message(fields, chat, options)],
        descends=_is_container,
        on_field=on_field,
        place=lambda: f" of {as_text(chat.fields.get('name')) or 'a chat'}",
    )


def _message(fields: dict[str, Any], chat: _Chat, options: ReadOptions) -> Record:
    if fields.get("type") != "message":
        return Skipped(reason="service message")
    occurred_at = as_moment(fields.get("date_unixtime")) or as_moment(fields.get("date"))
    if occurred_at is None:
        raise InvalidInput("the message has no date", field="date_unixtime")
    id = as_text(chat.fields.get("id")) or as_text(chat.fields.get("name")) or "chat"
    sender = as_text(fields.get("from_id"))
    is_owner = bool(chat.owner) and sender == f"user{chat.owner}"
    forwarded = as_name(fields.get("forwarded_from"))
    text = _text(fields)
    name = as_name(fields.get("from")) or as_name(sender)
    return message(
        ImportedConversation(
            id=f"{id}:{occurred_at.astimezone(UTC).date().isoformat()}", title=as_name(chat.fields.get("name"))
        ),
        as_text(fields.get("id")),
        role="user",
        name=options.user if is_owner and options.user else name,
        text=f"(forwarded from {forwarded}) {text}" if forwarded and text else text,
        occurred_at=occurred_at,
        attachments=_attachments(fields),
        is_own_words=is_owner and forwarded is None,
    )


def _text(fields: dict[str, Any]) -> str:
    """Return the text of a message, which old exports give as a text or a list of texts and entities."""
    parts = as_list(fields.get("text_entities")) or fields.get("text")
    if isinstance(parts, str):
        return parts.strip()
    texts = [part if isinstance(part, str) else str(as_object(part).get("text", "")) for part in as_list(parts)]
    return "".join(texts).strip()


def _attachments(fields: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the picture or the file of a message, by its name."""
    if as_text(fields.get("photo")):
        return [{"media_type": "image/jpeg", "uri": as_text(fields["photo"])}]
    file, kind = as_text(fields.get("file")), as_text(fields.get("media_type"))
    if not file:
        return []
    media_type = as_name(fields.get("mime_type")) or _MEDIA.get(kind, "application/octet-stream")
    caption = as_text(fields.get("file_name")) or as_text(fields.get("sticker_emoji"))
    return [{"media_type": media_type, "uri": file} | ({"caption": caption} if caption else {})]


def _match(files: SourceFiles) -> Match:
    signs = ((b'"date_unixtime"',), (b'"personal_information"', b'"chats"'))
    return Match.CERTAIN if has_signs(files, *signs, names=files.named("result.json")) else Match.NONE


IMPORTERS = (
    Importer(
        name="telegram",
        files="`result.json` of Telegram Desktop, of a chat or an account",
        content="messages by name, a session for each day",
        match=_match,
        read=_read,
    ),
)
