"""Staged encryption: encrypts the drafts of one transaction, and refuses those that an erasure forbids."""

from __future__ import annotations

from collections.abc import Iterable

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from recollect.events.backends.group_commit_writer import AppendRequest
from recollect.events.catalogue import ERASURE_TYPES
from recollect.events.encryption.key_store import Owner
from recollect.events.encryption.payload_cipher import PayloadCipher, seal
from recollect.events.envelope import ENCODING_AES, ENCODING_JSON, EventDraft, RecordedEvent

#: What the ids of erased events begin with.
ERASED_ID_PREFIX = "erased:"


class StagedEncryption:
    """Encrypts the events that a log stages; used by the thread that writes.

    Parameters:
        encrypts: whether new events are encrypted; if not, events are only decrypted, and erasures are respected.
    """

    def __init__(self, cipher: PayloadCipher, *, encrypts: bool) -> None:
        self.cipher = cipher
        self._encrypts = encrypts
        #: The id and the cipher of each key of the transaction.
        self._keys: dict[Owner, tuple[bytes, AESGCM]] = {}

    def prepare(self, requests: Iterable[AppendRequest]) -> None:
        """Have the keys of all drafts on disk before the transaction that uses them."""
        if not self._encrypts:
            self.cipher.keys.refresh()
            return
        owners = {(request.namespace, draft.subject) for request in requests for draft in request.drafts}
        keys = self.cipher.keys
        self._keys = {owner: (kid, keys.cipher(kid)) for owner, kid in keys.prepare(owners).items()}

    def check(self, namespace: str, draft: EventDraft) -> None:
        """Raise `Erased` for an event of an erased namespace or subject."""
        if draft.type not in ERASURE_TYPES:
            self.cipher.keys.check_not_erased(namespace, draft.subject)

    def sealed(self, namespace: str, version: int, event_id: str, draft: EventDraft) -> EventDraft:
        """Return `draft` with an encrypted payload, where events are encrypted."""
        if not self._encrypts or draft.encoding != ENCODING_JSON or draft.type in ERASURE_TYPES:
            return draft
        kid, cipher = self._keys[namespace, draft.subject]
        payload = seal(kid, cipher, namespace, version, event_id, draft.type, draft.payload)
        return EventDraft._make((*draft[:8], ENCODING_AES, payload, None))

    def opened(self, event: RecordedEvent) -> RecordedEvent:
        """Return a recorded event with its decrypted payload."""
        return self.cipher.open(event)

    def erased_id(self, namespace: str, event_id: str) -> str:
        """Return the id under which an erased event stays known."""
        return erased_id(self.cipher.keys.pseudonym("event", namespace, event_id))


def erased_id(pseudonym: bytes) -> str:
    """Return the id of an erased event, given the HMAC of its id."""
    return f"{ERASED_ID_PREFIX}{pseudonym.hex()}"
