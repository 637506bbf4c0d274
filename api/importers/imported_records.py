"""Import records: the records that format readers yield, and accessors for JSON of unknown shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, cast

import orjson
from msgspec import Struct, field

from recollect.api.importers.import_preview import LINES_MAX, preview_line
from recollect.events.counted_nouns import counted
from recollect.events.envelope import EventDraft
from recollect.events.errors import InvalidInput, RecollectError
from recollect.events.late_pattern import late_pattern
from recollect.events.limits import NAME_CHARS_MAX

#: Confidence in a fact that another program remembered: that of an extraction without a review.
IMPORTED_CONFIDENCE = 0.6

_CONTROLS = late_pattern(r"[\x00-\x1f\x7f]+")


class ImportedConversation(Struct, frozen=True, kw_only=True):
    """The conversation of a message; it becomes a session."""

    id: str
    title: str | None = None
    started_at: datetime | None = None


class ImportedEvent(Struct, frozen=True, kw_only=True):
    """An event to import, without its id and its session."""

    #: Its name within the format, from which its id is made: the same item has the same key in every export.
    key: str
    #: The fields of the event.
    fields: dict[str, Any]
    #: The position in the file, for the report.
    where: str
    #: None: it belongs to no conversation.
    conversation: ImportedConversation | None = None
    #: Whether the user of the memory said it. Anything else that looks like instructions waits for a review.
    is_own_words: bool = False


class ImportedEnding(Struct, frozen=True, kw_only=True):
    """The end of a memory that an earlier import stated, such as a task that is ticked now.

    Of several records with one key, such as a task that a note has twice, one that is open counts.
    """

    #: The key of the event that stated it; it has no end when the log has no such event.
    key: str
    where: str
    #: It is open, also when an earlier import ended it.
    is_open: bool = False
    #: None: the time of the import.
    ended_at: datetime | None = None
    #: What is imported when there is nothing to end.
    otherwise: ImportedEvent | None = None


class ExactEvent(Struct, frozen=True, kw_only=True):
    """An event of an export of Recollect, with its own id and namespace."""

    namespace: str
    draft: EventDraft
    where: str


class Skipped(Struct, frozen=True, kw_only=True):
    """Items that hold nothing to remember."""

    #: The reason, which the report counts, such as `tool output`.
    reason: str
    count: int = 1


class Failed(Struct, frozen=True, kw_only=True):
    """An item that could not be read."""

    where: str
    reason: str


Record = ImportedEvent | ImportedEnding | ExactEvent | Skipped | Failed


class ReadOptions(Struct, frozen=True, kw_only=True):
    """The options of a reader."""

    #: The name of the user in the bot's own messages; None: the user has no name there.
    user: str | None = None
    #: The namespace of an export's lines; None: each line's own.
    namespace: str | None = None

    @property
    def subject(self) -> str:
        """Return the subject of facts about the user."""
        return self.user or "user"


def guarded(where: str, read: Callable[[], Iterable[Record]]) -> Iterator[Record]:
    """Yield the records of one conversation or file; all of them, or one failure, so that a bad one stops no other."""
    try:
        yield from [*read()]
    except InvalidInput as error:
        yield Failed(where=where, reason=error.reason)
    except RecollectError as error:
        yield Failed(where=where, reason=str(error))
    except RecursionError:
        yield Failed(where=where, reason="nested too deeply")
    except orjson.JSONDecodeError as error:
        yield Failed(where=where, reason=f"is not JSON: {str(error)[:200]}")
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError, OSError) as error:
        yield Failed(where=where, reason=f"not of the expected shape: {type(error).__name__}: {str(error)[:200]}")


def json_of(raw: bytes) -> Any:
    """Return decoded JSON; raise `ValueError` when `raw` is not JSON."""
    return orjson.loads(raw)


def as_object(value: object) -> dict[str, Any]:
    """Return a value if it is a JSON object; an empty one otherwise."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """Return a value if it is a list; an empty one otherwise."""
    return cast(list[Any], value) if isinstance(value, list) else []


def as_text(value: object) -> str:
    """Return a text without spaces around it; a number as text; empty for anything else."""
    if isinstance(value, str):
        return value.strip()
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def as_name(value: object) -> str | None:
    """Return a text as a name: without control characters and not too long; None for an empty one."""
    return _CONTROLS.sub(" ", as_text(value))[:NAME_CHARS_MAX].strip() or None


def as_moment(value: object) -> datetime | None:
    """Return a time: seconds since 1970 as a number or digits, or ISO 8601, in UTC without a zone; None for others."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        text = as_text(value)
        if not text:
            return None
        if text.replace(".", "", 1).isdecimal() and len(text) > len("YYYYMMDD"):
            return datetime.fromtimestamp(float(text), UTC)
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError, OSError):
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def branch(nodes: Mapping[str, Any], last: object, parent: str) -> list[dict[str, Any]]:
    """Return the nodes of a tree from the root to the node `last`, each with its id; a cycle of parents ends it.

    Parameters:
        nodes: the nodes by id.
        parent: the field of a node with the id of the one before it.
    """
    nodes_back: dict[str, dict[str, Any]] = {}
    while isinstance(last, str) and last in nodes and last not in nodes_back:
        nodes_back[last] = {"id": last} | as_object(nodes[last])
        last = nodes_back[last].get(parent)
    return [*nodes_back.values()][::-1]


