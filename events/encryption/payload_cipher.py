"""Payload cipher: encrypts the payload of a staged event, and decrypts the payloads of events that are read.

A stored payload is the id of the key, the nonce and the ciphertext with its tag. Associated data are the namespace, the
version, the id and the type of the event, and the id of the key, so a payload cannot be moved to another event.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from recollect.events.encryption.key_store import KID_BYTES, KeyStore
from recollect.events.encryption.master_key import NONCE_BYTES
from recollect.events.envelope import ENCODING_AES, RecordedEvent
from recollect.events.errors import Erased, ForeignFile

_TEXT_START = KID_BYTES + NONCE_BYTES


def nonces(total: int) -> Iterator[bytes]:
    """Yield random nonces, each once; they are drawn together, since a call of the system takes 1 µs."""
    drawn = os.urandom(NONCE_BYTES * total)
    return (drawn[start : start + NONCE_BYTES] for start in range(0, len(drawn), NONCE_BYTES))


def seal(
    kid: bytes, cipher: AESGCM, nonce: bytes, namespace: str, version: int, event_id: str, type: str, payload: bytes
) -> bytes:
    """Return the stored form of a payload, encrypted with a nonce that no other payload has."""
    associated = f"{namespace}\n{version}\n{event_id}\n{type}\n".encode() + kid
    return kid + nonce + cipher.encrypt(nonce, payload, associated)


class PayloadCipher:
    """Decrypts the payloads of one log by the keys of its key store."""

    def __init__(self, keys: KeyStore) -> None:
        self.keys = keys

    def open_all(self, events: Sequence[RecordedEvent]) -> list[RecordedEvent]:
        """Return `events` with decrypted payloads; an event whose key was destroyed is returned as erased.

        Raises:
            KeyMissing: a key is not in the key store. ForeignFile: an event was altered.
        """
        self.keys.refresh()
        # The keys of this page: the cache of the key store takes a lock for each look-up.
        ciphers: dict[bytes, AESGCM] = {}
        opened: list[RecordedEvent] = []
        for event in events:
            if event.encoding != ENCODING_AES:
                opened.append(event)
                continue
            stored = event.payload
            kid = stored[:KID_BYTES]
            cipher = ciphers.get(kid)
            if cipher is None:
                try:
                    cipher = ciphers[kid] = self.keys.cipher(kid)
                except Erased:
                    # Such an event is in a log restored from a backup, until the erasure is repeated on it.
                    opened.append(event.erased(self.keys.erased_id(event.namespace, event.id)))
                    continue
            associated = f"{event.namespace}\n{event.version}\n{event.id}\n{event.type}\n".encode() + kid
            try:
                payload = cipher.decrypt(stored[KID_BYTES:_TEXT_START], stored[_TEXT_START:], associated)
            except InvalidTag:
                raise ForeignFile(
                    f"version {event.version} of namespace {event.namespace!r} was altered, so it cannot be decrypted; "
                    "run verify"
                ) from None
            opened.append(event.decrypted(payload))
        return opened

    def open(self, event: RecordedEvent) -> RecordedEvent:
        """Return one event with its decrypted payload."""
        return self.open_all([event])[0]
