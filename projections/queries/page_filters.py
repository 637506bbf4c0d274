"""Page filters: the conditions by which the public lists can be filtered, with the values that each takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from msgspec import Struct

from recollect.events.catalogue import (
    EntityType,
    FactType,
    MemoryStatus,
    Outcome,
    PreferenceCategory,
    SourceType,
)
from recollect.events.memory_kinds import KINDS_WITH_COLUMNS, Layer

#: How a value is bound: as text, as text in lower case, as a time in microseconds, as 0 or 1, or as a name and values
#: of metadata in JSON.
FilterKind = Literal["text", "name", "time", "flag", "metadata"]


class Filter(Struct, frozen=True, kw_only=True):
    """A filter of a list."""

    #: What it selects, for the documentation.
    summary: str
    #: SQL with `{values}` for the placeholders; of metadata `?` for the name before it.
    condition: str
    kind: FilterKind = "text"
    #: The values that are allowed; any when empty.
    choices: tuple[str, ...] = ()


#: Statuses that a filter can name. A forgotten memory is in no list.
_STATUSES = get_args(MemoryStatus)
# The versions of the messages that state a memory, in the read model or summarised.
_SOURCE_VERSIONS = """
SELECT episodes.version FROM json_each({table}.source_events) AS source JOIN episodes ON episodes.id = source.value
UNION SELECT episode_sources.source FROM json_each({table}.source_events) AS source
JOIN episode_sources ON episode_sources.id = source.value
"""


def _equals(column: str, summary: str, *, choices: tuple[str, ...] = (), kind: FilterKind = "text") -> Filter:
    """Return the filter of a column by its value; ASCII letters are the same in both cases."""
    collation = "" if kind == "flag" else " COLLATE NOCASE"
    return Filter(summary=summary, condition=f"{column}{collation} IN ({{values}})", choices=choices, kind=kind)


def _since(column: str) -> Filter:
    return Filter(summary="at or after this time (RFC 3339)", condition=f"{column} >= {{values}}", kind="time")


def _until(column: str) -> Filter:
    return Filter(summary="before this time (RFC 3339)", condition=f"{column} < {{values}}", kind="time")


def _times(column: str) -> dict[str, Filter]:
    """Return the filters by time."""
    return {"since": _since(column), "until": _until(column)}


def _own_metadata(table: str) -> Filter:
    """Return the filter by the metadata of a row itself."""
    return Filter(
        summary="its metadata has this value",
        condition=f"EXISTS (SELECT 1 FROM json_each({table}.metadata) AS label WHERE label.key = ? "
        f"AND ({table}.metadata -> label.fullkey) IN ({{values}}))",
        kind="metadata",
    )


def _status(table: str) -> Filter:
    return _equals(f"{table}.status", "its status", choices=_STATUSES)


def _memory_filters(table: str) -> dict[str, Filter]:
    """Return the filters of all tables of memories: status, speaker and metadata of the sources, times."""
    sources = _SOURCE_VERSIONS.format(table=table)
    return {
        "status": _status(table),
        "pinned": _equals(f"{table}.pinned", "whether it is pinned", kind="flag"),
        "speaker": Filter(
            summary="the speaker of a message that states it",
            condition=f"EXISTS (SELECT 1 FROM json_each({table}.source_events) AS source JOIN episodes "
            "ON episodes.id = source.value WHERE episodes.speaker COLLATE NOCASE IN ({values}))",
        ),
        "metadata": Filter(
            summary="a message that states it has this metadata",
            condition="EXISTS (SELECT 1 FROM episode_metadata WHERE episode_metadata.name = ? AND value IN ({values}) "
            f"AND episode_metadata.version IN ({sources}))",
            kind="metadata",
        ),
        **_times(f"{table}.updated_at_us"),
    }


def _entity(column: str, summary: str) -> Filter:
    """Return the filter by an entity, which any of its names selects."""
    return Filter(
        summary=f"{summary}, by any of its names",
        condition=f"{column} IN (SELECT entity_id FROM entity_groups WHERE group_id IN ("
        "SELECT group_id FROM entity_names JOIN entity_groups USING (entity_id) "
        "WHERE entity_names.name IN ({values})))",
        kind="name",
    )


#: The filters of each list, by name.
FILTERS: Mapping[str, Mapping[str, Filter]] = {
    "episodes": {
        "status": _status("episodes"),
        "type": _equals("episodes.type", "its type", choices=("conversation", "action", "observation")),
        "role": _equals("role", "the role of a message"),
        "speaker": _equals("speaker", "its speaker"),
        "session_id": _equals("session_id", "its session"),
        "actor": _equals("actor", "the user, agent or tool that caused it"),
        "parent_id": _equals("parent_id", "the event that caused it"),
        "outcome": _equals("outcome", "the outcome of an action", choices=get_args(Outcome)),
        "tier": _equals("tier", "its tier", choices=("raw", "compressed", "distilled")),
        "pinned": _equals("pinned", "whether it is pinned", kind="flag"),
        "tag": Filter(
            summary="one of its tags",
            condition="EXISTS (SELECT 1 FROM json_each(episodes.tags) AS tag WHERE tag.value IN ({values}))",
        ),
        "metadata": Filter(
            summary="its metadata has this value",
            condition="version IN (SELECT version FROM episode_metadata WHERE name = ? AND value IN ({values}))",
            kind="metadata",
        ),
        **_times("occurred_at_us"),
    },
    "sessions": {
        "channel": _equals("channel", "its channel"),
        "user_id": _equals("user_id", "its user"),
        "metadata": _own_metadata("sessions"),
        **_times("last_at_us"),
    },
    "entities": {
        "type": _equals("entities.type", "its type", choices=get_args(EntityType)),
        "name": _entity("entities.id", "the entity"),
        "metadata": _own_metadata("entities"),
        **_times("last_seen_us"),
    },
    "facts": {
        "subject": _entity("facts.entity_id", "its subject"),
        "predicate": _equals("predicate", "its predicate"),
        "type": _equals("facts.type", "its type", choices=get_args(FactType)),
        "layer": _equals("layer", "its layer", choices=get_args(Layer)),
        "source_type": _equals("source_type", "its source", choices=get_args(SourceType)),
        **_memory_filters("facts"),
    },
    "preferences": {
        "subject": Filter(
            summary="whose it is, by any of the person's names",
            condition="preferences.subject IN (SELECT name FROM entity_names WHERE entity_id IN ("
            "SELECT entity_id FROM entity_groups WHERE group_id IN ("
            "SELECT group_id FROM entity_names JOIN entity_groups USING (entity_id) "
            "WHERE entity_names.name IN ({values}))))",
            kind="name",
        ),
        "category": _equals("category", "its category", choices=get_args(PreferenceCategory)),
        "name": _equals("preferences.name", "its name: the key of the event"),
        "standing": _equals("standing", "whether it is an instruction for every conversation", kind="flag"),
        "source_type": _equals("source_type", "its source", choices=get_args(SourceType)),
        **_memory_filters("preferences"),
    },
    **{
        kind.list_name: {name: _equals(f"{kind.list_name}.{name}", f"its {name}") for name in kind.filters}
        | _memory_filters(kind.list_name)
        for kind in KINDS_WITH_COLUMNS
    },
    "relationships": {
        "source": _entity("relationships.source_id", "its source entity"),
        "type": _equals("relationships.type", "its type"),
        "target": _entity("relationships.target_id", "its target entity"),
        **_memory_filters("relationships"),
    },
    "documents": {
        "title": _equals("title", "its title"),
        "metadata": _own_metadata("documents"),
        **_times("added_at_us"),
    },
    "observations": {
        "status": _equals("line.status", "its status", choices=("active", "superseded")),
        "session_id": _equals("line.session_id", "its session"),
        **_times("line.occurred_at_us"),
    },
    "forgotten": {"event_id": _equals("id", "the event that forgot it")},
    "questions": {"event_id": _equals("event_id", "the message")},
    # A range of time that begins before `until` and ends after `since`.
    "dates": {
        "event_id": _equals("event_id", "the message"),
        "since": Filter(summary="ends after this time (RFC 3339)", condition="end_us > {values}", kind="time"),
        "until": _until("start_us"),
    },
}
