"""Import formats: the reader of each format, and how a format is recognised."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Any

from recollect.api.importers.chatgpt_import import conversation_files, read_chatgpt
from recollect.api.importers.claude_import import read_claude
from recollect.api.importers.discord_import import read_discord
from recollect.api.importers.graphiti_import import read_graphiti
from recollect.api.importers.json_lines import read_json_lines
from recollect.api.importers.jsonl_import import read_event
from recollect.api.importers.letta_import import read_letta
from recollect.api.importers.mcp_memory_import import read_mcp_memory
from recollect.api.importers.mem0_import import read_mem0
from recollect.api.importers.notes_import import CURATED, read_notes
from recollect.api.importers.okf_import import is_bundle, read_okf
from recollect.api.importers.records import ExactEvent, ReadOptions, Record
from recollect.api.importers.slack_import import read_slack
from recollect.api.importers.source_files import SourceFiles
from recollect.api.importers.telegram_import import read_telegram
from recollect.events.errors import InvalidInput


def _read_jsonl(files: SourceFiles, options: ReadOptions) -> Iterator[Record]:
    """Yield the events of an export of Recollect, or of lines in the form of the HTTP route."""

    def event(fields: dict[str, Any], name: str) -> Record:
        namespace, event = read_event(fields, options.namespace)
        return ExactEvent(namespace=namespace, draft=event, where=f"{name}, event {event.id or event.type}")

    for name in files.names:
        yield from read_json_lines(files, name, lambda fields, name=name: [event(fields, name)])


Reader = Callable[[SourceFiles, ReadOptions], Iterator[Record]]

#: The reader of each format by its name.
READERS: dict[str, Reader] = {
    "chatgpt": read_chatgpt,
    "claude": read_claude,
    "kira": read_notes,
    "markdown": read_notes,
    "mem0": read_mem0,
    "letta": read_letta,
    "graphiti": read_graphiti,
    "mcp-memory": read_mcp_memory,
    "telegram": read_telegram,
    "discord": read_discord,
    "slack": read_slack,
    "okf": read_okf,
    "jsonl": _read_jsonl,
}
#: The format whose events have namespaces of their own.
WITH_NAMESPACES = "jsonl"

#: What the beginning of a file has, by format; the first that has all of its words is taken.
_SIGNS: tuple[tuple[str, tuple[bytes, ...]], ...] = (
    ("chatgpt", (b'"mapping"', b'"parent"')),
    ("claude", (b'"chat_messages"',)),
    ("claude", (b'"conversations_memory"',)),
    ("telegram", (b'"date_unixtime"',)),
    ("telegram", (b'"personal_information"', b'"chats"')),
    ("discord", (b'"guild"', b'"channel"')),
    ("letta", (b'"agents"', b'"blocks"')),
    ("graphiti", (b'"source_node_uuid"',)),
    ("graphiti", (b'"group_id"', b'"uuid"')),
    ("mcp-memory", (b'"entityType"',)),
    ("mcp-memory", (b'"relationType"',)),
    ("jsonl", (b'"payload"', b'"type"')),
    ("mem0", (b'"memory"',)),
    ("mem0", (b"SQLite format 3\x00",)),
    ("mem0", (b"---\nid:",)),
)


def recognise(files: SourceFiles) -> str:
    """Return the name of the format of a file, a folder or an archive.

    Raises:
        InvalidInput: no format has these files.
    """
    paths = [PurePosixPath(name) for name in files.names]
    names = {path.name for path in paths}
    if is_bundle(files):
        return "okf"
    if names.intersection(CURATED):
        return "kira"
    if "channels.json" in names and "users.json" in names:
        return "slack"
    if any(path.suffix == ".af" for path in paths):
        return "letta"
    for name in [*conversation_files(files)[:1], *files.named("result.json", "memories.json", "history.db")]:
        format = _by_content(files.peek(name))
        if format is not None:
            return format
    if "messages.json" in names and "channel.json" in names:
        return "discord"
    for name in files.names[:20]:
        format = _by_content(files.peek(name))
        if format is not None:
            return format
    if any(path.suffix == ".md" and path.parent.name == "memory" for path in paths):
        return "kira"
    if any(path.suffix == ".md" for path in paths):
        return "markdown"
    raise InvalidInput(
        f"no format is recognised; name it with --format, one of {', '.join(READERS)}", field=str(files.path)
    )


def _by_content(beginning: bytes) -> str | None:
    """Return the format of the file that begins so; None when there is none."""
    compact = beginning.replace(b'" :', b'":')
    return next((format for format, signs in _SIGNS if all(sign in compact for sign in signs)), None)
