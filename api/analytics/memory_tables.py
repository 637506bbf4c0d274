"""Memory tables: the tables of sessions and knowledge in analytics, one for each public list of a read model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from recollect.events.memory_kinds import KINDS_WITH_COLUMNS
from recollect.projections.queries.page_queries import LISTS
from recollect.projections.queries.snapshot import Snapshot

#: Rows of one page that is read.
_PAGE_ROWS = 1_000
_STATE = "status VARCHAR, pinned BOOLEAN, superseded_by VARCHAR, source_events JSON, created_at_us, updated_at_us"
#: The columns of each list that are columns of its table; a name that ends with `_us` is a time.
_COLUMNS: Mapping[str, str] = {
    "sessions": "id VARCHAR, channel VARCHAR, user_id VARCHAR, started_at_us, ended_at_us, last_at_us, "
    "episode_count INTEGER, summary VARCHAR, metadata JSON",
    "entities": "id BIGINT, name VARCHAR, type VARCHAR, description VARCHAR, aliases JSON, importance INTEGER, "
    "metadata JSON, first_seen_us, last_seen_us, mention_count INTEGER",
    "facts": "id VARCHAR, subject VARCHAR, predicate VARCHAR, object VARCHAR, statement VARCHAR, "
    "statement_kind VARCHAR, evidence JSON, type VARCHAR, layer VARCHAR, "
    "confidence DOUBLE, source_type VARCHAR, valid_from_us, valid_until_us, conflict_key VARCHAR, "
    f"evidence_count INTEGER, {_STATE}",
    "preferences": "id VARCHAR, subject VARCHAR, category VARCHAR, name VARCHAR, value VARCHAR, strength DOUBLE, "
    f"standing BOOLEAN, source_type VARCHAR, evidence_count INTEGER, {_STATE}",
    **{kind.list_name: f"id VARCHAR, {kind.columns}, {_STATE}" for kind in KINDS_WITH_COLUMNS},
    "relationships": "id VARCHAR, source VARCHAR, type VARCHAR, target VARCHAR, weight DOUBLE, confidence DOUBLE, "
    f"properties JSON, evidence_count INTEGER, {_STATE}",
    "documents": "id VARCHAR, title VARCHAR, text VARCHAR, uri VARCHAR, metadata JSON, added_at_us, relations JSON",
    "observations": "id VARCHAR, session_id VARCHAR, text VARCHAR, token_count INTEGER, occurred_at_us, status VARCHAR",
}


def _fields(columns: str) -> dict[str, str]:
    """Return the types of columns by name; a time is a number of microseconds."""
    fields = {"namespace": "VARCHAR"}
    for column in columns.split(", "):
        name, _, kind = column.partition(" ")
        fields[name] = kind or "BIGINT"
    return fields


#: The types of the columns of each table, by table and column.
MEMORY_TABLES: Mapping[str, dict[str, str]] = {name: _fields(columns) for name, columns in _COLUMNS.items()}


def view_of(table: str, rows: str) -> str:
    """Return the statement that creates the view `table` over the table `rows`, with times as timestamps in UTC."""
    columns = (
        f'make_timestamp("{name}") AS "{name.removesuffix("_us")}"' if name.endswith("_us") else f'"{name}"'
        for name in MEMORY_TABLES[table]
    )
    return f"CREATE VIEW {table} AS SELECT {', '.join(columns)} FROM {rows}"


def memory_rows(snapshot: Snapshot, namespace: str, table: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a list of the read model, in the order of the columns of its table."""
    names = [name for name in MEMORY_TABLES[table] if name != "namespace"]
    after: str | int = 0 if LISTS[table].is_number else ""
    while rows := snapshot.pages.rows(table, after, limit=_PAGE_ROWS):
        yield from ((namespace, *(row[name] for name in names)) for row in rows)
        after = rows[-1][LISTS[table].cursor]
