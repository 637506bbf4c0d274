"""Payload cipher: encrypts the payload of a staged event, and decrypts the payloads of events that are read.

A stored payload is the id of the key, the nonce and the ciphertext with its tag. Associated data are the namespace, the
version, the id and the type of the event, and the id of the key, so a payload cannot be moved to another event.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag

from recollect.events.encryption.key_store import KID_BYTES, KeyStore
from recollect.events.encryption.master_key import NONCE_BYTES
from recollect.events.envelope import ENCODING_AES, ENCODING_JSON, RecordedEvent
from recollect.events.errors import Erased, ForeignFile

_TEXT_START = KID_BYTES + NONCE_BYTES


class PayloadCipher:
    """Encrypts and decrypts the payloads of one log by the keys of its key store."""

    def __init__(self, keys: KeyStore) -> None:
        self.keys = keys

    def seal(self, kid: bytes, namespace: str, version: int, event_id: str, type: str, payload: bytes) -> bytes:
        """Return the stored form of a payload, encrypted with a random nonce."""
        nonce = os.urandom(NONCE_BYTES)
        aad = b"%b\n%d\n%b\n%b\n%b" % (namespace.encode(), version, event_id.encode(), type.encode(), kid)
        return kid + nonce + self.keys.cipher(kid).encrypt(nonce, payload, aad)

    def open_all(self, events: Sequence[RecordedEvent]) -> list[RecordedEvent]:
        """Return `events` with decrypted payloads; an event whose key was destroyed is returned as erased.

        Raises:
            KeyMissing: a key is not in the key store. ForeignFile: an event was altered.
        """
        self.keys.refresh()
        ciphers = self.keys.cipher
        last_kid, cipher = b"", None
        opened: list[RecordedEvent] = []
        for event in events:
            if event[11] != ENCODING_AES:
                opened.append(event)
                continue
            stored = event[12]
            kid = stored[:KID_BYTES]
            if kid != last_kid or cipher is None:
                try:
                    last_kid, cipher = kid, ciphers(kid)
                except Erased:
                    # Such an event is in a log restored from a backup, until the erasure is repeated on it.
                    opened.append(event.erased(f"erased:{self.keys.pseudonym('event', event[0], event[2]).hex()}"))
                    continue
            aad = b"%b\n%d\n%b\n%b\n%b" % (event[0].encode(), event[1], event[2].encode(), event[3].encode(), kid)
            try:
                payload = cipher.decrypt(stored[KID_BYTES:_TEXT_START], stored[_TEXT_START:], aad)
            except InvalidTag:
                raise ForeignFile(
                    f"version {event[1]} of namespace {event[0]!r} was altered, so it cannot be decrypted; run verify"
                ) from None
            opened.append(RecordedEvent._make((*event[:11], ENCODING_JSON, payload, event[13], event[14])))
        return opened

    def open(self, event: RecordedEvent) -> RecordedEvent:
        """Return one event with its decrypted payload."""
        return self.open_all([event])[0]