def short_hash(*parts: str) -> str:
    """Return the first 32 hex digits of the sha256 of texts."""
    return sha256("\x1f".join(parts).encode(errors="replace")).hexdigest()[:32]


def message(
    conversation: ImportedConversation,
    id: str,
    *,
    role: str,
    text: str,
    occurred_at: datetime | None,
    name: str | None = None,
    attachments: Sequence[Mapping[str, Any]] = (),
    is_own_words: bool = False,
    metadata: Mapping[str, Any] | None = None,
) -> Record:
    """Return a message of a conversation; skipped when it is empty."""
    if not text and not attachments:
        return Skipped(reason="empty message")
    payload: dict[str, Any] = {"role": role, "text": text}
    if name:
        payload["name"] = name
    if attachments:
        payload["attachments"] = [*attachments]
    payload["metadata"] = dict(metadata or {}) | {
        "conversation_id": conversation.id[:NAME_CHARS_MAX],
        "message_id": id[:NAME_CHARS_MAX],
    }
    fields: dict[str, Any] = {"type": "message.added", "payload": payload}
    if occurred_at is not None:
        fields["occurred_at"] = occurred_at
    return ImportedEvent(
        key=f"{conversation.id}:{id}",
        fields=fields,
        where=f"conversation {conversation.id}, message {id}",
        conversation=conversation,
        is_own_words=is_own_words,
    )


def knowledge(
    key: str, event_type: str, payload: Mapping[str, Any], *, where: str, occurred_at: datetime | None = None
) -> ImportedEvent:
    """Return a fact, a preference, an entity, a relationship or a document that another program remembered.

    A relationship without a date is inferred: the time of the import does not make it newer than what the user says.
    """
    fields: dict[str, Any] = {"type": event_type, "payload": dict(payload)}
    if occurred_at is not None:
        fields["occurred_at"] = occurred_at
    elif event_type == "relationship.stated":
        fields["payload"]["source_type"] = "inferred"
    return ImportedEvent(key=key, fields=fields, where=where)


