"""Staged encryption: encrypts the drafts of one transaction, and refuses those that an erasure forbids."""

from __future__ import annotations

from collections.abc import Sequence, Set

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from recollect.events.backends.group_commit_writer import AppendRequest
from recollect.events.catalogue import ERASURE_TYPES
from recollect.events.encryption.key_store import CIPHERS_MAX, Owner
from recollect.events.encryption.payload_cipher import PayloadCipher, nonces, seal
from recollect.events.envelope import ENCODING_AES, ENCODING_JSON, EventDraft, RecordedEvent


class StagedEncryption:
    """Encrypts the events that a log stages; used by the thread that writes.

    Parameters:
        encrypts: whether new events are encrypted; if not, events are only decrypted, and erasures are respected.
    """

    def __init__(self, cipher: PayloadCipher, *, encrypts: bool) -> None:
        self.cipher = cipher
        self.keys = cipher.keys
        self._encrypts = encrypts
        #: The id and the cipher of each key in use, of the generation `_generation` of the key store.
        self._ciphers: dict[Owner, tuple[bytes, AESGCM]] = {}
        self._generation = 0
        #: Whether every owner of the transaction has a key.
        self._has_all_keys = True
        #: A nonce for each draft of the transaction.
        self._nonces = nonces(0)

    def prepare(self, requests: Sequence[AppendRequest]) -> None:
        """Have the keys of all drafts on disk before the transaction that uses them."""
        self.keys.refresh()
        if not self._encrypts:
            return
        self._nonces = nonces(sum(len(request.drafts) for request in requests))
        owners = {
            (request.namespace, subject)
            for request in requests
            for subject in {draft.subject for draft in request.drafts}
        }
        if self.keys.generation != self._generation or len(self._ciphers) > CIPHERS_MAX:
            self._ciphers = {}
            self._generation = self.keys.generation
        self._add_keys(owners - self._ciphers.keys())
        self._has_all_keys = owners <= self._ciphers.keys()

    @property
    def admits_all(self) -> bool:
        """Return whether `check` refuses no event of the transaction."""
        return self._has_all_keys and not self.keys.has_erasures

    def check(self, namespace: str, draft: EventDraft) -> None:
        """Raise `Erased` for an event of an erased namespace or subject."""
        if draft.type in ERASURE_TYPES:
            return
        self.keys.check_not_erased(namespace, draft.subject)
        if self._encrypts and (namespace, draft.subject) not in self._ciphers:
            # It was erased in `prepare`, and has been admitted again by another thread since.
            self._add_keys({(namespace, draft.subject)})

    def _add_keys(self, owners: Set[Owner]) -> None:
        if owners:
            kids = self.keys.prepare(owners)
            self._ciphers |= {owner: (kid, self.keys.cipher(kid)) for owner, kid in kids.items()}

    def sealed(
        self, namespace: str, version: int, event_id: str, type: str, subject: str | None, payload: bytes
    ) -> tuple[str, bytes]:
        """Return the encoding and the stored bytes of a JSON payload, encrypted where events are encrypted."""
        if not self._encrypts or type in ERASURE_TYPES:
            return ENCODING_JSON, payload
        kid, cipher = self._ciphers[namespace, subject]
        return ENCODING_AES, seal(kid, cipher, next(self._nonces), namespace, version, event_id, type, payload)

    def opened(self, event: RecordedEvent) -> RecordedEvent:
        """Return a recorded event with its decrypted payload."""
        return self.cipher.open(event)
