"""Edit transfer: pins, endings and retractions of memories that an erasure makes again, applied to the new memories.

When one message of an extraction is erased, the extraction is erased and made again, and its memories get new ids. The
edits of memories whose own sources stay would be lost: a forgotten fact would come back. So the plan of the erasure
notes those edits, and this job repeats them on the memory with the same content, once that is extracted again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import orjson

from recollect.events.backends.log import each_page
from recollect.events.encryption.key_store import KeyStore
from recollect.events.envelope import DAY_US, RecordedEvent, datetime_of, now_us
from recollect.events.memory_kinds import ID_LETTERS
from recollect.events.validation import draft
from recollect.jobs.derivation.job_context import JobContext

#: The letter in the ids of the memories of each list of `facts.extracted`.
_LETTERS = ID_LETTERS | {"corrections": "c", "endings": "e"}
#: The fields that make two extracted items the same memory, besides their sources.
_CONTENT_FIELDS = ("subject", "predicate", "object", "category", "key", "value", "name", "source", "type", "target")
#: Types of events that edit one memory, and the field with its id.
EDITED_ID_FIELDS = {
    "memory.pinned": "memory_id",
    "memory.unpinned": "memory_id",
    "memory.ended": "memory_id",
    "memory.invalidated": "memory_id",
    "memory.forgotten": "memory_id",
    "fact.retracted": "fact_id",
    "procedure.used": "procedure_id",
}
#: Fields of these events that are kept: no ids and no texts.
_KEPT_FIELDS = ("kind", "ended_at", "outcome")
#: Age at which an edit whose memory was not extracted again is given up: language models do not repeat themselves.
_KEPT_US = 7 * DAY_US
_BATCH = 1_000


class MemoryEdit(NamedTuple):
    """An event that edits a memory."""

    #: The decrypted event.
    event: RecordedEvent
    #: The content of the memory, by which it is found when it is extracted again.
    memory: str


def extracted_memories(
    event_id: str, payload: Mapping[str, Any], is_gone: Callable[[str], bool]
) -> Iterator[tuple[str, str]]:
    """Yield the id and the content of each memory of an extraction none of whose sources is gone."""
    for name, letter in _LETTERS.items():
        for number, item in enumerate(payload.get(name, ())):
            sources: list[str] = item.get("source_events") or []
            if sources and not any(map(is_gone, sources)):
                content = [name, sources, *(item.get(field) for field in _CONTENT_FIELDS)]
                yield f"{event_id}#{letter}{number}", orjson.dumps(content).decode()


def store_edits(keys: KeyStore, namespace: str, edits: Sequence[MemoryEdit]) -> None:
    """Store edits durably, without ids and texts, before the events are erased."""
    if not edits:
        return
    rows = [
        (
            namespace,
            keys.pseudonym("event", namespace, event.id),
            keys.pseudonym("memory", namespace, memory),
            event.type,
            orjson.dumps({name: value for name, value in event.data().items() if name in _KEPT_FIELDS}).decode(),
            event.occurred_at_us,
        )
        for event, memory in edits
    ]
    with keys.transaction() as connection:
        connection.executemany(
            "INSERT OR IGNORE INTO care (namespace, event, fingerprint, type, fields, occurred_us, noted_us) "
            f"VALUES (?, ?, ?, ?, ?, ?, {now_us()})",
            rows,
        )


def transfer_edits(context: JobContext, namespace: str, now_us: int) -> int:
    """Repeat the edits of memories that were extracted again; return the number of appended events."""
    keys = context.log.keys
    if keys is None or not context.log.head(namespace).erasure_version:
        return 0
    with keys.transaction() as connection:
        rows: list[tuple[Any, ...]] = connection.execute(
            "SELECT number, event, fingerprint, type, fields, occurred_us, noted_us FROM care WHERE namespace = ?",
            (namespace,),
        ).fetchall()
    if not rows:
        return 0
    memory_ids = _memory_ids(context, keys, namespace, {row[2] for row in rows})
    drafts: list[Any] = []
    finished: list[tuple[int]] = []
    for number, event, fingerprint, type, fields, occurred_us, noted_us in rows:
        memory_id = memory_ids.get(fingerprint)
        if memory_id is not None:
            payload = {EDITED_ID_FIELDS[type]: memory_id, **orjson.loads(fields)}
            id, occurred_at = f"care:{event.hex()}:{memory_id}"[:200], datetime_of(occurred_us)
            drafts.append(draft({"id": id, "type": type, "occurred_at": occurred_at, "payload": payload}))
        if memory_id is not None or now_us - noted_us > _KEPT_US:
            finished.append((number,))
    if drafts:
        context.log.append(namespace, drafts)
    with keys.transaction() as connection:
        connection.executemany("DELETE FROM care WHERE number = ?", finished)
    return len(drafts)


def _memory_ids(context: JobContext, keys: KeyStore, namespace: str, wanted: set[bytes]) -> dict[bytes, str]:
    """Return the ids of the memories with these fingerprints."""
    memory_ids: dict[bytes, str] = {}
    for event in chain.from_iterable(each_page(context.log.read, namespace, limit=_BATCH)):
        if event.type == "facts.extracted":
            for memory_id, content in extracted_memories(event.id, event.data(), lambda _: False):
                fingerprint = keys.pseudonym("memory", namespace, content)
                if fingerprint in wanted:
                    memory_ids.setdefault(fingerprint, memory_id)
    return memory_ids