class ImportReport(Struct):
    """What an import did, or with `dry_run` would do."""

    format: str
    is_dry_run: bool = False
    #: Items read: messages, facts, and items that were skipped or failed.
    seen: int = 0
    #: New events by type.
    imported: dict[str, int] = field(default_factory=dict[str, int])
    #: Events that the log has already.
    duplicates: int = 0
    #: Imported texts that wait for a review, since they look like instructions.
    quarantined: int = 0
    #: Numbers of items that were left out, by reason.
    skipped: dict[str, int] = field(default_factory=dict[str, int])
    #: The first failures, each with the position in the file.
    failed: list[Failed] = field(default_factory=list[Failed])
    #: The number of all failures.
    failures: int = 0
    #: The events that remove documents without a file, by the path of the file.
    removed: dict[str, str] = field(default_factory=dict[str, str])
    #: Files of documents of earlier imports that a folder does not have.
    missing: list[str] = field(default_factory=list[str])
    #: The namespaces with new events.
    namespaces: set[str] = field(default_factory=set[str])
    #: Of a dry run, the first statements of each type.
    preview: list[str] = field(default_factory=list[str])

    @property
    def added(self) -> int:
        """Return the number of new events."""
        return sum(self.imported.values())

    def add(self, namespace: str, event: EventDraft) -> None:
        """Count a new event."""
        self.namespaces.add(namespace)
        if event.type == "memory.quarantined":
            self.quarantined += 1
            return
        count = self.imported[event.type] = self.imported.get(event.type, 0) + 1
        line = preview_line(event) if self.is_dry_run and count <= LINES_MAX else None
        if line is not None:
            self.preview.append(line)

    def skip(self, reason: str, count: int = 1) -> None:
        """Count items that were left out."""
        self.skipped[reason] = self.skipped.get(reason, 0) + count

    def fail(self, failure: Failed) -> None:
        """Count a failure; the first `FAILURES_MAX` are reported."""
        self.failures += 1
        if len(self.failed) < FAILURES_MAX:
            self.failed.append(failure)

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON."""
        return {
            "format": self.format,
            "dry_run": self.is_dry_run,
            "seen": self.seen,
            "imported": self.imported,
            "duplicates": self.duplicates,
            "quarantined": self.quarantined,
            "skipped": self.skipped,
            "failed": [{"where": failure.where, "reason": failure.reason} for failure in self.failed],
            "failures": self.failures,
            "removed": self.removed,
            "missing": self.missing,
            "namespaces": sorted(self.namespaces),
            "preview": self.preview,
        }

    def as_text(self) -> str:
        """Return the report as lines for people."""
        if self.failed and not self.seen:
            return "\n".join(f"FAILED: {failure.where}: {failure.reason}" for failure in self.failed)
        kinds = ", ".join(f"{count} {event_type}" for event_type, count in sorted(self.imported.items()))
        lines = [
            f"{self.format}: {counted(self.seen, 'item')} seen",
            f"{'would import' if self.is_dry_run else 'imported'}: {self.added}{f' ({kinds})' if kinds else ''}",
            *(f"  {line}" for line in self.preview),
            f"there already: {self.duplicates}",
        ]
        if self.quarantined:
            lines.append(f"waiting for a review, since they look like instructions: {self.quarantined}")
        lines += [f"skipped: {count} ({reason})" for reason, count in sorted(self.skipped.items())]
        removed = "would remove, since it has no file" if self.is_dry_run else "removed, since it has no file"
        lines += [f"{removed}: {path} (event {event_id})" for path, event_id in self.removed.items()]
        if self.missing:
            more = ", …" if len(self.missing) > _MISSING_MAX else ""
            files = f"{counted(len(self.missing), 'document')} ({', '.join(self.missing[:_MISSING_MAX])}{more})"
            lines.append(f"imported before, and not in this folder: {files}; --delete-missing removes what has no file")
        lines += [f"FAILED: {failure.where}: {failure.reason}" for failure in self.failed]
        if self.failures > len(self.failed):
            lines.append(f"FAILED: {self.failures - len(self.failed)} more")
        return "\n".join(lines)


#: Files that are missing in a folder that a report names.
_MISSING_MAX = 10
#: Failures that a report names; a file of another shape fails at every item.
FAILURES_MAX = 100
