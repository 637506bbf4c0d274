"""The hash chain that makes the log tamper-evident.

An event's *leaf* is sha256 over its header and stored bytes; its *hash* is sha256 over the previous event's hash and
its own leaf. Checking the links needs only leaves, so bytes that must be forgotten one day leave the chain whole.
"""

from __future__ import annotations

from hashlib import sha256

import orjson

from recollect.events.envelope import EventDraft, RecordedEvent

#: The first link of every chain: the hash "before" version 1.
GENESIS = bytes(32)


def leaf(
    namespace: str, version: int, event_id: str, occurred_at_us: int, recorded_at_us: int, event: EventDraft
) -> bytes:
    """Return the 32 bytes that stand for one event.

    The header is a JSON array on one line, so the newline behind it separates it from the stored bytes without doubt.
    """
    header = orjson.dumps(
        (
            namespace,
            version,
            event_id,
            event.type,
            event.schema_version,
            occurred_at_us,
            recorded_at_us,
            event.session_id,
            event.actor,
            event.causation_id,
            event.correlation_id,
            event.encoding,
        )
    )
    return sha256(b"%b\n%b" % (header, event.payload)).digest()


def link(previous_hash: bytes, event_leaf: bytes) -> bytes:
    """Return the hash that ties `event_leaf` to everything before it."""
    return sha256(previous_hash + event_leaf).digest()


def leaf_of(event: RecordedEvent) -> bytes:
    """Return the leaf that the event's header and stored bytes give."""
    draft = EventDraft(
        event.id,
        event.type,
        event.schema_version,
        None,
        event.session_id,
        event.actor,
        event.causation_id,
        event.correlation_id,
        event.encoding,
        event.payload,
    )
    return leaf(event.namespace, event.version, event.id, event.occurred_at_us, event.recorded_at_us, draft)
