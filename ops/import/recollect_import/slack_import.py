"""Slack import: an export of a workspace, with one file for each channel and day."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from rich.emoji import Emoji

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
#: `:+1::skin-tone-3:`, whose colour is left out, and `:partyparrot:`, an emoji of the workspace.
_SKIN = re.compile(r":skin-tone-[2-6]:")
_EMOJI = re.compile(r"(?<![\w:]):(?P<name>[a-z_+'-][a-z0-9_+'-]{0,100}):(?!\w)")


class _Names(NamedTuple):
    """The names of users and bots by id."""

    users: dict[str, str]
    #: The ids of users that are bots.
    bots: set[str]


def _read(files: SourceFiles, _: ReadOptions) -> Iterator[Record]:
    """Yield the messages of each channel; the messages of a day are a session. Mentions get the names of users.json."""
    names = _names(files)
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
            lambda fields, about=conversation: [_message(fields, about, names)],
            may_be_empty=True,
        )


def _names(files: SourceFiles) -> _Names:
    """Return the names of users.json; none when it is missing or damaged."""
    names = _Names({}, set())
    for name in files.named("users.json", "org_users.json"):
        try:
            listed = as_list(json_of(files.read(name)))
        except (InvalidInput, ValueError):
            continue
        for user in map(as_object, listed):
            profile, id = as_object(user.get("profile")), as_text(user.get("id"))
            own = (profile.get("real_name"), profile.get("display_name"), user.get("real_name"), user.get("name"))
            names.users[id] = next(filter(None, map(as_name, own)), id)
            # Messages of a bot have the one id or the other.
            names.users[as_text(profile.get("bot_id"))] = names.users[id]
            if user.get("is_bot") is True:
                names.bots.add(id)
    names.users.pop("", None)
    return names


def _message(fields: dict[str, Any], conversation: ImportedConversation, names: _Names) -> Record:
    subtype = as_text(fields.get("subtype"))
    if fields.get("type") != "message" or subtype not in _WRITTEN:
        return Skipped(reason="service message")
    occurred_at, id = as_moment(fields.get("ts")), as_text(fields.get("ts"))
    if occurred_at is None:
        raise InvalidInput("the message has no ts", field="ts")
    user = as_text(fields.get("user"))
    is_bot = subtype == "bot_message" or user in names.bots or (bool(fields.get("bot_id")) and not user)
    thread = as_text(fields.get("thread_ts"))
    return message(
        conversation,
        id,
        role="assistant" if is_bot else "user",
        name=_author(fields, user, names),
        text=_readable(as_text(fields.get("text")) or _attached_text(fields), names.users),
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


def _author(fields: dict[str, Any], user: str, names: _Names) -> str | None:
    """Return the name of a person or a bot; its id when no field and no list of users names it."""
    bot = as_text(fields.get("bot_id"))
    profile, of_bot = as_object(fields.get("user_profile")), as_object(fields.get("bot_profile"))
    own = (names.users.get(user), profile.get("real_name"), fields.get("username"), of_bot.get("name"))
    return next(filter(None, map(as_name, (*own, names.users.get(bot), user, bot))), None)


def _attached_text(fields: dict[str, Any]) -> str:
    """Return what a bot says in attachments alone, as those for reviews and builds do."""
    attached = [as_object(entry) for entry in as_list(fields.get("attachments"))]
    return "\n".join(filter(None, (as_text(entry.get("fallback")) or as_text(entry.get("text")) for entry in attached)))


def _readable(text: str, users: dict[str, str]) -> str:
    """Return a text with names instead of ids, with emoji instead of their codes, and without Slack's escapes."""

    def replaced(match: re.Match[str]) -> str:
        sign, target, label = match["sign"], match["target"], match["label"]
        if sign == "@":
            return f"@{users.get(target) or label or target}"
        if sign:
            return f"{sign if sign == '#' else '@'}{label or target}"
        return f"{label} ({target})" if label and label != target else target

    return html.unescape(_EMOJI.sub(_emoji, _LINK.sub(replaced, _SKIN.sub("", text))))


def _emoji(match: re.Match[str]) -> str:
    """Return an emoji; `(partyparrot)` for one that only a workspace has."""
    emoji = Emoji.replace(match.group())
    return f"({match['name'].replace('_', ' ')})" if emoji == match.group() else emoji


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
