"""Hash chain: computes the hashes that make the log tamper-evident.

An event's *leaf* is sha256 over its header and stored bytes; its *hash* is sha256 over the previous event's hash and
its own leaf. The links can be verified without the stored bytes, so the chain stays valid when an event's bytes are
erased.
"""

from __future__ import annotations

from hashlib import sha256

import orjson

from recollect.events.envelope import EventDraft, RecordedEvent

#: The first link of every chain: the previous hash of version 1.
GENESIS = bytes(32)


def leaf(
    namespace: str, version: int, event_id: str, occurred_at_us: int, recorded_at_us: int, event: EventDraft
) -> bytes:
    """Return the leaf of an event, 32 bytes.

    The header is a JSON array on one line, so the newline after it separates it from the stored bytes unambiguously.
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
    """Return the hash of the event with `event_leaf`, which links it to all events before it."""
    return sha256(previous_hash + event_leaf).digest()


def leaf_of(event: RecordedEvent) -> bytes:
    """Return the leaf, computed from the event's header and stored bytes."""
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
