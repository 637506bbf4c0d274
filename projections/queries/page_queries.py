"""Page queries: read the public lists of a read model in pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import apsw

from recollect.projections.queries.records import fetch_dicts

#: Columns that all tables of memories have.
_STATE = "status, pinned, superseded_by, source_events, stale_at_us, created_at_us, updated_at_us, version"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageStatement:
    """The statement that reads one list."""

    #: Selects the rows after a cursor (first binding), up to a limit (second binding).
    statement: str
    #: The column that orders the list; the next page begins after its last value.
    cursor: str
    #: Whether the cursor is a whole number.
    is_number: bool = True
    #: Whether the cursor column is not a field of the list's items.
    hides_cursor: bool = False


def _keyed(table: str, columns: str, source: str | None = None) -> PageStatement:
    """Return the statement of a table with an ascending key."""
    return PageStatement(
        statement=f"SELECT {table}.key, {columns} FROM {source or table} WHERE {table}.key > ? "
        f"ORDER BY {table}.key LIMIT ?",
        cursor="key",
        hides_cursor=True,
    )


_EPISODES = """
SELECT version, id, session_id, occurred_at_us, type, role, speaker, text, caption, importance, outcome, tier, status,
    pinned, expires_at_us, short, token_count
FROM episodes WHERE version > ? ORDER BY version LIMIT ?
"""
_SESSIONS = """
SELECT id, channel, user_id, started_at_us, ended_at_us, last_at_us, episode_count, summary, metadata
FROM sessions WHERE id > ? ORDER BY id LIMIT ?
"""
_ENTITIES = """
SELECT id, name, type, description, aliases, first_seen_us, last_seen_us, mention_count, spoken_count
FROM entities WHERE id > ? ORDER BY id LIMIT ?
"""
_DOCUMENTS = """
SELECT id, title, text, uri, metadata, added_at_us, version,
    (SELECT json_group_array(json_object('number', number, 'text', chunks.text)) FROM chunks
    WHERE document_id = documents.id) AS chunks,
    (SELECT json_group_array(json_object('type', type, 'target', target, 'weight', weight)) FROM document_relations
    WHERE document_id = documents.id) AS relations
FROM documents WHERE id > ? ORDER BY id LIMIT ?
"""
#: The public lists of a read model, by name.
LISTS: Mapping[str, PageStatement] = {
    "episodes": PageStatement(statement=_EPISODES, cursor="version"),
    "sessions": PageStatement(statement=_SESSIONS, cursor="id", is_number=False),
    "entities": PageStatement(statement=_ENTITIES, cursor="id"),
    "facts": _keyed(
        "facts",
        "id, subject, predicate, object, type, layer, confidence, source_type, valid_from_us, valid_until_us, "
        f"conflict_key, evidence_count, {_STATE}",
    ),
    "preferences": _keyed(
        "preferences", f"id, subject, category, name, value, strength, standing, source_type, evidence_count, {_STATE}"
    ),
    "procedures": _keyed(
        "procedures",
        "id, name, trigger, steps, context, confidence, success_count, failure_count, partial_count, last_used_us, "
        f"last_outcome, {_STATE}",
    ),
    "relationships": _keyed(
        "relationships",
        "relationships.id, source.name AS source, relationships.type, target.name AS target, weight, confidence, "
        f"evidence_count, {_STATE}",
        "relationships JOIN entities AS source ON source.id = source_id "
        "JOIN entities AS target ON target.id = target_id",
    ),
    "documents": PageStatement(statement=_DOCUMENTS, cursor="id", is_number=False),
    "observations": _keyed("observations", "event_id, session_id, text, token_count, occurred_at_us, status"),
    "questions": _keyed("questions", "event_id, text"),
    "dates": _keyed("date_mentions", "event_id, text, start_us, end_us"),
}


class PageQueries:
    """Queries for pages of the public lists."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def rows(self, name: str, after: str | int, *, limit: int) -> list[dict[str, Any]]:
        """Return up to `limit` rows of the list `name` after the cursor `after`, as dicts by column name."""
        return list(fetch_dicts(self._connection, LISTS[name].statement, (after, limit)))
