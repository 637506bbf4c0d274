"""Hash chain: computes the hashes that make the log tamper-evident.

An event's *leaf* is sha256 over its header and stored bytes; its *hash* is sha256 over the previous event's hash and
its own leaf. The links can be verified without the stored bytes, so the chain stays valid when an event's bytes are
erased.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import orjson

from recollect.events.envelope import RecordedEvent

#: The first link of every chain: the previous hash of version 1.
GENESIS = bytes(32)
#: Fields of `RecordedEvent` before the payload: the header of the leaf.
_HEADER_FIELDS = RecordedEvent._fields.index("payload")


def leaf(header: tuple[Any, ...], payload: bytes) -> bytes:
    """Return the leaf of an event, 32 bytes.

    The header is a JSON array on one line, so the newline after it separates it from the stored bytes unambiguously.

    Parameters:
        header: the fields of `RecordedEvent` before the payload, in their order.
        payload: the stored bytes.
    """
    return sha256(b"\n".join((orjson.dumps(header), payload))).digest()


def link(previous_hash: bytes, event_leaf: bytes) -> bytes:
    """Return the hash of the event with `event_leaf`, which links it to all events before it."""
    return sha256(previous_hash + event_leaf).digest()


def leaf_of(event: RecordedEvent) -> bytes:
    """Return the leaf, computed from the event's header and stored bytes."""
    return leaf(event[:_HEADER_FIELDS], event.payload)
