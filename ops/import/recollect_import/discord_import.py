"""Discord import: JSON of DiscordChatExporter, or Discord's own package of the messages of one account."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC
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
    json_of,
    message,
)
from recollect.api.importers.importer import Importer, Match, has_signs
from recollect.api.importers.json_records import read_json_items
from recollect.api.importers.source_files import SourceFiles
from recollect.events.errors import InvalidInput

#: Types of messages that a person wrote; others report joins, pins and calls.
_WRITTEN = frozenset({"Default", "Reply", "ThreadStarterMessage", "ChatInputCommand", "0", "19"})


def _read(files: SourceFiles, options: ReadOptions) -> Iterator[Record]:
    """Yield the messages of each channel; the messages of a day are a session."""
    has_files = False
    for name in files.names:
        path = PurePosixPath(name)
        if path.name == "messages.json" and len(files.names) > 1:
            has_files = True
            yield from _package_channel(files, name, options)
        elif path.suffix == ".json" and b'"guild"' in files.peek(name):
            has_files = True
            yield from _exporter_file(files, name)
        elif len(files.names) > 1:
            yield Skipped(reason="file of another kind")
    if not has_files:
        yield Failed(where=str(files.path), reason="has no JSON of DiscordChatExporter and no messages.json")


def _exporter_file(files: SourceFiles, name: str) -> Iterator[Record]:
    """Yield the messages of one file of DiscordChatExporter."""
    about: dict[str, Any] = {}
    yield from read_json_items(
        files,
        name,
        "message",
        lambda fields: [_exporter_message(fields, as_object(about.get("channel")))],
        descends=lambda path: path in ((), ("messages",)),
        on_field=lambda path, value: about.update({path[0]: value}),
    )


def _exporter_message(fields: dict[str, Any], channel: dict[str, Any]) -> Record:
    if as_text(fields.get("type")) not in _WRITTEN:
        return Skipped(reason="service message")
    occurred_at = as_moment(fields.get("timestamp"))
    if occurred_at is None:
        raise InvalidInput("the message has no timestamp", field="timestamp")
    author = as_object(fields.get("author"))
    forwarded = as_text(as_object(fields.get("forwardedMessage")).get("content"))
    text = as_text(fields.get("content")) or (f"(forwarded) {forwarded}" if forwarded else "")
    return message(
        _conversation(
            as_text(channel.get("id")), as_text(channel.get("name")), occurred_at.astimezone(UTC).date().isoformat()
        ),
        as_text(fields.get("id")),
        role="assistant" if author.get("isBot") is True else "user",
        name=as_name(author.get("nickname")) or as_name(author.get("name")),
        text=text or _embeds(fields),
        occurred_at=occurred_at,
        attachments=[
            {"media_type": "application/octet-stream", "caption": as_text(file.get("fileName")) or "file"}
            for file in map(as_object, as_list(fields.get("attachments")))
        ],
    )


def _embeds(fields: dict[str, Any]) -> str:
    """Return the titles and descriptions of what a bot posted instead of a text."""
    embeds = map(as_object, as_list(fields.get("embeds")))
    return "\n".join(as_text(embed.get(name)) for embed in embeds for name in ("title", "description")).strip()


def _conversation(id: str, name: str, day: str) -> ImportedConversation:
    return ImportedConversation(id=f"{id or name or 'channel'}:{day}", title=as_name(name))


def _package_channel(files: SourceFiles, name: str, options: ReadOptions) -> Iterator[Record]:
    """Yield the messages of a channel of Discord's package: those of its owner alone."""
    folder = str(PurePosixPath(name).parent)
    channel: dict[str, Any] = {}
    described = f"{folder}/channel.json"
    if described in files.names:
        try:
            channel = as_object(json_of(files.read(described)))
        except (InvalidInput, ValueError) as error:
            yield Failed(where=described, reason=str(error)[:300])
    yield from read_json_items(
        files,
        name,
        "message",
        lambda fields: [_package_message(fields, folder, channel, options)],
        may_be_empty=True,
    )


def _package_message(fields: dict[str, Any], folder: str, channel: dict[str, Any], options: ReadOptions) -> Record:
    occurred_at = as_moment(fields.get("Timestamp"))
    if occurred_at is None:
        raise InvalidInput("the message has no Timestamp", field="Timestamp")
    return message(
        _conversation(
            as_text(channel.get("id")) or folder,
            as_text(channel.get("name")),
            occurred_at.astimezone(UTC).date().isoformat(),
        ),
        as_text(fields.get("ID")),
        role="user",
        name=options.user,
        text=as_text(fields.get("Contents")),
        occurred_at=occurred_at,
        is_own_words=True,
    )


def _match(files: SourceFiles) -> Match:
    is_package = bool(files.named("messages.json") and files.named("channel.json"))
    return Match.CERTAIN if is_package or has_signs(files, (b'"guild"', b'"channel"')) else Match.NONE


IMPORTERS = (
    Importer(
        name="discord",
        files="JSON of DiscordChatExporter, or Discord's own package",
        content="messages by name, a session for each day",
        match=_match,
        read=_read,
    ),
)
