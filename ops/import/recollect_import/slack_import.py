"""Slack import: an export of a workspace, with one file for each channel and day."""

from __future__ import annotations

import html
import re
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
    json_of,
    message,
)
from recollect.api.importers.importer import Importer, Match
from recollect.api.importers.json_records import read_json_items
from recollect.api.importers.source_files import SourceFiles
from recollect.events.errors import InvalidInput

_DAY = re.compile(r"(?P<day>\d{4}-\d{2}-\d{2})\.json")
#: `<@U1>`, `<@U1|ann>`, `<#C1|general>`, `<!here>`, `<https://…|label>`
_LINK = re.compile(r"<(?P<sign>[@#!]?)(?P<target>[^<>|\n]{1,500})(?:\|(?P<label>[^<>\n]{0,500}))?>")
#: Subtypes of messages that a person or a bot wrote; others report joins, topics and pins.
_WRITTEN = frozenset({"", "bot_message", "me_message", "thread_broadcast", "file_share"})


def _read(files: SourceFiles, _: ReadOptions) -> Iterator[Record]:
    """Yield the messages of each channel; the messages of a day are a session. Mentions get the names of users.json."""
    users = _users(files)
    days = [name for name in files.names if _DAY.fullmatch(PurePosixPath(name).name)]
    if not days:
        yield Failed(where=str(files.path), reason="has no channel folder with YYYY-MM-DD.json")
    for name in days:
        path = PurePosixPath(name)
        channel = path.parent.name or "channel"
        conversation = ImportedConversation(id=f"{channel}/{path.stem}", title=f"#{channel}")
        yield from read_json_items(
            files,
            name,
            "message",
            lambda fields, about=conversation: [_message(fields, about, users)],
            may_be_empty=True,
        )


def _users(files: SourceFiles) -> dict[str, str]:
    """Return the names of users by id; none when users.json is missing or damaged."""
    users: dict[str, str] = {}
    for name in files.named("users.json", "org_users.json"):
        try:
            listed = as_list(json_of(files.read(name)))
        except (InvalidInput, ValueError):
            continue
        for user in map(as_object, listed):
            profile = as_object(user.get("profile"))
            names = (profile.get("real_name"), profile.get("display_name"), user.get("real_name"), user.get("name"))
            users[as_text(user.get("id"))] = next(filter(None, map(as_name, names)), as_text(user.get("id")))
    return users


def _message(fields: dict[str, Any], conversation: ImportedConversation, users: dict[str, str]) -> Record:
    subtype = as_text(fields.get("subtype"))
    if fields.get("type") != "message" or subtype not in _WRITTEN:
        return Skipped(reason="service message")
    occurred_at, id = as_moment(fields.get("ts")), as_text(fields.get("ts"))
    if occurred_at is None:
        raise InvalidInput("the message has no ts", field="ts")
    user = as_text(fields.get("user"))
    is_bot = subtype == "bot_message" or (bool(fields.get("bot_id")) and not user)
    profile = as_object(fields.get("user_profile"))
    names = (users.get(user), profile.get("real_name"), fields.get("username"), user or fields.get("bot_id"))
    thread = as_text(fields.get("thread_ts"))
    return message(
        conversation,
        id,
        role="assistant" if is_bot else "user",
        name=next(filter(None, map(as_name, names)), None),
        text=_readable(as_text(fields.get("text")), users),
        occurred_at=occurred_at,
        attachments=[
            {
                "media_type": as_name(file.get("mimetype")) or "application/octet-stream",
                "caption": as_text(file.get("name")),
            }
            for file in map(as_object, as_list(fields.get("files")))
            if as_text(file.get("name"))
        ],
        metadata={"thread": thread} if thread and thread != id else None,
    )


def _readable(text: str, users: dict[str, str]) -> str:
    """Return a text with names instead of ids, and without Slack's escapes."""

    def replaced(match: re.Match[str]) -> str:
        sign, target, label = match["sign"], match["target"], match["label"]
        if sign == "@":
            return f"@{users.get(target) or label or target}"
        if sign:
            return f"{sign if sign == '#' else '@'}{label or target}"
        return f"{label} ({target})" if label and label != target else target

    return html.unescape(_LINK.sub(replaced, text))


def _match(files: SourceFiles) -> Match:
    return Match.CERTAIN if files.named("channels.json") and files.named("users.json") else Match.NONE


IMPORTERS = (
    Importer(
        name="slack",
        files="the zip of a workspace",
        content="messages with the names of `users.json`, a session for each day",
        match=_match,
        read=_read,
    ),
)
