"""References of events to memories: an id that the namespace does not have is refused, as it would have no effect."""

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

#: Which field of a payload refers to what, by event type.
_FIELDS: dict[str, tuple[str, Referent]] = {
    "fact.retracted": ("fact_id", "fact"),
    "fact.corrected": ("corrects", "fact"),
    "procedure.used": ("procedure_id", "procedure"),
    "document.removed": ("document_id", "document"),
    "memory.pinned": ("memory_id", "memory"),
    "memory.invalidated": ("memory_id", "memory"),
    # Its trace may have given way to newer ones, so the trace's id is not checked.
    "retrieval.rated": ("memory_ids", "item"),
}
#: Where the ids of each kind are listed.
_LISTED: dict[Referent, str] = {
    "fact": "`facts` lists the ids; a fact that was stated again keeps its first id",
    "procedure": "`procedures` lists the ids",
    "document": "`documents` lists the ids",
    "memory": "`episodes`, `facts`, `preferences`, `procedures` and `relationships` list the ids",
    "item": "use the ids that the retrieval returned, each in the namespace that it names",
}


class _Reference(NamedTuple):
    referent: Referent
    id: str
    field: str


def has_references(drafts: Sequence[EventDraft]) -> bool:
    """Return whether `check_references` has anything to check: most batches pay for nothing but this."""
    return any(draft.type in _FIELDS for draft in drafts)


def check_references(log: EventLog, read_models: ReadModels, namespace: str, drafts: Sequence[EventDraft]) -> None:
    """Check that what the events of a producer refer to is there: in the caught-up read model, or in the same batch.

    An event that is recorded already is not checked, since it is answered as a duplicate. A read model that cannot be
    brought up to date refuses nothing: it cannot tell what is unknown.

    Raises:
        NotFound: an id is unknown; its field is named. InvalidNamespace: the name.
    """
    check_namespace(namespace)
    wanted = list(_references(log, namespace, drafts))
    if not wanted:
        return
    try:
        if read_models.catch_up(namespace).behind > 0:
            return
        with read_models.reading(namespace) as snapshot:
            unknown = next((one for one in wanted if not snapshot.memory_ids.is_known(one.referent, one.id)), None)
    except StorageError:
        # An append depends on the log alone.
        return
    if unknown is not None:
        noun = "memory" if unknown.referent == "item" else unknown.referent
        raise NotFound(
            f"namespace {namespace!r} has no {noun} with the id {unknown.id!r}; {_LISTED[unknown.referent]}",
            field=unknown.field,
        )


def _references(log: EventLog, namespace: str, drafts: Sequence[EventDraft]) -> Iterator[_Reference]:
    """Yield the ids that have to be looked up."""
    new = {draft.id for draft in drafts if draft.id is not None}
    new |= {orjson.loads(draft.payload)["document_id"] for draft in drafts if draft.type == "document.added"}
    for number, draft in enumerate(drafts):
        if draft.type not in _FIELDS or (draft.id is not None and log.find(namespace, draft.id) is not None):
            continue
        name, referent = _FIELDS[draft.type]
        payload: dict[str, Any] = orjson.loads(draft.payload)
        value: str | list[str] | None = payload.get(name)
        field = f"events.{number}.payload.{name}"
        if isinstance(value, str):
            named = [(value, field)]
        else:
            named = [(id, f"{field}.{at}") for at, id in enumerate(value or ())]
        yield from (_Reference(referent, id, where) for id, where in named if id not in new)
