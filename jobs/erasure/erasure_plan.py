"""Erasure plan: all that an erasure takes out of the log, found before anything is erased.

Files, read models and vectors are not in it: each machine that reads the log removes what it has derived from erased
events (`projections/read_models/purges.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

from msgspec import Struct

from recollect.events.backends.log import EventLog, each_page
from recollect.events.encryption.erasure_ledger import LedgerErasure, pseudonym_of
from recollect.events.encryption.key_store import KeyStore
from recollect.events.encryption.payload_cipher import PayloadCipher
from recollect.events.integrity.receipt import EventDigest
from recollect.events.integrity.residue import EventSample, windows_of
from recollect.jobs.erasure.edit_transfer import MemoryEdit
from recollect.jobs.erasure.event_selection import Selection
from recollect.jobs.erasure.message_copies import Copies, read_copies

#: Events read at once.
_BATCH = 1_000


class ErasurePlan(Struct, frozen=True, kw_only=True):
    """The events that an erasure erases."""

    #: The head of the namespace that was read.
    head: int
    #: The versions of the events as ranges, both ends included.
    ranges: Sequence[tuple[int, int]]
    #: Number of events by type.
    by_type: Mapping[str, int]
    #: Number of events that were not asked for by name, but derived from erased ones.
    derived: int
    #: sha256 over the versions and leaves of the events, in hex.
    digest: str
    #: Edits of memories that are made again.
    edits: Sequence[MemoryEdit]
    #: Windows of the texts, for the residue scan.
    windows: frozenset[bytes]

    def counts(self) -> dict[str, Any]:
        """Return the numbers of events, as a receipt has them."""
        return {"derived": self.derived, "by_type": dict(sorted(self.by_type.items()))}

    def as_json(self) -> dict[str, Any]:
        """Return the counts, for `dry_run`."""
        return {"events": sum(self.by_type.values()), **self.counts(), "head": self.head}


def plan_erasure(log: EventLog, keys: KeyStore, erasure: LedgerErasure) -> ErasurePlan:
    """Return the events that an erasure erases. Events that were erased before are left out.

    Events refer to earlier events only, so one walk along the log is enough. Names are compared by their HMACs, so that
    the plan can be made again from the ledger, which has no names.

    Raises:
        KeyMissing: a key is not in the key store.
    """
    cipher = PayloadCipher(keys)
    selection = _selection(log, cipher, erasure)
    head, derived, ranges = 0, 0, list[tuple[int, int]]()
    by_type, digest, sample = Counter[str](), EventDigest(), EventSample()
    for page in each_page(log.read_stored, erasure.namespace, limit=_BATCH):
        # Of a namespace the sample alone is decrypted.
        opened = page if erasure.scope == "namespace" else cipher.open_all(page)
        for stored, event in zip(page, opened, strict=True):
            choice = selection.choose(stored, event)
            if choice is None:
                continue
            follows = ranges and ranges[-1][1] == event.version - 1
            ranges.append((ranges.pop()[0] if follows else event.version, event.version))
            by_type[stored.type] += 1
            derived += choice == "derived"
            digest.add(event)
            sample.add(event)
        head = page[-1].version
    payloads = [event.payload for event in cipher.open_all(sample.events) if not event.is_erased]
    return ErasurePlan(
        head=head,
        ranges=tuple(ranges),
        by_type=by_type,
        derived=derived,
        digest=digest.hex,
        edits=selection.edits(),
        windows=frozenset(windows_of(payloads)),
    )


def _selection(log: EventLog, cipher: PayloadCipher, erasure: LedgerErasure) -> Selection:
    """Return the selection of the events that a request names."""
    namespace, pseudonyms = erasure.namespace, frozenset(erasure.pseudonyms)

    @cache
    def is_named(name: str) -> bool:
        return pseudonym_of(cipher.keys, namespace, erasure.scope, name) in pseudonyms

    return Selection(
        erasure.scope,
        is_named,
        partial(cipher.keys.erased_id, namespace),
        erasure.cutoffs,
        # A walk of its own: an update and an echo are recorded after the message whose words they have.
        Copies(updates={}, echoes={}) if erasure.scope == "namespace" else read_copies(log, namespace, cipher),
    )
