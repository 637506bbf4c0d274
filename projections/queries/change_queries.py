"""Change queries: read which facts and preferences each event made valid, replaced or ended."""

from __future__ import annotations

from collections.abc import Mapping

import apsw
import orjson
from msgspec import Struct

from recollect.projections.queries.page_queries import PREFERENCE_SUBJECT
from recollect.projections.queries.records import fetch_records

#: The statuses of memories that are valid.
_VALID = ("active", "stale")
#: The statuses of memories whose texts are shown.
_SHOWN = ("active", "stale", "superseded", "ended", "invalidated")
#: The change that a status after an event means; any other status, and no row, end a memory.
_CHANGE_OF = {"forgotten": "forgotten", "invalidated": "corrected"}

_CHANGES = """
SELECT version, list, id, before, after, superseded_by FROM knowledge_changes WHERE version > ? AND version <= ?
ORDER BY version, list, id
"""
# The words of the memories with these ids.
_MEMORIES = f"""
SELECT 'facts' AS list, id, iif(type = 'task', 'task', 'fact') AS kind, subject, predicate, object AS value, status,
    source_type, source_events FROM facts WHERE id IN (SELECT value FROM json_each(?1))
UNION ALL
SELECT 'preferences', id, 'preference', coalesce(nullif({PREFERENCE_SUBJECT}, ''), 'user'), name, value, status,
    source_type, source_events FROM preferences WHERE id IN (SELECT value FROM json_each(?1))
"""


class _Row(Struct, frozen=True, kw_only=True):
    """A row of `knowledge_changes`."""

    version: int
    list: str
    id: str
    before: str | None
    after: str | None
    superseded_by: str | None

    @property
    def replacing(self) -> tuple[int, str, str] | None:
        """Return the memory that replaces this one with the event, by version, list and id; None: none does."""
        if self.before in _VALID and self.after == "superseded" and self.superseded_by is not None:
            return self.version, self.list, self.superseded_by
        return None


class _Memory(Struct, frozen=True, kw_only=True):
    """A fact or a preference as it is now."""

    list: str
    id: str
    kind: str
    subject: str
    predicate: str
    value: str
    status: str
    source_type: str
    source_events: str

    @property
    def shown_value(self) -> str | None:
        """Return the value; None while the memory is forgotten, in quarantine or rejected."""
        return self.value if self.status in _SHOWN else None


class KnowledgeChange(Struct, frozen=True, kw_only=True):
    """What an event changed about one fact or preference."""

    #: Version of the event.
    version: int
    #: fact, preference or task.
    kind: str
    #: added, replaced, ended, corrected or forgotten.
    change: str
    #: The id of the memory that was replaced or ended; None when one was added.
    old_id: str | None
    #: The id of the memory that was added, also in place of the old one; None: there is none.
    new_id: str | None
    #: None when the memory is not there any more.
    subject: str | None
    predicate: str | None
    #: The value before; None: there was none, or the memory is forgotten or in quarantine now.
    old: str | None
    #: The value after; None as for `old`.
    new: str | None
    #: The ids of the messages from which the new memory was derived, or the old one when there is no new one.
    source_events: list[str]


class ChangeQueries:
    """Queries on the changes of facts and preferences."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def between(self, after: int, through: int) -> list[KnowledgeChange]:
        """Return what the events with versions over `after`, up to `through`, changed, in their order."""
        rows = fetch_records(self._connection, _Row, _CHANGES, (after, through))
        replacing = {row.replacing for row in rows}
        # A part of the change of the memory that it replaces is no change of its own.
        rows = [row for row in rows if (row.version, row.list, row.id) not in replacing and _is_change(row)]
        ids = orjson.dumps([id for row in rows for id in (row.id, row.superseded_by) if id is not None]).decode()
        memories = fetch_records(self._connection, _Memory, _MEMORIES, (ids,))
        by_id = {(memory.list, memory.id): memory for memory in memories}
        return [_change_of(row, by_id) for row in rows]


def _is_change(row: _Row) -> bool:
    """Return whether the event has made the memory valid, or not valid any more, or forgotten."""
    return (row.before in _VALID) != (row.after in _VALID) or row.after == "forgotten"


def _change_of(row: _Row, memories: Mapping[tuple[str, str], _Memory]) -> KnowledgeChange:
    """Return the change of a row, with the words of `memories`, by list and id."""
    memory, replacing = memories.get((row.list, row.id)), row.replacing
    newer = None if replacing is None else memories.get(replacing[1:])
    if row.after in _VALID:
        change, newer = "added", memory
    elif newer is not None:
        change = "corrected" if newer.source_type == "corrected" else "replaced"
    else:
        change = _CHANGE_OF.get(row.after or "", "ended")
    source = newer or memory
    return KnowledgeChange(
        version=row.version,
        kind=row.list.removesuffix("s") if memory is None else memory.kind,
        change=change,
        old_id=None if change == "added" else row.id,
        new_id=None if newer is None else newer.id,
        subject=None if memory is None else memory.subject,
        predicate=None if memory is None else memory.predicate,
        old=None if memory is None or change == "added" else memory.shown_value,
        new=None if newer is None else newer.shown_value,
        source_events=[] if source is None else orjson.loads(source.source_events),
    )
