"""Staged encryption: encrypts the drafts of one transaction, and refuses those that an erasure forbids."""

from __future__ import annotations

from collections.abc import Iterable

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from recollect.events.backends.group_commit_writer import AppendRequest
from recollect.events.catalogue import ERASURE_TYPES
from recollect.events.encryption.key_store import Owner
from recollect.events.encryption.payload_cipher import PayloadCipher, seal
from recollect.events.envelope import ENCODING_JSON, EventDraft, RecordedEvent


class StagedEncryption:
    """Encrypts the events that a log stages; used by the thread that writes.

    Parameters:
        encrypts: whether new events are encrypted; if not, events are only decrypted, and erasures are respected.
    """

    def __init__(self, cipher: PayloadCipher, *, encrypts: bool) -> None:
        self.cipher = cipher
        self.keys = cipher.keys
        self._encrypts = encrypts
        #: The id and the cipher of each key of the transaction.
        self._ciphers: dict[Owner, tuple[bytes, AESGCM]] = {}

    def prepare(self, requests: Iterable[AppendRequest]) -> None:
        """Have the keys of all drafts on disk before the transaction that uses them."""
        if not self._encrypts:
            self.keys.refresh()
            return
        owners = {(request.namespace, draft.subject) for request in requests for draft in request.drafts}
        self._ciphers = {owner: (kid, self.keys.cipher(kid)) for owner, kid in self.keys.prepare(owners).items()}

    def check(self, namespace: str, draft: EventDraft) -> None:
        """Raise `Erased` for an event of an erased namespace or subject."""
        if draft.type not in ERASURE_TYPES:
            self.keys.check_not_erased(namespace, draft.subject)

    def sealed(self, namespace: str, version: int, event_id: str, draft: EventDraft) -> EventDraft:
        """Return `draft` with an encrypted payload, where events are encrypted."""
        if not self._encrypts or draft.encoding != ENCODING_JSON or draft.type in ERASURE_TYPES:
            return draft
        kid, cipher = self._ciphers[namespace, draft.subject]
        payload = seal(kid, cipher, namespace, version, event_id, draft.type, draft.payload)
        return draft.encrypted(payload)

    def opened(self, event: RecordedEvent) -> RecordedEvent:
        """Return a recorded event with its decrypted payload."""
        return self.cipher.open(event)
