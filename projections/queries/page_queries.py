"""Page queries: read the public lists of a read model in pages, filtered, and single items by id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import apsw
from msgspec import Struct

from recollect.events.memory_kinds import KINDS_WITH_COLUMNS, MEMORY_KINDS, TABLES_WITH_STATUS
from recollect.projections.queries.day_zone import DayZone
from recollect.projections.queries.page_filters import FILTERS
from recollect.projections.queries.records import fetch_dicts, fetch_value, fetch_values, placeholders

#: Columns that all tables of memories have.
_STATE = "status, pinned, superseded_by, source_events, stale_at_us, created_at_us, updated_at_us, version"

#: What a review decided on a memory that looked like instructions, or that it waits; NULL: it needs no review.
REVIEW = "(SELECT quarantine.status FROM quarantine WHERE memory_id = {id}) AS review"


# The id of an observation: that of its event, and its number within the event.
_OBSERVATION_ID = """
(event_id || '#o' || (
    SELECT count(*) FROM observations AS other WHERE other.event_id = line.event_id AND other.key < line.key
))"""


#: Whether the description of an entity comes from a relationship with one of the statuses, such as `Ann's boyfriend`.
DESCRIBED_BY = """
EXISTS (
    SELECT 1 FROM relationships AS r JOIN entities AS source ON source.id = r.source_id
    WHERE r.target_id = entities.id AND r.status IN ({statuses})
    AND entities.description = source.name || '''s ' || r.type
)"""
# The description, unless the relationship that gave it is forgotten.
_DESCRIPTION = "iif(" + DESCRIBED_BY.format(statuses="'forgotten'") + ", NULL, entities.description)"
#: A forgotten entity is hidden until it is named again, and one that a forgotten memory named while nothing else does.
READABLE_ENTITY = f"""
((forgotten_version = 0 AND (spoken_count > 0 OR {_DESCRIPTION} IS NOT NULL)) OR (
    forgotten_version = 0 AND NOT EXISTS (SELECT 1 FROM forgotten_entities WHERE entity_id = entities.id)
) OR EXISTS (SELECT 1 FROM mentions WHERE entity_id = entities.id AND version > forgotten_version) OR EXISTS (
    SELECT 1 FROM facts WHERE entity_id = entities.id AND version > forgotten_version AND status <> 'forgotten'
) OR EXISTS (
    SELECT 1 FROM relationships
    WHERE entities.id IN (source_id, target_id) AND version > forgotten_version AND status <> 'forgotten'
))"""


# Entities of a type, and those about which something is known; all while no names were extracted from messages. What
# knowledge names is one set for all rows: read for each, it took a second at 10,000 entities and 900 facts.
_KNOWN_ENTITY = f"""
(entities.type <> 'other' OR spoken_count > 0 OR coalesce({_DESCRIPTION}, importance, entities.metadata) IS NOT NULL
OR NOT EXISTS (SELECT 1 FROM entity_evidence WHERE confidence < 100) OR entities.id IN (
    SELECT group_id FROM facts JOIN entity_groups USING (entity_id) WHERE status NOT IN ('rejected', 'forgotten')
    UNION SELECT source_id FROM relationships WHERE status <> 'forgotten'
    UNION SELECT target_id FROM relationships WHERE status <> 'forgotten'
))"""
# An entity that is listed, with those whose names are other names of it. By `entity_groups` SQLite reads all entities
# for each row: a page took 0.5 s at 12,000.
_WITH_OTHERS = """
FROM entities AS e WHERE e.id = entities.id OR e.id IN (SELECT entity_id FROM entity_merges WHERE into_id = entities.id)
"""
_ENTITY_COLUMNS = f"""
id, name, type, {_DESCRIPTION} AS description, aliases, importance, metadata,
(SELECT min(e.first_seen_us) {_WITH_OTHERS}) AS first_seen_us,
(SELECT max(e.last_seen_us) {_WITH_OTHERS}) AS last_seen_us,
(SELECT sum(e.mention_count) {_WITH_OTHERS}) AS mention_count,
(SELECT sum(e.spoken_count) {_WITH_OTHERS}) AS spoken_count,
(SELECT json_group_array(json_object(
    'name', e.name, 'reason', reason, 'source_events', json(source_events)
)) FROM entity_merges JOIN entities AS e ON e.id = entity_id WHERE into_id = entities.id) AS merged"""


#: The name of the entity that is the subject of a preference; empty: the preference is the user's.
PREFERENCE_SUBJECT = """
coalesce((
    SELECT e.name FROM entity_names JOIN entities AS e ON e.id = entity_names.entity_id
    WHERE entity_names.name = preferences.subject
), preferences.subject)"""


_TOTALS = "SELECT count(*) FILTER (WHERE status = 'active'), count(*) FILTER (WHERE status <> 'active') FROM {source}"


# Episodes with a value of metadata, and the summaries of such episodes.
_WITH_METADATA = "SELECT version FROM episode_metadata WHERE name = ? AND value IN ({values})"
_SUMMARIES_WITH_METADATA = "SELECT DISTINCT version FROM episode_sources WHERE source IN ({versions})"


class Selection(NamedTuple):
    """A filter of a list with the values that it selects: a row has one of them."""

    #: A key of `FILTERS` of the list.
    filter: str
    #: Bound as the kind of the filter says.
    values: tuple[str | int, ...]
    #: Of metadata, the name of the value; None for other filters.
    label: str | None = None


class PageStatement(Struct, frozen=True, kw_only=True):
    """The parts of the statement that reads one list."""

    columns: str
    #: The tables.
    source: str
    #: The column that orders the list; the next page begins after its last value.
    cursor: str
    #: The condition of the rows that can be read.
    readable: str = "TRUE"
    #: The condition of the rows that are listed without one of `listing_filters`.
    listed: str = "TRUE"
    #: The filters that select among all rows that can be read.
    listing_filters: tuple[str, ...] = ("status",)
    #: Whether the cursor is a whole number.
    is_number: bool = True
    #: Whether the cursor column is not a field of the list's items.
    hides_cursor: bool = False
    #: The name of the cursor column in SQL; `cursor` when None.
    cursor_column: str | None = None
    #: Expression of the id of an item; None: the items have no id.
    id_column: str | None = None


def _keyed(table: str, columns: str, source: str | None = None) -> PageStatement:
    """Return the statement of a table of memories, which has an ascending key."""
    return PageStatement(
        columns=f"{table}.key, {columns}, {REVIEW.format(id=f'{table}.id')}",
        source=source or table,
        readable=f"{table}.status <> 'forgotten'",
        # What failed the quality gate is listed on request.
        listed=f"{table}.status <> 'rejected'",
        cursor="key",
        cursor_column=f"{table}.key",
        hides_cursor=True,
        id_column=f"{table}.id",
    )


#: The public lists of a read model, by name.
LISTS: Mapping[str, PageStatement] = {
    "episodes": PageStatement(
        columns="version, id, session_id, occurred_at_us, utc_offset, type, role, speaker, actor, text, caption, "
        "importance, outcome, tags, details, metadata, parent_id, tier, status, pinned, expires_at_us, short, "
        "token_count",
        source="episodes",
        readable="status <> 'forgotten'",
        cursor="version",
        id_column="id",
    ),
    "sessions": PageStatement(
        columns="id, channel, user_id, started_at_us, ended_at_us, last_at_us, episode_count, summary, metadata, "
        "utc_offset",
        source="sessions",
        cursor="id",
        is_number=False,
    ),
    "entities": PageStatement(
        columns=_ENTITY_COLUMNS,
        source="entities",
        readable=f"{READABLE_ENTITY} AND entities.id NOT IN (SELECT entity_id FROM entity_merges)",
        # What has no type is listed on request.
        listed=_KNOWN_ENTITY,
        listing_filters=("type", "name"),
        cursor="id",
        id_column="name",
    ),
    "facts": _keyed(
        "facts",
        "id, subject, predicate, object, statement, statement_kind, evidence, type, layer, confidence, source_type, "
        f"valid_from_us, valid_until_us, conflict_key, evidence_count, {_STATE}",
        "current_facts AS facts",
    ),
    "preferences": _keyed(
        "preferences",
        f"id, {PREFERENCE_SUBJECT} AS subject, category, name, value, strength, standing, source_type, valid_from_us, "
        f"valid_until_us, evidence_count, {_STATE}",
    ),
    **{
        kind.list_name: _keyed(kind.list_name, ", ".join(("id", *kind.column_names(), _STATE)))
        for kind in KINDS_WITH_COLUMNS
    },
    "relationships": _keyed(
        "relationships",
        "relationships.id, source.name AS source, relationships.type, target.name AS target, weight, confidence, "
        f"properties, evidence_count, {_STATE}",
        "relationships JOIN entities AS source ON source.id = source_id "
        "JOIN entities AS target ON target.id = target_id",
    ),
    "documents": PageStatement(
        columns=f"""id, title, text, uri, metadata, added_at_us, version, edit_id, {REVIEW.format(id="documents.id")},
    (SELECT json_group_array(json_object('number', number, 'text', chunks.text)) FROM chunks
    WHERE document_id = documents.id) AS chunks,
    (SELECT json_group_array(json_object('type', type, 'target', target, 'weight', weight)) FROM document_relations
    WHERE document_id = documents.id) AS relations""",
        source="documents",
        cursor="id",
        is_number=False,
        id_column="id",
    ),
    "observations": PageStatement(
        columns=f"key, {_OBSERVATION_ID} AS id, event_id, session_id, text, token_count, occurred_at_us, status, "
        "source_events",
        source="observations AS line",
        readable="line.status <> 'forgotten'",
        cursor="key",
        cursor_column="line.key",
        hides_cursor=True,
        id_column=_OBSERVATION_ID,
    ),
    "forgotten": PageStatement(
        columns="version, id AS event_id, forgets AS id",
        source="edits",
        readable="forgets IS NOT NULL AND is_undone = 0",
        cursor="version",
    ),
    "questions": PageStatement(columns="key, event_id, text", source="questions", cursor="key", hides_cursor=True),
    "dates": PageStatement(
        columns="key, event_id, text, start_us, end_us, probability",
        source="date_mentions",
        cursor="key",
        hides_cursor=True,
    ),
}
#: The lists whose items are memories with an id, with the kind of an item, in the order in which an id is looked up.
KINDS: Mapping[str, str] = {kind.list_name: kind.name for kind in MEMORY_KINDS}


class PageQueries:
    """Queries for pages of the public lists."""

    def __init__(self, connection: apsw.Connection, days: DayZone) -> None:
        self._connection = connection
        self._days = days

    def rows(
        self, name: str, after: str | int, *, limit: int, selections: Sequence[Selection] = ()
    ) -> list[dict[str, Any]]:
        """Return up to `limit` rows of the list `name` after the cursor `after`, as dicts by column name."""
        definition = LISTS[name]
        conditions = [definition.readable]
        if not any(selection.filter in definition.listing_filters for selection in selections):
            conditions.append(definition.listed)
        selected, bindings = _conditions(name, selections)
        conditions += selected
        cursor = definition.cursor_column or definition.cursor
        statement = (
            f"SELECT {definition.columns} FROM {definition.source} WHERE {' AND '.join(conditions)} AND {cursor} > ? "
            f"ORDER BY {cursor} LIMIT ?"
        )
        return [self._zoned(row) for row in fetch_dicts(self._connection, statement, (*bindings, after, limit))]

    def row(self, name: str, id: str) -> dict[str, Any] | None:
        """Return the row of the list `name` with an id; None when the list has no such row."""
        definition = LISTS[name]
        statement = (
            f"SELECT {definition.columns} FROM {definition.source} "
            f"WHERE {definition.readable} AND {definition.id_column} = ? LIMIT 1"
        )
        row = next(fetch_dicts(self._connection, statement, (id,)), None)
        return None if row is None else self._zoned(row)

    def _zoned(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return a row with the minutes of its time east of UTC, where the list has them."""
        if "utc_offset" in row:
            at_us = row["started_at_us"] if "started_at_us" in row else row["occurred_at_us"]
            row["utc_offset"] = self._days.offset(at_us, row["utc_offset"])
        return row

    def passes(self, kind: str, id: str, selections: Sequence[Selection]) -> bool:
        """Return whether the memory of a kind (`KINDS`) with an id passes all filters."""
        name = next(name for name, own_kind in KINDS.items() if own_kind == kind)
        conditions, bindings = _conditions(name, selections)
        statement = (
            f"SELECT 1 FROM {LISTS[name].source} WHERE {' AND '.join(['TRUE', *conditions])} "
            f"AND {LISTS[name].id_column} = ? LIMIT 1"
        )
        return fetch_value(self._connection, statement, (*bindings, id)) is not None

    def episodes_with_metadata(self, selection: Selection, *, summaries: bool) -> list[int]:
        """Return the versions of the episodes, or of their summaries, that a selection by metadata selects."""
        statement = _WITH_METADATA.format(values=placeholders(len(selection.values)))
        statement = _SUMMARIES_WITH_METADATA.format(versions=statement) if summaries else statement
        return fetch_values(self._connection, statement, (selection.label, *selection.values))

    def totals(self) -> dict[str, tuple[int, int]]:
        """Return how many active rows and how many others each list with a status has, by list; not of episodes."""
        totals: dict[str, tuple[int, int]] = {}
        for name in TABLES_WITH_STATUS:
            rows: list[Any] = self._connection.execute(_TOTALS.format(source=LISTS[name].source)).fetchall()
            totals[name] = rows[0]
        return totals

    def entity_name(self, name: str) -> str | None:
        """Return the name of the entity with this name, alias or number; None when there is none."""
        statement = (
            "SELECT entities.name FROM entity_names JOIN entity_groups USING (entity_id) "
            "JOIN entities ON entities.id = group_id WHERE entity_names.name = ?1 "
            "UNION ALL SELECT name FROM entities WHERE CAST(id AS TEXT) = ?1 LIMIT 1"
        )
        return fetch_value(self._connection, statement, (name.casefold(),))

    def summary_ids(self, source_id: str) -> list[str]:
        """Return the ids of the active summaries of a message, ordered by version; empty when it is in none."""
        statement = (
            "SELECT episodes.id FROM episode_sources JOIN episodes USING (version) "
            "WHERE episode_sources.id = ? AND episode_sources.status <> 'forgotten' "
            "AND episodes.status = 'active' ORDER BY version"
        )
        return fetch_values(self._connection, statement, (source_id,))


def _conditions(name: str, selections: Sequence[Selection]) -> tuple[list[str], list[str | int]]:
    """Return the conditions of the filters of the list `name`, and their bindings in order."""
    conditions: list[str] = []
    bindings: list[str | int] = []
    for selection in selections:
        condition = FILTERS[name][selection.filter].condition
        conditions.append(condition.format(values=placeholders(len(selection.values))))
        bindings += [*([] if selection.label is None else [selection.label]), *selection.values]
    return conditions, bindings
