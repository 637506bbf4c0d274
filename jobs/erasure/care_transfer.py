"""Care transfer: pins, endings and retractions of memories that an erasure makes again, applied to the new memories.

When one message of an extraction is erased, the extraction is erased and made again, and its memories get new ids. The
care for memories whose own sources stay would be lost: a forgotten fact would come back. So the plan of the erasure
notes that care, and this job repeats it on the memory with the same content, once that is extracted again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from recollect.events.encryption.key_store import KeyStore
from recollect.events.envelope import DAY_US, RecordedEvent, datetime_of, now_us
from recollect.events.memory_kinds import ID_LETTERS
from recollect.events.validation import draft
from recollect.jobs.derivation.job_context import JobContext

#: The letter in the ids of the memories of each list of `facts.extracted`.
_LETTERS = ID_LETTERS | {"corrections": "c", "endings": "e"}
#: The fields that make two extracted items the same memory, besides their sources.
_CONTENT_FIELDS = ("subject", "predicate", "object", "category", "key", "value", "name", "source", "type", "target")
#: Types of events that care for one memory, and the field with its id.
CARE_FIELDS = {
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
#: Age at which care whose memory was not extracted again is given up: language models do not repeat themselves.
_KEPT_US = 7 * DAY_US
_BATCH = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Care:
    """An event that cares for a memory, without ids and texts."""

    #: HMAC of the id of the event.
    event: bytes
    fingerprint: bytes
    type: str
    fields: dict[str, Any]
    occurred_us: int


def extracted_memories(
    keys: KeyStore, event: RecordedEvent, payload: Mapping[str, Any], is_gone: Callable[[str], bool]
) -> Iterator[tuple[str, bytes]]:
    """Yield the id and the fingerprint of each memory of an extraction none of whose sources is gone."""
    for name, letter in _LETTERS.items():
        for number, item in enumerate(payload.get(name, ())):
            sources: list[str] = item.get("source_events") or []
            if sources and not any(map(is_gone, sources)):
                content = [name, sources, *(item.get(field) for field in _CONTENT_FIELDS)]
                text = orjson.dumps(content).decode()
                yield f"{event.id}#{letter}{number}", keys.pseudonym("memory", event.namespace, text)


def care_of(keys: KeyStore, event: RecordedEvent, payload: Mapping[str, Any], fingerprint: bytes) -> Care:
    """Return the care that an event takes of the memory with a fingerprint."""
    return Care(
        event=keys.pseudonym("event", event.namespace, event.id),
        fingerprint=fingerprint,
        type=event.type,
        fields={name: payload[name] for name in _KEPT_FIELDS if name in payload},
        occurred_us=event.occurred_at_us,
    )


def store_care(keys: KeyStore, namespace: str, notes: list[Care]) -> None:
    """Store care durably, before the events are erased."""
    if not notes:
        return
    rows = [
        (namespace, care.event, care.fingerprint, care.type, orjson.dumps(care.fields).decode(), care.occurred_us)
        for care in notes
    ]
    with keys.transaction() as connection:
        connection.executemany(
            "INSERT OR IGNORE INTO care (namespace, event, fingerprint, type, fields, occurred_us, noted_us) "
            f"VALUES (?, ?, ?, ?, ?, ?, {now_us()})",
            rows,
        )


def transfer_care(context: JobContext, namespace: str, now_us: int) -> int:
    """Repeat the care for memories that were extracted again; return the number of appended events."""
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
            payload = {CARE_FIELDS[type]: memory_id, **orjson.loads(fields)}
            drafts.append(
                draft(
                    {
                        "id": f"care:{event.hex()}:{memory_id}"[:200],
                        "type": type,
                        "occurred_at": datetime_of(occurred_us),
                        "payload": payload,
                    }
                )
            )
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
    after = 0
    while events := context.log.read(namespace, after=after, limit=_BATCH):
        for event in events:
            if event.type == "facts.extracted":
                for memory_id, fingerprint in extracted_memories(keys, event, event.data(), lambda _: False):
                    if fingerprint in wanted:
                        memory_ids.setdefault(fingerprint, memory_id)
        after = events[-1].version
    return memory_ids
