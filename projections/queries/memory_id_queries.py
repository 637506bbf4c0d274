"""Memory id queries: check whether a memory with an id exists."""

from __future__ import annotations

from typing import Literal

import apsw

#: The kinds that an id in an event can refer to: `memory` is every kind that can be pinned, `item` every kind that a
#: retrieval can return.
Referent = Literal["fact", "procedure", "document", "memory", "item"]

_FACT = "SELECT 1 FROM facts WHERE id = ?1"
_PROCEDURE = "SELECT 1 FROM procedures WHERE id = ?1"
_DOCUMENT = "SELECT 1 FROM documents WHERE id = ?1"
#: Expired episodes still exist as the sources of a summary.
_MEMORY = (
    "SELECT 1 FROM episodes WHERE id = ?1 UNION ALL SELECT 1 FROM episode_sources WHERE id = ?1 "
    f"UNION ALL {_FACT} UNION ALL {_PROCEDURE} "
    "UNION ALL SELECT 1 FROM preferences WHERE id = ?1 UNION ALL SELECT 1 FROM relationships WHERE id = ?1"
)
#: Retrievals return chunks, whose id is the document's id, # and a number, and entities, whose id is the name.
_ITEM = (
    f"{_MEMORY} UNION ALL {_DOCUMENT} UNION ALL SELECT 1 FROM chunks WHERE document_id || '#' || number = ?1 "
    "UNION ALL SELECT 1 FROM entities WHERE name = ?1"
)
#: The statement of each kind.
_LOOK_UPS: dict[Referent, str] = {
    "fact": _FACT,
    "procedure": _PROCEDURE,
    "document": _DOCUMENT,
    "memory": _MEMORY,
    "item": _ITEM,
}


class MemoryIdQueries:
    """Queries for ids in all tables of memories."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def exists(self, referent: Referent, id: str) -> bool:
        """Return whether the read model has a row of this kind with this id."""
        return self._connection.execute(f"{_LOOK_UPS[referent]} LIMIT 1", (id,)).fetchone() is not None
