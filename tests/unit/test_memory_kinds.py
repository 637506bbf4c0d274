"""Memory kinds: what is declared of a kind exists in every part that works by kind or by list."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args, get_overloads, get_type_hints

import pytest

from recollect.api import result_types
from recollect.api.analytics.tables import MEMORY_TABLES
from recollect.api.client import page_calls
from recollect.api.client.client_lists import ClientLists
from recollect.api.memory.async_recollect import AsyncRecollect
from recollect.api.memory.memory_edits import MemoryChanges
from recollect.api.memory.memory_lists import MemoryLists
from recollect.api.memory.subject_export import EXPORTED_LISTS
from recollect.api.retrieval.contract.request import Kind
from recollect.events.catalogue import EVENT_CLASSES, PRODUCER_EVENTS, FactsExtracted, payload_fields, type_of
from recollect.events.memory_kinds import ID_LETTERS, MEMORY_KINDS, OTHER_LISTS, TABLES_WITH_STATUS, MemoryKind
from recollect.projections.queries.page_filters import FILTERS
from recollect.projections.queries.page_queries import LISTS
from recollect.projections.schema.content_hash import EXCLUDED_TABLES
from recollect.projections.schema.schema import empty_read_model
from recollect.projections.schema.time_to_live import TTL_DAYS

_DOCS = Path(__file__).parents[2] / "docs"
#: Columns of a table with a status, which pinning, ending, forgetting and erasure change.
_STATUS_COLUMNS = {"id", "status", "pinned", "superseded_by", "source_events", "updated_at_us"}

every_kind = pytest.mark.parametrize("kind", MEMORY_KINDS, ids=lambda kind: kind.name)


@pytest.fixture(scope="module")
def columns() -> dict[str, set[str]]:
    """Return the columns of each table of a read model."""
    connection = empty_read_model("a", "a")
    rows: list[tuple[Any, ...]] = connection.execute(
        "SELECT m.name, c.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c WHERE m.type = 'table'"
    ).fetchall()
    tables: dict[str, set[str]] = {}
    for table, column in rows:
        tables.setdefault(table, set()).add(column)
    return tables


def test_no_two_kinds_share_a_name_a_list_or_a_letter() -> None:
    assert len({kind.name for kind in MEMORY_KINDS}) == len(MEMORY_KINDS)
    assert len({*OTHER_LISTS, *(kind.list_name for kind in MEMORY_KINDS)}) == len(MEMORY_KINDS) + len(OTHER_LISTS)
    assert len(set(ID_LETTERS.values())) == len(ID_LETTERS)


@every_kind
def test_a_kind_is_listed_with_filters_and_a_row_type(kind: MemoryKind) -> None:
    assert kind.list_name in LISTS
    assert kind.list_name in FILTERS
    assert kind.list_name in result_types.LIST_ROWS
    assert kind.list_name in page_calls.LISTS


def test_there_is_no_list_of_an_undeclared_kind() -> None:
    declared = {*OTHER_LISTS, *(kind.list_name for kind in MEMORY_KINDS)}
    assert declared == set(LISTS) == set(FILTERS) == set(result_types.LIST_ROWS) == set(page_calls.LISTS)


@every_kind
@pytest.mark.parametrize("surface", [MemoryLists, ClientLists, AsyncRecollect])
def test_a_type_checker_knows_the_rows_of_a_list(kind: MemoryKind, surface: Any) -> None:
    names = [overload.__annotations__["name"].replace("'", '"') for overload in get_overloads(surface.list)]
    assert f'Literal["{kind.list_name}"]' in names


@every_kind
def test_a_memory_of_a_kind_is_typed_by_it(kind: MemoryKind) -> None:
    kinds = {get_args(get_type_hints(item)["kind"])[0] for item in get_args(result_types.MemoryItem)}
    assert kind.name in kinds
    assert {kind.name for kind in MEMORY_KINDS} == kinds


@every_kind
def test_a_kind_with_columns_has_a_row_of_them_and_is_stated_by_them(
    kind: MemoryKind, columns: dict[str, set[str]]
) -> None:
    names = kind.column_names()
    if kind.columns is None:
        assert (kind.filters, kind.superseding_field) == ((), None)
        return
    assert columns[kind.list_name] >= set(names)
    row = get_type_hints(result_types.LIST_ROWS[kind.list_name])
    assert {name.removesuffix("_us") for name in names} <= set(row)
    assert {*kind.filters, *filter(None, (kind.superseding_field,))} <= set(names)
    # An update states the columns again that the event has.
    assert kind.event_type is not None
    stated = payload_fields(EVENT_CLASSES[kind.event_type]) - {"source_events"}
    assert stated <= {name.removesuffix("_us") for name in names}
    assert set(kind.editable) <= stated


@every_kind
def test_a_kind_is_pinned_ended_and_edited_as_declared(kind: MemoryKind) -> None:
    pinnable = {get_args(get_type_hints(item)["kind"])[0] for item in get_args(result_types.PinnableMemory)}
    endable = {get_args(get_type_hints(item)["kind"])[0] for item in get_args(result_types.EndableMemory)}
    assert kind.can_be_pinned == (kind.name in pinnable)
    assert kind.has_status == (kind.name in endable)
    assert set(kind.editable) <= {"text", *MemoryChanges.__annotations__}


@every_kind
def test_the_table_of_a_kind_is_hashed_and_has_the_columns_that_its_status_takes(
    kind: MemoryKind, columns: dict[str, set[str]]
) -> None:
    assert kind.list_name in columns
    assert kind.list_name not in EXCLUDED_TABLES
    assert kind.has_status == (kind.list_name in TABLES_WITH_STATUS)
    if kind.has_status:
        assert columns[kind.list_name] >= _STATUS_COLUMNS
        assert kind.name in TTL_DAYS


@every_kind
def test_a_kind_that_jobs_extract_is_a_list_of_the_event(kind: MemoryKind) -> None:
    if kind.id_letter is not None:
        assert kind.list_name in get_type_hints(get_type_hints(FactsExtracted)["payload"])


@every_kind
def test_the_event_that_states_a_kind_is_of_producers(kind: MemoryKind) -> None:
    assert kind.event_type is None or kind.event_type in {type_of(event) for event in PRODUCER_EVENTS}


@every_kind
def test_a_kind_is_exported(kind: MemoryKind) -> None:
    assert kind.list_name in EXPORTED_LISTS
    assert kind.list_name in result_types.SubjectExport.__annotations__
    if kind.name != "episode":
        assert kind.list_name in MEMORY_TABLES


@every_kind
def test_a_retrieval_returns_the_kinds_that_have_a_layer(kind: MemoryKind) -> None:
    assert (kind.name in get_args(Kind)) == (kind.layer is not None)


@every_kind
def test_a_kind_is_documented(kind: MemoryKind) -> None:
    http = (_DOCS / "reference" / "http.md").read_text(encoding="utf-8")
    assert f"| `{kind.list_name}` | " in http
