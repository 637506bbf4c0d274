"""Upcasters: what an older program recorded, in the shape of today's catalogue. The log itself is never rewritten."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from recollect.events.errors import NewerFile

#: Turns a payload of one schema version into the next one's. It may change the dict it gets.
Upcaster = Callable[[dict[str, Any]], dict[str, Any]]

#: By event type: the first turns schema version 1 into 2, the second 2 into 3, and so on. A type that is not here has
#: only ever had version 1. Released upcasters stay for ever.
UPCASTERS: Mapping[str, tuple[Upcaster, ...]] = {}


def newest_version(event_type: str) -> int:
    """Return the schema version that events of this type are recorded with today."""
    return 1 + len(UPCASTERS.get(event_type, ()))


def upcast(event_type: str, schema_version: int, payload: dict[str, Any]) -> dict[str, Any]:
    """Return `payload` in today's shape.

    Raises:
        NewerFile: a newer program recorded it.
    """
    newest = newest_version(event_type)
    if schema_version > newest:
        raise NewerFile(
            f"an event {event_type} has schema version {schema_version}, this program knows {newest}; install the "
            "version of Recollect that recorded it, or a later one"
        )
    for step in UPCASTERS.get(event_type, ())[schema_version - 1 :]:
        payload = step(payload)
    return payload
