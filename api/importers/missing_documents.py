"""Missing documents: documents of a folder of notes whose file is gone, or has another name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from operator import attrgetter
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct

from recollect.api.importers.imported_records import short_hash
from recollect.events.backends.log import EventLog
from recollect.events.envelope import EventDraft, RecordedEvent
from recollect.events.intake.quarantine import imported_id
from recollect.events.validation import draft
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.read_models.read_models import ReadModels

_PAGE_ROWS = 500
#: Times that imports remove one document.
_REMOVALS_MAX = 1_000


class MissingDocument(Struct, frozen=True, kw_only=True):
    """A document that an earlier import made, and that has no file."""

    #: The path of the file that it had within its folder.
    path: str
    #: Whether an import that has no file of this name brings the same text under another one.
    is_renamed: bool
    removal: EventDraft


def missing_documents(
    data: Path, log: EventLog, namespace: str, form: str, folder: str, read: Mapping[str, str | None]
) -> list[MissingDocument]:
    """Return the documents that imports of this folder made, and that are not among those that were read.

    What a user changed, or brought back by an undo, stays.

    Parameters:
        form: the name of the format.
        folder: the name of the folder. Documents of earlier versions have none, and may be of any folder.
        read: the ids of the documents that were read, each with the hash of its text when the log did not have it.
    """
    with closing(ReadModels(data, log)) as read_models:
        read_models.catch_up(namespace)
        with read_models.reading(namespace) as snapshot:
            return sorted(_missing(log, namespace, form, folder, read, snapshot), key=attrgetter("path"))


def _missing(
    log: EventLog, namespace: str, form: str, folder: str, read: Mapping[str, str | None], snapshot: Snapshot
) -> Iterator[MissingDocument]:
    new_texts = set(read.values())
    for row in _documents(snapshot):
        id, metadata = str(row["id"]), orjson.loads(row["metadata"])
        if id in read or metadata.get("folder", folder) != folder:
            continue
        [latest] = log.read(namespace, after=int(row["version"]) - 1, limit=1)
        removals = import_removals(log, namespace, form, id)
        is_undone = bool(removals) and removals[-1].version > latest.version
        if latest.id.startswith(imported_id(form, "")) and not is_undone:
            removal_id = _removal_id(form, id, len(removals))
            removal = draft({"id": removal_id, "type": "document.removed", "payload": {"document_id": id}})
            yield MissingDocument(
                path=str(metadata.get("path", id)), is_renamed=short_hash(row["text"]) in new_texts, removal=removal
            )


def _documents(snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    """Yield the rows of all documents."""
    rows = snapshot.pages.rows("documents", "", limit=_PAGE_ROWS)
    while rows:
        yield from rows
        rows = snapshot.pages.rows("documents", str(rows[-1]["id"]), limit=_PAGE_ROWS)


def import_removals(log: EventLog, namespace: str, form: str, document_id: str) -> list[RecordedEvent]:
    """Return the events by which imports removed a document, oldest first."""
    removals: list[RecordedEvent] = []
    while len(removals) < _REMOVALS_MAX:
        event = log.find(namespace, _removal_id(form, document_id, len(removals)))
        if event is None:
            break
        removals.append(event)
    return removals


def _removal_id(form: str, document_id: str, number: int) -> str:
    return imported_id(form, short_hash("removed", document_id, str(number)))
