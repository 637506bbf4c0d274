"""Receipts: sign the record of an erasure, and verify it without any key of the erased events.

A receipt is self-contained JSON. Its signature covers all other fields; each receipt has the hash of the one before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Any

import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from recollect.events.backends.log import EventLog
from recollect.events.encryption.key_store import KeyStore
from recollect.events.envelope import RecordedEvent
from recollect.events.errors import InvalidInput

#: The version of the format.
FORMAT = 1
_ENCODING = orjson.OPT_SORT_KEYS
#: Events read at once.
_PAGE = 1_000
#: Events with content that `verify_receipt` names.
_PROBLEMS_MAX = 10


def signed(keys: KeyStore, fields: dict[str, Any]) -> bytes:
    """Return a receipt with `fields` and a signature, as JSON on one line."""
    public_key = keys.public_key
    signature = keys.signing_key.sign(orjson.dumps(fields, option=_ENCODING))
    sig = {"alg": "Ed25519", "public_key": public_key.hex(), "signature": signature.hex()}
    return orjson.dumps(fields | {"sig": sig}, option=_ENCODING)


class EventDigest:
    """The sha256 over the versions and leaves of erased events, which are added in the order of their versions."""

    def __init__(self, events: Iterable[RecordedEvent] = ()) -> None:
        self._sha256 = sha256()
        #: Number of events.
        self.count = 0
        for event in events:
            self.add(event)

    def add(self, event: RecordedEvent) -> None:
        """Add an event."""
        self._sha256.update(b"%d\n%b" % (event.version, event.leaf))
        self.count += 1

    @property
    def hex(self) -> str:
        """Return the digest of the events that were added, in hex."""
        return self._sha256.hexdigest()


def read_ranges(log: EventLog, namespace: str, ranges: Iterable[Sequence[int]]) -> Iterator[RecordedEvent]:
    """Yield the stored events of ranges of versions, both ends included; a missing event is left out."""
    for first, last in ranges:
        after = first - 1
        while after < last:
            page = log.read_stored(namespace, after=after, limit=min(_PAGE, last - after))
            if not page:
                break
            # After a gap in the versions, the page may have events over `last`.
            yield from (event for event in page if event.version <= last)
            after = page[-1].version


def verify_receipt(
    content: bytes, *, log: EventLog | None = None, public_key: str | None = None, previous: bytes | None = None
) -> list[str]:
    """Return the problems of a receipt; none when it holds.

    Parameters:
        log: the log of the erasure, to check that the events are erased there and that nothing else was changed.
        public_key: the expected key in hex, from a source that is trusted; the one in the receipt when None.
        previous: the receipt before it, in the printed form: none may be missing in between.

    Raises:
        InvalidInput: `content` is not a receipt.
    """
    try:
        fields: dict[str, Any] = orjson.loads(content)
        sig: dict[str, str] = fields.pop("sig")
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(sig["public_key"]))
        signature = bytes.fromhex(sig["signature"])
        versions: list[list[int]] = fields["log"]["versions"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(f"is not a receipt of an erasure ({error!r})", field="receipt") from None
    problems: list[str] = []
    try:
        key.verify(signature, orjson.dumps(fields, option=_ENCODING))
    except InvalidSignature:
        problems.append("the signature does not fit: the receipt was changed")
    if public_key is not None and sig["public_key"] != public_key:
        problems.append("the receipt was signed by another key")
    if previous is not None and fields.get("prev_receipt_sha256") != sha256(previous.strip()).hexdigest():
        problems.append("the other receipt is not the one before it: one is missing, or was changed")
    if log is not None:
        problems += _log_problems(fields, versions, log)
    return problems


def _log_problems(fields: dict[str, Any], versions: Sequence[Sequence[int]], log: EventLog) -> list[str]:
    """Return the differences between a receipt and the log."""
    if fields["log"]["log_id"] != log.log_id:
        return [f"the receipt is of another log, {fields['log']['log_id']}; this log is {log.log_id}"]
    namespace, recorded = fields["namespace"], fields["log"]
    problems: list[str] = []
    digest = EventDigest()
    for event in read_ranges(log, namespace, versions):
        digest.add(event)
        if not event.is_erased and len(problems) < _PROBLEMS_MAX:
            problems.append(f"version {event.version} still has content")
    if digest.count != recorded["count"] or digest.hex != recorded["digest"]:
        problems.append("the erased events of the log are not those of the receipt: leaves were changed")
    head = log.read_stored(namespace, after=recorded["head"] - 1, limit=1)
    if [event.hash.hex() for event in head] != [recorded["hash"]]:
        problems.append(f"version {recorded['head']} of the log has another hash: the log was rewritten or replaced")
    return problems
