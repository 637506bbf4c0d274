"""Look-ups of memory ids in a read model: whether something has this id."""

from __future__ import annotations

from typing import Literal

import apsw

#: What an event refers to by id: one kind of memory, any that can be pinned, or anything that a retrieval can return.
Referent = Literal["fact", "procedure", "document", "memory", "item"]

_FACT = "SELECT 1 FROM facts WHERE id = ?1"
_PROCEDURE = "SELECT 1 FROM procedures WHERE id = ?1"
_DOCUMENT = "SELECT 1 FROM documents WHERE id = ?1"
#: What has expired is still known by the summary that stands for it.
_MEMORY = (
    "SELECT 1 FROM episodes WHERE id = ?1 UNION ALL SELECT 1 FROM episode_sources WHERE id = ?1 "
    f"UNION ALL {_FACT} UNION ALL {_PROCEDURE} "
    "UNION ALL SELECT 1 FROM preferences WHERE id = ?1 UNION ALL SELECT 1 FROM relationships WHERE id = ?1"
)
#: Retrievals return pieces of documents, by document id and number, and entities, by name.
_ITEM = (
    f"{_MEMORY} UNION ALL {_DOCUMENT} UNION ALL SELECT 1 FROM chunks WHERE document_id || '#' || number = ?1 "
    "UNION ALL SELECT 1 FROM entities WHERE name = ?1"
)
_LOOK_UPS: dict[Referent, str] = {
    "fact": _FACT,
    "procedure": _PROCEDURE,
    "document": _DOCUMENT,
    "memory": _MEMORY,
    "item": _ITEM,
}


class MemoryIdQueries:
    """Look-ups of ids in all tables of memories."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def is_known(self, referent: Referent, id: str) -> bool:
        """Return whether the read model has something of this kind with this id."""
        return self._connection.execute(f"{_LOOK_UPS[referent]} LIMIT 1", (id,)).fetchone() is not None
