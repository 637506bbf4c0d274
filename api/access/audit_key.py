"""Audit key: the secret with which the lines of an audit log are chained."""

from __future__ import annotations

import os
from pathlib import Path

from recollect.events.encryption.master_key import KEY_BYTES, PLAIN, KeyOptions, unwrap, wrap
from recollect.events.storage.file_lock import file_lock
from recollect.events.storage.private_files import PRIVATE_MODE

_FILE, _LOCK, _LABEL = "chain.key", "chain.lock", b"audit"


def audit_key(folder: Path, options: KeyOptions) -> bytes:
    """Return the key of the audit log in `folder`: 32 random bytes, which the first call stores there.

    A master key wraps it, also one that is set later: who can write the folder alone cannot compute a chain then.

    Raises:
        KeyMissing: the key is wrapped by another master key. StorageError: the folder cannot be locked.
        OSError: the file cannot be read or written.
    """
    master, path = options.master(), folder / _FILE
    with file_lock(folder / _LOCK):
        stored = path.read_bytes() if path.exists() else b""
        key = unwrap(master, stored, _LABEL) if stored else os.urandom(KEY_BYTES)
        if not stored or (master is not None and stored[:1] == PLAIN):
            new = path.with_suffix(".new")
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_MODE)
            with os.fdopen(descriptor, "wb") as file:
                file.write(wrap(master, key, _LABEL))
                file.flush()
                os.fsync(file.fileno())
            new.replace(path)
    return key
