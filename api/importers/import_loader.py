"""Import loader: appends the records of a reader in batches, and reports what became of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson
from msgspec import Struct

from recollect.api.importers.imported_records import (
    ExactEvent,
    Failed,
    ImportedConversation,
    ImportedEnding,
    ImportedEvent,
    ImportReport,
    Record,
    Skipped,
    as_name,
    short_hash,
)
from recollect.api.importers.missing_documents import MissingDocument
from recollect.api.settings import PrivacySettings
from recollect.events.backends.log import EventLog
from recollect.events.counted_nouns import counted
from recollect.events.envelope import Appended, EventDraft, microseconds
from recollect.events.errors import Erased, EventIdConflict, InvalidInput
from recollect.events.intake.quarantine import IMPORTED_LABEL, OTHERS_LABEL, imported_id, with_quarantine
from recollect.events.intake.screening import screen
from recollect.events.limits import BATCH_EVENTS_MAX, NAME_CHARS_MAX, REQUEST_BYTES_MAX
from recollect.events.progress import OnCount
from recollect.events.validation import draft

#: The type whose payload has labels, of those that readers yield.
_LABELLED_TYPES = frozenset({"message.added", "observation.recorded", "document.added"})
_CHANGED = "imported before with other content"
_ERASED = "erased before"
#: Times that a memory ends and is open again by imports.
_TURNS_MAX = 1_000


class LoadOptions(Struct, frozen=True, kw_only=True):
    """The options of an import."""

    #: The name of the format, a part of the ids.
    format: str
    #: The namespace of all events; None: each event's own, which only an export of Recollect has.
    namespace: str | None = None
    #: Leave out what happened before.
    since: datetime | None = None
    #: The largest number of items to import; None: all.
    items_max: int | None = None
    #: Append nothing, and report what would be appended.
    dry_run: bool = False
    #: The name of the folder whose files are documents; None: they are not files of a folder.
    folder: str | None = None
    #: Remove the documents that have no file any more.
    delete_missing: bool = False


def load(
    log: EventLog | None,
    records: Iterable[Record],
    options: LoadOptions,
    privacy: PrivacySettings,
    on_progress: OnCount,
    returned: Callable[[str, Sequence[EventDraft]], Sequence[EventDraft]] = lambda _, __: (),
    missing: Callable[[str, Mapping[str, str | None]], Sequence[MissingDocument]] = lambda _, __: (),
) -> ImportReport:
    """Append the records; the same records again append nothing.

    Parameters:
        log: None with `dry_run`, when there is no log yet.
        returned: returns the documents of a namespace to append again, of those that the log has already.
        missing: returns the documents of a namespace, of the same folder, that were not read.

    Raises:
        StorageError: the disk; the batches before it are appended, and the same import again adds the rest.
    """
    loader = _Loader(log, options, privacy, on_progress)
    for record in records:
        if not loader.add(record):
            break
    loader.flush()
    loader.add_endings()
    loader.flush()
    if log is not None and loader.repeated:
        loader.add_again(returned)
    loader.remove(missing)
    return loader.report


class _Loader:
    """The batch at hand and the report."""

    def __init__(
        self, log: EventLog | None, options: LoadOptions, privacy: PrivacySettings, on_progress: OnCount
    ) -> None:
        self._log = log
        self._options = options
        self._privacy = privacy
        self._on_progress = on_progress
        self._since_us = None if options.since is None else microseconds(options.since)
        self._namespace = ""
        self._batch: list[EventDraft] = []
        self._batch_bytes = 0
        self._items = 0
        self._session: str | None = None
        self._endings: list[ImportedEnding] = []
        self._open_keys: set[str] = set()
        #: Hashes of what a dry run would have appended, to report repetitions within a file.
        self._seen: dict[int, int] = {}
        #: The documents of this format, each with the hash of its text when it is new, None when the log has it.
        self.documents: dict[str, str | None] = {}
        #: Documents of this format that the log has already, by their ids; the last one of an id counts.
        self.repeated: dict[str, EventDraft] = {}
        self.report = ImportReport(format=options.format, is_dry_run=options.dry_run)

    def add(self, record: Record) -> bool:
        """Add a record; return False when the limit of items is reached."""
        if isinstance(record, Skipped):
            self.report.seen += record.count
            self.report.skip(record.reason, record.count)
            return True
        if isinstance(record, ImportedEnding):
            if record.is_open:
                self._open_keys.add(record.key)
            if record.otherwise is None or self._has(record.key):
                self._endings.append(record)
                return True
            record = record.otherwise
        self.report.seen += 1
        if isinstance(record, Failed):
            self.report.fail(record)
            return True
        try:
            drafts, namespace = self._drafts(record)
        except InvalidInput as error:
            self.report.fail(Failed(where=record.where, reason=f"{error.field}: {error.reason}"))
            return True
        if self._is_too_old(drafts[-1]):
            self.report.skip("before --since")
            return True
        if self._items == self._options.items_max:
            self.report.seen -= 1
            return False
        self._items += 1
        self._append(namespace, drafts)
        return True

    def add_endings(self) -> None:
        """Add the ends of memories, after everything that states one."""
        for record in self._endings:
            event = self._ending(record) if record.is_open or record.key not in self._open_keys else None
            if event is not None and not self.add(event):
                return

    def flush(self) -> None:
        """Append the batch."""
        if not self._batch:
            return
        for event, outcome in self._recorded(self._batch):
            if event.type == "document.added" and str(event.id).startswith(imported_id(self._options.format, "")):
                payload: dict[str, Any] = orjson.loads(event.payload)
                document_id: str = payload["document_id"]
                self.documents[document_id] = short_hash(payload["text"]) if outcome == "new" else None
                self.repeated.pop(document_id, None)
                self.repeated |= {document_id: event} if outcome == "duplicate" else {}
            match outcome:
                case "new":
                    self.report.add(self._namespace, event)
                case "duplicate":
                    self.report.duplicates += event.type != "memory.quarantined"
                case reason:
                    self.report.skip(reason)
        self._batch = []
        self._batch_bytes = 0
        self._on_progress(self.report.seen)

    def add_again(self, returned: Callable[[str, Sequence[EventDraft]], Sequence[EventDraft]]) -> None:
        """Append those of the repeated documents that an import of another text has replaced."""
        for document in returned(self._namespace, [*self.repeated.values()]):
            self.report.duplicates -= 1
            self._append(self._namespace, with_quarantine([document], imported=True))
        self.flush()

    def remove(self, missing: Callable[[str, Mapping[str, str | None]], Sequence[MissingDocument]]) -> None:
        """Remove documents without a file: those that have another name now, and with `delete_missing` all others.

        A folder in which less of the earlier documents is there than missing may be another folder.
        """
        namespace, is_read = self._options.namespace or "", not self.report.failures
        documents: Sequence[MissingDocument] = missing(namespace, self.documents) if is_read else ()
        kept = sum(text is None for text in self.documents.values())
        gone = sum(not document.is_renamed for document in documents)
        removes_all = self._options.delete_missing and is_read and gone <= kept
        if self._options.delete_missing and not removes_all:
            counts = f"of earlier imports, {counted(gone, 'document')} would go and {kept:,} would stay"
            reason = f"{counts}: is it the same folder?" if is_read else "some files could not be read"
            self.report.fail(Failed(where="--delete-missing", reason=f"nothing was removed; {reason}"))
        for document in documents:
            if document.is_renamed or removes_all:
                self.report.removed[document.path] = str(document.removal.id)
                self._append(namespace, [document.removal])
            else:
                self.report.missing.append(document.path)
        self.flush()

    def _append(self, namespace: str, drafts: list[EventDraft]) -> None:
        """Add the drafts of one item to the batch."""
        size = sum(len(event.payload) for event in drafts)
        is_full = len(self._batch) + len(drafts) > BATCH_EVENTS_MAX or self._batch_bytes + size > REQUEST_BYTES_MAX
        if is_full or namespace != self._namespace:
            self.flush()
        self._namespace = namespace
        self._batch += drafts
        self._batch_bytes += size

    def _drafts(self, record: ImportedEvent | ExactEvent) -> tuple[list[EventDraft], str]:
        """Return the events of a record, screened, and their namespace."""
        if isinstance(record, ExactEvent):
            event = screen(record.draft, self._privacy.policies(record.namespace))
            # An export has the quarantines of its labelled events.
            return [event] if b'"labels"' in event.payload else with_quarantine([event]), record.namespace
        namespace = self._options.namespace or ""
        policies = self._privacy.policies(namespace)
        events = [screen(self._draft(record), policies)]
        drafts = with_quarantine(events, imported=True)
        conversation = record.conversation
        if conversation is None or conversation.id == self._session or self._is_too_old(events[0]):
            return drafts, namespace
        session = screen(self._session_draft(conversation), policies)
        self._session = conversation.id
        return [session, *drafts], namespace

    def _ending(self, record: ImportedEnding) -> ImportedEvent | None:
        """Return the event that ends a memory of an earlier import, or undoes the end that an import appended.

        The ends and their undoings have numbered keys in turn. None when there is nothing to end or to undo.
        """
        if not self._has(record.key):
            return None

        def key_of(turn: int) -> str:
            return f"{record.key}:ended:{turn}" if turn else f"{record.key}:ended"

        turn = next((turn for turn in range(_TURNS_MAX) if not self._has(key_of(turn))), _TURNS_MAX - 1)
        if record.is_open:
            if turn % 2 == 0:
                return None
            undo = {"event_id": self._id(key_of(turn - 1))}
            return ImportedEvent(key=key_of(turn), fields={"type": "edit.undone", "payload": undo}, where=record.where)
        # One that is ended already is ended by the same event, which the log has.
        payload = {"memory_id": self._id(record.key), "ended_at": record.ended_at}
        key = key_of(turn - turn % 2)
        return ImportedEvent(key=key, fields={"type": "memory.ended", "payload": payload}, where=record.where)

    def _id(self, key: str) -> str:
        return imported_id(self._options.format, short_hash(key))

    def _has(self, key: str) -> bool:
        """Return whether the log has the event of a key."""
        return self._log is not None and self._log.find(self._options.namespace or "", self._id(key)) is not None

    def _draft(self, record: ImportedEvent) -> EventDraft:
        """Return the event of a record with its id, session and label."""
        fields = dict(record.fields)
        kind = self._options.format
        fields["id"] = self._id(record.key)
        if record.conversation is not None:
            fields["session_id"] = session_id(kind, record.conversation)
        payload: dict[str, Any] = dict(fields["payload"])
        if fields["type"] in _LABELLED_TYPES:
            payload["labels"] = sorted([IMPORTED_LABEL, *([] if record.is_own_words else [OTHERS_LABEL])])
        if fields["type"] == "document.added" and self._options.folder is not None:
            payload["metadata"] = payload["metadata"] | self._folder(fields["id"])
        if fields["type"] == "message.added":
            payload["metadata"] = {"import": kind, **payload.get("metadata", {})}
        return draft(fields | {"payload": payload}, field=fields["type"])

    def _folder(self, event_id: str) -> dict[str, str]:
        """Return the folder of a document as it is recorded: the same event has it under every name of the folder."""
        recorded = None if self._log is None else self._log.find(self._options.namespace or "", event_id)
        if recorded is None:
            return {"folder": str(self._options.folder)}
        metadata: dict[str, Any] = recorded.data().get("metadata", {})
        return {name: value for name, value in metadata.items() if name == "folder"}

    def _session_draft(self, conversation: ImportedConversation) -> EventDraft:
        """Return the start of a conversation."""
        kind = self._options.format
        title = as_name(conversation.title)
        fields: dict[str, Any] = {
            "id": imported_id(kind, short_hash("session", conversation.id)),
            "type": "session.started",
            "session_id": session_id(kind, conversation),
            "payload": {"channel": kind, "metadata": {"title": title} if title else {}},
        }
        if conversation.started_at is not None:
            fields["occurred_at"] = conversation.started_at
        return draft(fields, field="session")

    def _is_too_old(self, event: EventDraft) -> bool:
        """Return whether an event happened before `since`. What has no time is kept."""
        return self._since_us is not None and event.occurred_at_us is not None and event.occurred_at_us < self._since_us

    def _recorded(self, batch: list[EventDraft]) -> list[tuple[EventDraft, str]]:
        """Return what became of each event: `new`, `duplicate`, or the reason why it was left out."""
        if self._options.dry_run or self._log is None:
            return [(event, self._would_be(event)) for event in batch]
        try:
            recorded = self._log.append(self._namespace, batch)
        except (Erased, EventIdConflict) as error:
            if len(batch) == 1:
                return [(batch[0], _ERASED if isinstance(error, Erased) else _CHANGED)]
            middle = len(batch) // 2
            return self._recorded(batch[:middle]) + self._recorded(batch[middle:])
        return [*zip(batch, map(_outcome, recorded), strict=True)]

    def _would_be(self, event: EventDraft) -> str:
        """Return what would become of an event, for a dry run."""
        content = hash((event.type, event.session_id, event.payload))
        before = None if event.id is None else self._seen.get(hash(event.id))
        if before is not None:
            return "duplicate" if before == content else _CHANGED
        if event.id is not None:
            self._seen[hash(event.id)] = content
        recorded = None if self._log is None or event.id is None else self._log.find(self._namespace, event.id)
        if recorded is not None:
            is_same = (recorded.type, recorded.session_id, recorded.payload) == (
                event.type,
                event.session_id,
                event.payload,
            )
            return "duplicate" if is_same and event.occurred_at_us in (None, recorded.occurred_at_us) else _CHANGED
        return "new"


def session_id(kind: str, conversation: ImportedConversation) -> str:
    """Return the session of a conversation: its own id where it is short, and otherwise a hash of it."""
    plain = as_name(conversation.id) or ""
    own = f"{kind}:{plain}"
    if plain == conversation.id and len(own) <= NAME_CHARS_MAX:
        return own
    return f"{kind}:{short_hash(conversation.id)}"


def _outcome(event: Appended) -> str:
    return "duplicate" if event.duplicate else "new"
