"""Memory kinds: declares every kind of memory once: its names, its columns, and what can be done with it.

A kind with `columns` is inserted, listed, filtered, updated and shown to analytics by them. Of other kinds, SQL is kept
under the list name: the statement and the filters of the list (`projections/queries`), the DuckDB columns
(`api/analytics`). The row type is in `api/result_types`. `tests/unit/test_memory_kinds.py` checks them.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

#: The section of a composed context that holds the memory (`004`).
Layer = Literal["episodic", "procedural", "conversational", "proactive"]


class MemoryKind(Struct, frozen=True, kw_only=True):
    """A kind of memory with an id."""

    #: The kind of an item, such as ``fact``.
    name: str
    #: Its list, its table and its lists in payloads, such as ``facts``.
    list_name: str
    #: Its memory layer; None: no retrieval returns it.
    layer: Layer | None
    #: The event by which a program states what it knows of this kind; None: there is none, or it is content to read.
    event_type: str | None = None
    #: The letter of the ids of what jobs extract: ``<event id>#f0``; None: jobs extract none under an id.
    id_letter: str | None = None
    #: Whether its table has a status, a pin and source events, which ending, forgetting, pinning and erasure change.
    has_status: bool = False
    #: Whether later rows of its table replace earlier ones on a timeline.
    has_timeline: bool = False
    can_be_pinned: bool = False
    #: Whether what is extracted waits for a review when its message looks like an attack.
    is_quarantined: bool = False
    #: The fields that an update can change; `text` is the field that follows it.
    editable: tuple[str, ...] = ()
    #: The columns of its list between the id and those of a status, each with its type in analytics; a name that ends
    #: with `_us` is a time. None: the statements of the list are written by hand.
    columns: str | None = None
    #: The columns that filter its list besides those of a status.
    filters: tuple[str, ...] = ()
    #: The field whose new value makes a memory supersede the one of the same name; None: an update invalidates it.
    superseding_field: str | None = None
    #: Days without confirmation until a memory becomes stale; None: never, or by the type of a fact.
    ttl_days: int | None = None

    def column_names(self) -> tuple[str, ...]:
        """Return the names of `columns`."""
        return tuple(column.partition(" ")[0] for column in (self.columns or "").split(", ") if column)


#: All kinds, in the order in which an id is looked up.
MEMORY_KINDS: tuple[MemoryKind, ...] = (
    MemoryKind(
        name="episode",
        list_name="episodes",
        layer="episodic",
        can_be_pinned=True,
        editable=("text", "metadata", "not_for"),
    ),
    MemoryKind(
        name="fact",
        list_name="facts",
        layer="conversational",
        event_type="fact.stated",
        id_letter="f",
        has_status=True,
        has_timeline=True,
        can_be_pinned=True,
        is_quarantined=True,
        editable=("text", "object", "valid_from"),
    ),
    MemoryKind(
        name="preference",
        list_name="preferences",
        layer="proactive",
        event_type="preference.stated",
        id_letter="p",
        has_status=True,
        has_timeline=True,
        can_be_pinned=True,
        is_quarantined=True,
        editable=("text", "value", "strength", "standing"),
        ttl_days=730,
    ),
    MemoryKind(
        name="procedure",
        list_name="procedures",
        layer="procedural",
        event_type="procedure.recorded",
        id_letter="w",
        has_status=True,
        can_be_pinned=True,
        is_quarantined=True,
        editable=("trigger", "steps", "context", "confidence"),
        columns="name VARCHAR, trigger VARCHAR, steps JSON, context VARCHAR, confidence DOUBLE, success_count INTEGER, "
        "failure_count INTEGER, partial_count INTEGER, last_used_us, last_outcome VARCHAR",
        filters=("name",),
        superseding_field="steps",
        ttl_days=365,
    ),
    MemoryKind(
        name="relationship",
        list_name="relationships",
        layer="conversational",
        event_type="relationship.stated",
        id_letter="l",
        has_status=True,
        can_be_pinned=True,
        editable=("source", "type", "target", "properties"),
        ttl_days=730,
    ),
    MemoryKind(
        name="document",
        list_name="documents",
        layer="proactive",
        editable=("text", "title", "uri", "metadata", "relations"),
    ),
    MemoryKind(name="observation", list_name="observations", layer=None),
    MemoryKind(
        name="entity",
        list_name="entities",
        layer="conversational",
        event_type="entity.described",
        editable=("text", "description", "type", "aliases", "importance", "metadata"),
    ),
)
#: The kinds by name.
KIND_BY_NAME = {kind.name: kind for kind in MEMORY_KINDS}
#: The kinds whose lists follow from their columns.
KINDS_WITH_COLUMNS = tuple(kind for kind in MEMORY_KINDS if kind.columns is not None)
#: The public lists whose items are no memories with an id of their own.
OTHER_LISTS = ("dates", "forgotten", "questions", "sessions")
#: The tables of memories with a status, a pin and source events.
TABLES_WITH_STATUS = tuple(kind.list_name for kind in MEMORY_KINDS if kind.has_status)
#: The letter of the ids of the memories that jobs extract, by list.
ID_LETTERS = {kind.list_name: kind.id_letter for kind in MEMORY_KINDS if kind.id_letter is not None}
#: The types of the events that state knowledge.
STATING_EVENTS = tuple(kind.event_type for kind in MEMORY_KINDS if kind.event_type is not None)
