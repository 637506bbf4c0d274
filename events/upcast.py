"""Upcasters: convert payloads of older schema versions to the newest one; the log itself is never rewritten."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from recollect.events.errors import NewerFile

#: Converts a payload from one schema version to the next. It may change its argument.
Upcaster = Callable[[dict[str, Any]], dict[str, Any]]

#: By event type: the first converts schema version 1 to 2, the second 2 to 3, and so on. A type without an entry has
#: version 1 only. Released upcasters are never removed.
UPCASTERS: Mapping[str, tuple[Upcaster, ...]] = {}


def newest_version(event_type: str) -> int:
    """Return the schema version of new events of this type."""
    return 1 + len(UPCASTERS.get(event_type, ()))


def upcast(event_type: str, schema_version: int, payload: dict[str, Any]) -> dict[str, Any]:
    """Return `payload` in the newest schema version.

    Raises:
        NewerFile: a newer version of Recollect recorded it.
    """
    newest = newest_version(event_type)
    if schema_version > newest:
        raise NewerFile(
            f"an event {event_type} has schema version {schema_version}, but this version of Recollect reads up to "
            f"{newest}; install the version that recorded it, or a later one"
        )
    for step in UPCASTERS.get(event_type, ())[schema_version - 1 :]:
        payload = step(payload)
    return payload
