"""Returned documents: documents whose file has an earlier text again, or is there again, after other imports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import orjson

from recollect.api.importers.imported_records import short_hash
from recollect.api.importers.missing_documents import import_removals
from recollect.events.backends.log import EventLog
from recollect.events.envelope import EventDraft
from recollect.events.intake.quarantine import imported_id, is_imported
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.read_models.read_models import ReadModels


def returned_documents(
    data: Path, log: EventLog, namespace: str, form: str, documents: Sequence[EventDraft]
) -> list[EventDraft]:
    """Return the documents that a later import replaced or removed, with new ids, which are the same in every import.

    What a user changed, removed or undid since stays.

    Parameters:
        form: the name of the format.
        documents: events of the type `document.added` that the log has already.
    """
    with closing(ReadModels(data, log)) as read_models:
        read_models.catch_up(namespace)
        with read_models.reading(namespace) as snapshot:
            return [*_returned(log, namespace, form, documents, snapshot)]


def _returned(
    log: EventLog, namespace: str, form: str, documents: Sequence[EventDraft], snapshot: Snapshot
) -> Iterator[EventDraft]:
    for document in documents:
        document_id: str = orjson.loads(document.payload)["document_id"]
        shown = snapshot.pages.row("documents", document_id)
        if shown is None:
            for removal in import_removals(log, namespace, form, document_id)[-1:]:
                yield document._replace(id=imported_id(form, short_hash(str(document.id), removal.id)))
            continue
        [latest] = log.read(namespace, after=int(shown["version"]) - 1, limit=1)
        earlier = log.find(namespace, str(document.id))
        is_undone = earlier is not None and earlier.version > latest.version
        if is_imported(latest.id) and latest.payload != document.payload and not is_undone:
            yield document._replace(id=imported_id(form, short_hash(str(document.id), latest.id)))
