"""References: check that events name memories that exist, because an unknown id would have no effect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import orjson

from recollect.events.backends.log import EventLog
from recollect.events.envelope import EventDraft
from recollect.events.errors import NotFound, StorageError
from recollect.events.limits import check_namespace
from recollect.projections.queries.memory_id_queries import Referent
from recollect.projections.read_models.read_models import ReadModels

#: The payload field that holds an id, and the kind of memory it refers to, by event type.
_FIELDS: dict[str, tuple[str, Referent]] = {
    "fact.retracted": ("fact_id", "fact"),
    "fact.corrected": ("corrects", "fact"),
    "procedure.used": ("procedure_id", "procedure"),
    "document.removed": ("document_id", "document"),
    "memory.pinned": ("memory_id", "memory"),
    "memory.unpinned": ("memory_id", "memory"),
    "memory.ended": ("memory_id", "memory"),
    "memory.forgotten": ("memory_id", "forgettable"),
    "memory.invalidated": ("memory_id", "memory"),
    "edit.undone": ("event_id", "edit"),
    # The trace may have been removed for newer ones, so its id is not checked.
    "retrieval.rated": ("memory_ids", "item"),
}
#: The advice of the error, by kind: the lists that have the ids.
_ADVICE: dict[Referent, str] = {
    "fact": "`facts` lists the ids; a repeated fact keeps its first id",
    "procedure": "`procedures` lists the ids",
    "document": "`documents` lists the ids",
    "memory": "`episodes`, `facts`, `preferences`, `procedures` and `relationships` list the ids",
    "forgettable": "`kind` names documents and entities; the other lists have the ids",
    "entity": "`entities` lists the names",
    "edit": "give the id of an event that corrected, ended, pinned or forgot a memory",
    "item": "use the ids that the retrieval returned, each in the namespace that it names",
}


class _Reference(NamedTuple):
    """An id in a payload."""

    referent: Referent
    id: str
    field: str


def has_references(drafts: Sequence[EventDraft]) -> bool:
    """Return whether a draft refers to a memory. Most batches do not, and skip `check_references`."""
    return any(draft.type in _FIELDS for draft in drafts)


def check_references(log: EventLog, read_models: ReadModels, namespace: str, drafts: Sequence[EventDraft]) -> None:
    """Check that the memories that events refer to exist: in the caught-up read model, or in the same batch.

    Events that are in the log already are not checked, because the append returns them as duplicates. Nothing is
    refused when the read model cannot catch up with the log, because the missing events may have the ids.

    Raises:
        NotFound: an id is unknown; `field` names it. InvalidNamespace: the name.
    """
    check_namespace(namespace)
    references = list(_references(log, namespace, drafts)) if has_references(drafts) else []
    if not references:
        return
    try:
        if read_models.catch_up(namespace).behind > 0:
            return
        with read_models.reading(namespace) as snapshot:
            unknown = next((it for it in references if not snapshot.memory_ids.exists(it.referent, it.id)), None)
    except StorageError:
        # An append depends on the log alone.
        return
    if unknown is not None:
        noun = "memory" if unknown.referent in ("item", "forgettable") else unknown.referent
        raise NotFound(
            f"namespace {namespace!r} has no {noun} with the id {unknown.id!r}; {_ADVICE[unknown.referent]}",
            field=unknown.field,
        )


def _references(log: EventLog, namespace: str, drafts: Sequence[EventDraft]) -> Iterator[_Reference]:
    """Yield the references of new events to memories outside the batch."""
    new = {draft.id for draft in drafts if draft.id is not None}
    new |= {orjson.loads(draft.payload)["document_id"] for draft in drafts if draft.type == "document.added"}
    for number, draft in enumerate(drafts):
        if draft.type not in _FIELDS or (draft.id is not None and log.find(namespace, draft.id) is not None):
            continue
        name, referent = _FIELDS[draft.type]
        payload: dict[str, Any] = orjson.loads(draft.payload)
        if referent == "forgettable":
            referent = payload.get("kind", "memory")
            referent = "forgettable" if referent == "memory" else referent
        value: str | list[str] | None = payload.get(name)
        field = f"events.{number}.payload.{name}"
        if isinstance(value, str):
            ids = [(value, field)]
        else:
            ids = [(id, f"{field}.{index}") for index, id in enumerate(value or ())]
        yield from (_Reference(referent, id, path) for id, path in ids if id not in new)
