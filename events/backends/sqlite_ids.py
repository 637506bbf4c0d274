"""SQLite ids: the stored forms of positions and event ids, and the search for ids that are recorded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import apsw
import orjson

from recollect.events.backends.group_commit_writer import AppendRequest
from recollect.events.backends.staged_encryption import StagedEncryption
from recollect.events.backends.staging import Key, StagedHead, StoredId
from recollect.events.late_pattern import late_pattern

#: Bits of a position that hold the version: 68 billion events a namespace, 134 million namespaces.
VERSION_BITS = 36
VERSION_MASK = (1 << VERSION_BITS) - 1
_UUID = late_pattern(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

# All ids of a namespace in one query, from the index alone: of 100 ids it takes 0.6 µs for each, and a query for each
# takes 4.
_ID_IN = "id IN (SELECT value FROM json_each(?2) UNION ALL SELECT unhex(value) FROM json_each(?3))"
_RECORDED_IDS = f"SELECT id FROM events WHERE position >> {VERSION_BITS} = ?1 AND {_ID_IN}"
_PRUNED_IDS = f"SELECT id FROM pruned_ids WHERE key = ?1 AND {_ID_IN}"


def stored_id(event_id: str) -> StoredId:
    """Return the stored form of an id: the 16 bytes of a UUID, any other text unchanged."""
    return bytes.fromhex(event_id.replace("-", "")) if _UUID.fullmatch(event_id) else event_id


def original_id(stored: StoredId) -> str:
    """Return the text of a stored id."""
    if not isinstance(stored, bytes):
        return stored
    digits = stored.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def recorded_ids(
    connection: apsw.Connection,
    requests: Iterable[AppendRequest],
    heads: Iterable[StagedHead],
    encryption: StagedEncryption | None,
) -> set[tuple[Key, StoredId]]:
    """Return the ids of `requests` that are recorded, or that an erased event had, each with the key of its head."""
    ids_by_name: dict[str, list[str]] = {}
    for request in requests:
        ids = [draft.id for draft in request.drafts if draft.id is not None]
        ids_by_name.setdefault(request.namespace, []).extend(ids)
    recorded: set[tuple[Key, StoredId]] = set()
    for head in heads:
        ids = ids_by_name[head.namespace] if head.version else []
        if head.erasure_version and encryption is not None:
            ids += [encryption.keys.erased_id(head.namespace, id) for id in ids]
        if ids:
            values = (head.key, *_json_lists([*map(stored_id, ids)]))
            rows: list[Any] = connection.execute(_RECORDED_IDS, values).fetchall()
            if head.pruned:
                rows += connection.execute(_PRUNED_IDS, values).fetchall()
            recorded.update((head.key, id) for (id,) in rows)
    return recorded


def _json_lists(stored: Sequence[StoredId]) -> tuple[str, str]:
    """Return ids as two lists: texts, and the hexadecimal digits of bytes, which JSON does not have."""
    texts = [id for id in stored if isinstance(id, str)]
    digits = [id.hex() for id in stored if isinstance(id, bytes)]
    return orjson.dumps(texts).decode(), orjson.dumps(digits).decode()
