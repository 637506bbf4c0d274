"""Receipt types: the fields of the receipt of an erasure, and of what an erasure would erase.

Times are texts in RFC 3339.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict


class ErasureScope(TypedDict):
    """The events that an erasure was asked for."""

    #: namespace, subject, session, message or retention.
    kind: str
    #: HMACs of the names, in hex; not of retention.
    pseudonyms: NotRequired[list[str]]
    #: Of retention: the times before which events of a type were erased.
    recorded_before: NotRequired[dict[str, str]]


class ErasedEvents(TypedDict):
    """The numbers of erased events."""

    #: Those that were derived from events that were asked for.
    derived: int
    by_type: dict[str, int]


class ErasedRange(TypedDict):
    """The erased events in the log, by which the log can be compared with a receipt."""

    log_id: str
    head: int
    #: In hex.
    hash: str
    #: Ranges of versions, both ends included.
    versions: list[list[int]]
    count: int
    #: The sha256 over the versions and leaves of the events, in hex.
    digest: str
    record_id: str | None


class DestroyedKeyItem(TypedDict):
    """A key that was destroyed."""

    kid: str
    alg: str
    wrapped_sha256: str
    destroyed_at: str


class Signature(TypedDict):
    """The signature of a receipt."""

    alg: str
    #: In hex.
    public_key: str
    signature: str


class Receipt(TypedDict):
    """The signed record of an erasure."""

    #: The version of the format.
    v: int
    receipt_id: str
    erasure_id: str
    namespace: str
    scope: ErasureScope
    reason: str | None
    requested_by: str | None
    requested_at: str
    completed_at: str
    log: ErasedRange
    events: ErasedEvents
    keys: list[DestroyedKeyItem]
    #: Each store, and how the events were removed from it.
    targets: list[dict[str, Any]]
    #: What the erasure does not reach.
    exclusions: list[str]
    software: dict[str, str]
    prev_receipt_sha256: str | None
    sig: Signature


class ErasurePreview(TypedDict):
    """The numbers of events that an erasure would erase."""

    namespace: str
    scope: str
    dry_run: Literal[True]
    events: int
    derived: int
    by_type: dict[str, int]
    #: The version of the namespace that was read.
    head: int
