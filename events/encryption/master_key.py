"""Master key: wraps the keys of the key store; the operator keeps it outside of the data folder."""

from __future__ import annotations

import base64
import binascii
import importlib
import os
import stat
from pathlib import Path
from typing import Any, Protocol, cast

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from msgspec import Struct

from recollect.events.errors import InvalidInput, KeyMissing

#: Bytes of every key: AES-256.
KEY_BYTES = 32
#: Bytes of a random nonce of AES-GCM (NIST SP 800-38D recommends 96 bits).
NONCE_BYTES = 12
#: The first byte of a wrapped key says how it is wrapped.
PLAIN, WRAPPED = b"\x00", b"\x01"


class MasterKey(Protocol):
    """Wraps and unwraps keys of 32 bytes. A key management service is connected by an object with these methods."""

    def wrap(self, key: bytes, label: bytes) -> bytes:
        """Return `key` encrypted; `label` names its purpose and has to be the same when it is unwrapped."""
        ...

    def unwrap(self, wrapped: bytes, label: bytes) -> bytes:
        """Return the key in `wrapped`; raise any exception when it cannot be unwrapped."""
        ...


class KeyOptions(Struct, frozen=True, kw_only=True):
    """The operator's choices for encryption. It can be sent to another process."""

    #: Whether new events are encrypted: `auto` encrypts those of logs that began with encryption.
    mode: str = "auto"
    #: The folder of keys.db; the data folder when None.
    folder: Path | None = None
    #: The master key as 64 hex digits or in base64; None without one.
    master_key: str | None = None
    #: A file with the master key, which only its owner may read.
    master_key_file: Path | None = None
    #: `module:name` of an object, or of a function without parameters that returns it, with the methods of `MasterKey`.
    master_key_provider: str | None = None

    def master(self) -> MasterKey | None:
        """Return the master key; None when none is set.

        Raises:
            InvalidInput: the key, its file or its provider is not valid.
        """
        if self.master_key_provider:
            return _provided(self.master_key_provider)
        if self.master_key:
            return LocalMasterKey(_parsed(self.master_key, "RECOLLECT_MASTER_KEY"))
        if self.master_key_file is not None:
            return LocalMasterKey(_read(self.master_key_file))
        return None


class LocalMasterKey:
    """A master key in memory."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)

    def wrap(self, key: bytes, label: bytes) -> bytes:
        """Return `key`, encrypted by AES-256-GCM with a random nonce."""
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, key, label)

    def unwrap(self, wrapped: bytes, label: bytes) -> bytes:
        """Return the key in `wrapped`."""
        return self._cipher.decrypt(wrapped[:NONCE_BYTES], wrapped[NONCE_BYTES:], label)


def wrap(master: MasterKey | None, key: bytes, label: bytes) -> bytes:
    """Return `key` as it is stored: wrapped by the master key, or plain without one."""
    return PLAIN + key if master is None else WRAPPED + master.wrap(key, label)


def unwrap(master: MasterKey | None, stored: bytes, label: bytes) -> bytes:
    """Return the key in a stored key.

    Raises:
        KeyMissing: the key was wrapped by a master key, and none is set or another one.
    """
    if stored[:1] == PLAIN:
        return stored[1:]
    if master is None:
        raise KeyMissing(
            "the keys of this log are wrapped by a master key; set RECOLLECT_MASTER_KEY, RECOLLECT_MASTER_KEY_FILE or "
            "RECOLLECT_MASTER_KEY_PROVIDER"
        )
    try:
        return master.unwrap(stored[1:], label)
    except InvalidTag as error:
        raise KeyMissing(
            "the master key is not the one that wrapped the keys of this log, or keys.db is damaged; set the right "
            "RECOLLECT_MASTER_KEY"
        ) from error


def _parsed(text: str, field: str) -> bytes:
    """Return the key in `text`: 64 hex digits, or 32 bytes in base64."""
    text = text.strip()
    try:
        key = bytes.fromhex(text) if len(text) == 2 * KEY_BYTES else base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        key = b""
    if len(key) != KEY_BYTES:
        raise InvalidInput(
            "give 32 random bytes as 64 hex digits or in base64, for example from: openssl rand -hex 32", field=field
        )
    return key


def _read(path: Path) -> bytes:
    """Return the key in a file that only its owner may read."""
    field = "RECOLLECT_MASTER_KEY_FILE"
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read ({error}); name a file with the key", field=field) from None
    if os.name != "nt" and stat.S_IMODE(mode) & 0o077:
        raise InvalidInput(f"{path} can be read by other users; run: chmod 600 {path}", field=field)
    return _parsed(text, field)


def _provided(name: str) -> MasterKey:
    """Return the master key that `module:name` provides."""
    field = "RECOLLECT_MASTER_KEY_PROVIDER"
    module_name, _, attribute = name.partition(":")
    try:
        provided: Any = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidInput(f"{name!r} cannot be imported ({error}); give module:name", field=field) from None
    if not hasattr(provided, "wrap") and callable(provided):
        provided = provided()
    if not (hasattr(provided, "wrap") and hasattr(provided, "unwrap")):
        raise InvalidInput(f"{name!r} has no methods wrap and unwrap", field=field)
    return cast(MasterKey, provided)
