"""Memory id queries: check whether a memory with an id exists."""

from __future__ import annotations

from typing import Literal

import apsw

from recollect.events.memory_kinds import TABLES_WITH_STATUS

#: The kinds that an id in an event can refer to: `memory` is every kind that can be pinned, `forgettable` has the
#: observations of jobs as well, `item` is every kind that a retrieval can return. None of them is forgotten.
#: An `edit` is an event that can be undone.
Referent = Literal["fact", "procedure", "document", "entity", "memory", "forgettable", "item", "edit"]

_FACT = "SELECT 1 FROM facts WHERE id = ?1 AND status <> 'forgotten'"
_PROCEDURE = "SELECT 1 FROM procedures WHERE id = ?1 AND status <> 'forgotten'"
_DOCUMENT = "SELECT 1 FROM documents WHERE id = ?1"
#: Expired episodes still exist as the sources of a summary.
_MEMORY = (
    "SELECT 1 FROM episodes WHERE id = ?1 AND status <> 'forgotten' "
    "UNION ALL SELECT 1 FROM episode_sources WHERE id = ?1 AND status <> 'forgotten' "
    + " ".join(
        f"UNION ALL SELECT 1 FROM {table} WHERE id = ?1 AND status <> 'forgotten'" for table in TABLES_WITH_STATUS
    )
)
_ENTITY = "SELECT 1 FROM entities WHERE name = ?1"
#: An observation has the id of its event, #o and its number within the event.
_FORGETTABLE = (
    f"{_MEMORY} UNION ALL SELECT 1 FROM observations "
    "WHERE status <> 'forgotten' AND event_id = substr(?1, 1, max(instr(?1, '#o') - 1, 0))"
)
#: Retrievals return chunks, whose id is the document's id, # and a number, and entities, whose id is the name.
_ITEM = (
    f"{_MEMORY} UNION ALL {_DOCUMENT} UNION ALL SELECT 1 FROM chunks WHERE document_id || '#' || number = ?1 "
    f"UNION ALL {_ENTITY}"
)
#: The statement of each kind.
_LOOK_UPS: dict[Referent, str] = {
    "fact": _FACT,
    "procedure": _PROCEDURE,
    "document": _DOCUMENT,
    "entity": _ENTITY,
    "memory": _MEMORY,
    "forgettable": _FORGETTABLE,
    "item": _ITEM,
    "edit": "SELECT 1 FROM edits WHERE id = ?1",
}


class MemoryIdQueries:
    """Queries for ids in all tables of memories."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def forgotten(self) -> set[str]:
        """Return the ids of the events and memories that are forgotten."""
        return {id for (id,) in self._connection.execute("SELECT id FROM forgotten")}

    def exists(self, referent: Referent, id: str) -> bool:
        """Return whether the read model has a row of this kind with this id."""
        return self._connection.execute(f"{_LOOK_UPS[referent]} LIMIT 1", (id,)).fetchone() is not None
