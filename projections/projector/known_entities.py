"""Known entities: the names of the entities of a read model, and which of them write messages."""

from __future__ import annotations

from typing import Any

import apsw

from recollect.projections.projector.entity_evidence import SPEAKERS


class EntityRegister(dict[str, int]):
    """The ids of all entities by case-folded name, the id of the next new entity, and the speakers.

    A projector keeps them between batches, since a namespace may have thousands of entities. They are valid until
    another process applies events.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        super().__init__(connection.execute("SELECT name, entity_id FROM entity_names"))
        row: tuple[Any, ...] = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM entities").fetchall()[0]
        self.next_id = row[0]
        #: Entities that wrote a message, and those that did so by a name that looks like one of a person.
        self.speakers = _ids(connection, "SELECT id FROM entities WHERE spoken_count > 0")
        self.named_speakers = _ids(connection, SPEAKERS)


def _ids(connection: apsw.Connection, statement: str) -> set[int]:
    """Return the ids that a statement selects."""
    return {id for (id,) in connection.execute(statement)}
