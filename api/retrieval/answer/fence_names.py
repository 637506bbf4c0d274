"""Fence names: the random part of the tags around a context, which no stored text can know."""

from __future__ import annotations

import hmac
import logging
import os
from collections.abc import Sequence
from pathlib import Path

from recollect.events.storage.atomic_file import write_once

_logger = logging.getLogger(__name__)

#: The file with the key, in the data folder.
KEY_FILE = "fence.key"
_KEY_BYTES = 32
#: Characters of the random part: 48 bits, which a stored text would have to guess.
_RANDOM_CHARS = 12


def read_fence_key(folder: Path) -> bytes:
    """Return the key of a data folder, which is created once; a key of this process when the folder cannot be written.

    A lost key costs nothing but the prompt caches of the conversations that are running.
    """
    path = folder / KEY_FILE
    try:
        if not path.exists():
            write_once(path, os.urandom(_KEY_BYTES))
        key = path.read_bytes()
    except OSError as error:
        _logger.warning("the key of the fence cannot be kept, so that each process has its own: %s", error)
        key = b""
    return key if len(key) == _KEY_BYTES else os.urandom(_KEY_BYTES)


def random_part(key: bytes, namespace: str, session_id: str | None, lines: Sequence[str]) -> str:
    """Return the random part of the tags around `lines`.

    In a session it is the same for every context, so that unchanged memory keeps the prompt cache of a language model.
    Without a session, and when a text of the context has learned that of its session, it depends on the lines: the same
    lines get the same tags, and no text can hold the tag that depends on the text itself.
    """
    if session_id is not None:
        name = _mac(key, "session", namespace, session_id)
        if not any(name in line for line in lines):
            return name
    return _mac(key, "lines", namespace, *lines)


def _mac(key: bytes, *parts: str) -> str:
    """Return the beginning of the HMAC-SHA256 of `parts`, in hex."""
    content = b"".join(
        len(data).to_bytes(8, "big") + data for data in (part.encode("utf-8", "replace") for part in parts)
    )
    return hmac.digest(key, content, "sha256").hex()[:_RANDOM_CHARS]
