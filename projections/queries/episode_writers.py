"""Episode writers: columns that identify the author of an episode, which sets its trust level."""

from __future__ import annotations

from typing import NamedTuple

from recollect.events.intake.quarantine import IMPORTED_PREFIX, is_imported

#: The columns of `Writer`.
WRITER_COLUMNS = f"type, role, substr(id, 1, {len(IMPORTED_PREFIX)}) = '{IMPORTED_PREFIX}'"


class Writer(NamedTuple):
    """Who wrote an episode."""

    #: conversation, action or observation.
    type: str
    #: Of a message.
    role: str | None
    imported: bool


def writer_of(type: str, role: str | None, id: str) -> Writer:
    """Return who wrote the episode of a type, a role and an id."""
    return Writer(type, role, is_imported(id))
