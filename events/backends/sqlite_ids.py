"""SQLite ids: the stored forms of positions and event ids."""

from __future__ import annotations

import re

#: Bits of a position that hold the version: 68 billion events a namespace, 134 million namespaces.
VERSION_BITS = 36
VERSION_MASK = (1 << VERSION_BITS) - 1
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def stored_id(event_id: str) -> str | bytes:
    """Return the stored form of an id: the 16 bytes of a UUID, any other text unchanged."""
    return bytes.fromhex(event_id.replace("-", "")) if _UUID.fullmatch(event_id) else event_id


def original_id(stored: str | bytes) -> str:
    """Return the text of a stored id."""
    if not isinstance(stored, bytes):
        return stored
    digits = stored.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
