"""Edit changes: records the rows that an edit changes, so that an undo restores exactly what was there before.

The values before and after an edit are stored. An undo sets each column that still has the value of the edit back to
the value before it, so that what was changed later stays. What was stated later about the same facts decides with the
statements that remain: the caller writes their groups again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Any

import apsw
import orjson
from msgspec import Struct, field
from msgspec.structs import asdict

from recollect.events.envelope import RecordedEvent
from recollect.events.memory_kinds import TABLES_WITH_STATUS
from recollect.projections.projector.episode_updates import INDEX_EPISODE, NEXT_EPISODE, UNINDEX_EPISODE

#: A document with what is written and removed as a whole with it.
_DOCUMENT_TABLES = ("documents", "chunks", "document_relations")
#: The tables whose rows an edit changes. Statements come first: a fact without statements is removed with them.
_TABLES = (
    "fact_statements",
    "fact_endings",
    *TABLES_WITH_STATUS,
    *_DOCUMENT_TABLES,
    "observations",
    "date_mentions",
    "questions",
    "episodes",
    "episode_sources",
    "episode_metadata",
    "mentions",
    "forgotten",
    "forgotten_entities",
    "entity_evidence",
    "entity_links",
)
#: Columns of an episode whose change does not concern the keyword index.
_UNINDEXED = frozenset(("pinned", "short", "expires_at_us"))

_ADD = """
INSERT OR IGNORE INTO edits (id, version, forgets, is_undone, group_states, changes) VALUES (?, ?, ?, 0, ?, ?)
"""
_FIND = "SELECT forgets, is_undone, group_states, changes FROM edits WHERE id = ?"
_COLUMNS_OF = "SELECT name, pk FROM pragma_table_info(?) ORDER BY cid"
_STATEMENTS_OF = "SELECT key, id, kind, value FROM fact_statements WHERE group_key = ?"
_IS_STATED = "SELECT 1 FROM fact_statements WHERE fact_id = ? AND kind IN ('state', 'correct', 'past') LIMIT 1"
# What an undone edit added, and a later edit stated as well which is undone now.
_REMOVE_UNSTATED = """
DELETE FROM {table} WHERE id IN (SELECT id FROM edits WHERE is_undone = 1) AND NOT EXISTS (
    SELECT 1 FROM fact_statements WHERE fact_id = {table}.id AND kind IN ('state', 'correct', 'past')
)
"""
# A summary that was written again while a message was forgotten has the message as a source, too.
_SET_SOURCE = "UPDATE episode_sources SET status = ? WHERE id = ? AND status = ?"

#: The values of columns, by name.
_Values = dict[str, Any]


class RowChange(Struct, frozen=True, kw_only=True):
    """A row that an edit added, changed or removed."""

    table: str
    #: The primary key.
    key: _Values
    #: The row, or of a changed row the changed columns; None: the edit added the row.
    before: _Values | None
    #: The same after the edit; None: the edit removed the row.
    after: _Values | None

    def inverted(self) -> RowChange:
        """Return the change that undoes this one."""
        return RowChange(table=self.table, key=self.key, before=self.after, after=self.before)


class Restored(Struct, kw_only=True):
    """What the caller of an undo has to write again."""

    #: The groups of facts and preferences about which something else was stated since.
    groups: list[str] = field(default_factory=list[str])
    #: The ids of facts that the edit added, and that later statements state as well.
    kept_ids: list[str] = field(default_factory=list[str])


class EditChanges:
    """The table `edits`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._session: apsw.Session | None = None
        #: Columns of each table in their order, and whether each is part of the primary key.
        self._columns: dict[str, dict[str, bool]] = {}

    def forgettings(self) -> dict[str, str]:
        """Return the memory that each edit forgets, by the id of the event."""
        return dict(self._connection.execute("SELECT id, forgets FROM edits WHERE forgets IS NOT NULL"))

    def begin(self) -> None:
        """Begin to record the changes of an edit."""
        self._session = apsw.Session(self._connection, "main")
        for table in _TABLES:
            self._session.attach(table)

    def end(self, event: RecordedEvent, forgets: str | None) -> None:
        """Store the changes since `begin`.

        Parameters:
            forgets: the memory that the edit forgets, from which nothing is derived any more.
        """
        session, self._session = self._session, None
        if session is None:
            raise RuntimeError("no edit has begun")
        changeset = session.changeset()
        session.close()
        changes = sorted(self._changes(changeset), key=lambda change: (change.table, orjson.dumps(change.key)))
        statements = [change for change in changes if change.table == "fact_statements"]
        states = {group: self._states(group, statements) for group in sorted(set(map(self._group, statements)))}
        packed = [orjson.dumps(value, asdict, orjson.OPT_SORT_KEYS).decode() for value in (states, changes)]
        self._connection.execute(_ADD, (event.id, event.version, forgets, *packed))

    def restore(self, event: RecordedEvent, edit_id: str, *, again: bool) -> Restored:
        """Undo an edit, or with `again` an undo of it; nothing when it is undone, or in force, already."""
        row: Any = self._connection.execute(_FIND, (edit_id,)).fetchone()
        if row is None or bool(row[1]) is not again:
            return Restored()
        forgets, states = row[0], orjson.loads(row[2])
        changes = [RowChange(**change) for change in orjson.loads(row[3])]
        if not again:
            changes = [change.inverted() for change in changes]
        replaced = self._replaced_documents(changes)
        changes = [change for change in changes if _document_id(change) not in replaced]
        restored = Restored(
            groups=[group for group, state in states.items() if self._state(group) != state[0 if again else 1]],
        )
        episodes = self._indexed_episodes(changes)
        self._connection.executemany(UNINDEX_EPISODE, episodes)
        # Removed rows first: a row that is added may have their unique columns.
        for change in sorted(changes, key=lambda change: (change.after is not None, _TABLES.index(change.table))):
            kept_id = self._stated_id(change) if change.after is None else None
            if kept_id is None:
                self._write(change)
            else:
                restored.kept_ids.append(kept_id)
        if forgets is not None:
            self._set_source(forgets, changes)
        self._connection.executemany(INDEX_EPISODE, episodes)
        if episodes:
            self._connection.execute("UPDATE read_model SET last_removal_version = ?", (event.version,))
        self._connection.execute("UPDATE edits SET is_undone = ? WHERE id = ?", (int(not again), edit_id))
        for table in ("facts", "preferences"):
            self._connection.execute(_REMOVE_UNSTATED.format(table=table))
        return restored

    def _changes(self, changeset: bytes) -> Iterator[RowChange]:
        """Yield the changes of a changeset of SQLite."""
        for change in apsw.Changeset.iter(changeset):
            columns = self._columns_of(change.name)
            old, new = (_given(columns, values) for values in (change.old, change.new))
            key = {name: (old or new)[name] for name, is_key in columns.items() if is_key}
            if old and new:
                old = {name: value for name, value in old.items() if name in new}
            yield RowChange(table=change.name, key=key, before=old or None, after=new or None)

    def _columns_of(self, table: str) -> dict[str, bool]:
        """Return the columns of a table in their order, and whether each is part of the primary key."""
        if table not in self._columns:
            self._columns[table] = {name: place > 0 for name, place in self._connection.execute(_COLUMNS_OF, (table,))}
        return self._columns[table]

    def _write(self, change: RowChange) -> None:
        """Write the state of a row after a change; columns that have another value than before it stay."""
        table, after = change.table, change.after
        is_row = " AND ".join(f"{name} = ?" for name in change.key)
        if after is None:
            self._connection.execute(f"DELETE FROM {table} WHERE {is_row}", (*change.key.values(),))
        elif change.before is None:
            names, marks = ", ".join(after), ", ".join("?" * len(after))
            self._connection.execute(f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({marks})", (*after.values(),))
        else:
            for name, value in after.items():
                self._connection.execute(
                    f"UPDATE {table} SET {name} = ? WHERE {is_row} AND {name} IS ?",
                    (value, *change.key.values(), change.before[name]),
                )

    def _replaced_documents(self, changes: Iterable[RowChange]) -> frozenset[str]:
        """Return the ids of documents that are not as `changes` expect them: they were added or removed since."""
        expected = {
            change.key["id"]: (change.before or {}).get("version") for change in changes if change.table == "documents"
        }
        query = "SELECT max(version) FROM documents WHERE id = ?"
        return frozenset(
            id for id, version in expected.items() if self._connection.execute(query, (id,)).fetchone() != (version,)
        )

    def _stated_id(self, change: RowChange) -> str | None:
        """Return the id of a fact or a preference to remove that has statements which remain; None for any other."""
        if change.table not in ("facts", "preferences") or change.before is None:
            return None
        id: str = change.before["id"]
        return None if self._connection.execute(_IS_STATED, (id,)).fetchone() is None else id

    def _set_source(self, memory_id: str, changes: Sequence[RowChange]) -> None:
        """Set the status of a message as a source of summaries that were written since."""
        for change in changes:
            if change.table == "episode_sources" and change.before and change.after:
                bindings = (change.after["status"], memory_id, change.before["status"])
                self._connection.execute(_SET_SOURCE, bindings)
                return

    def _indexed_episodes(self, changes: Sequence[RowChange]) -> list[tuple[int]]:
        """Return the episodes whose rows of the keyword index change: their own, and those of the next episodes."""
        versions: set[int] = set()
        for change in changes:
            if change.table != "episodes" or _UNINDEXED.issuperset(change.after or change.before or ()):
                continue
            version = change.key["version"]
            row: _Values = (change.before or {}) | (change.after or {})
            session_id = row["session_id"] if "session_id" in row else self._session_id(version)
            following: Any = self._connection.execute(NEXT_EPISODE, (session_id, version)).fetchone()
            versions |= {version, *((following[0],) if following and following[1] == version else ())}
        return [(version,) for version in sorted(versions)]

    def _session_id(self, version: int) -> str | None:
        """Return the session of an episode."""
        row: Any = self._connection.execute("SELECT session_id FROM episodes WHERE version = ?", (version,)).fetchone()
        return None if row is None else row[0]

    def _group(self, change: RowChange) -> str:
        """Return the group of a statement."""
        row = (change.before or {}) | (change.after or {})
        if "group_key" in row:
            return row["group_key"]
        query = "SELECT group_key FROM fact_statements WHERE key = ?"
        row: Any = self._connection.execute(query, (change.key["key"],)).fetchone()
        return row[0]

    def _states(self, group: str, changes: Sequence[RowChange]) -> tuple[str, str]:
        """Return the states of a group before and after the changes of statements."""
        after = self._statements(group)
        before = dict(after)
        for change in changes:
            if change.before is None:
                before.pop(change.key["key"], None)
            elif change.after is None and change.before["group_key"] == group:
                before[change.key["key"]] = _named(change.before)
        return _hash(before.values()), _hash(after.values())

    def _state(self, group: str) -> str:
        """Return the state of a group, which differs when something else is stated."""
        return _hash(self._statements(group).values())

    def _statements(self, group: str) -> dict[int, str]:
        """Return the statements of a group by key."""
        return {
            key: _named({"id": id, "kind": kind, "value": value})
            for key, id, kind, value in self._connection.execute(_STATEMENTS_OF, (group,))
        }


def _given(columns: Sequence[str] | dict[str, bool], values: Sequence[Any] | None) -> _Values:
    """Return the values that a changeset has, by column."""
    pairs = zip(columns, values or (), strict=False)
    return {name: value for name, value in pairs if value is not apsw.no_change}


def _document_id(change: RowChange) -> str | None:
    """Return the id of the document that a row belongs to; None for the rows of other memories."""
    return (change.key.get("document_id") or change.key["id"]) if change.table in _DOCUMENT_TABLES else None


def _named(statement: _Values) -> str:
    return "\x1f".join((statement["id"], statement["kind"], statement["value"] or ""))


def _hash(statements: Iterable[str]) -> str:
    return sha256("\x1e".join(sorted(statements)).encode()).hexdigest()[:16]
