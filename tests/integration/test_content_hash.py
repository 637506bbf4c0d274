"""The content hash, by which a live read model is compared with a replay, changes with every value of every table."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.events import PAYLOADS, Event, events, message
from support.memory import Memory

from recollect.projections.read_models.layout import generation_path, namespace_folder
from recollect.projections.schema.content_hash import (
    EXCLUDED_COLUMNS,
    EXCLUDED_TABLES,
    content_hash,
    keyword_index_matches,
)
from recollect.projections.schema.schema import empty_read_model


def columns() -> list[tuple[str, str]]:
    """Return each column of each table of a read model."""
    with closing(empty_read_model("log", "a")) as connection:
        found: list[tuple[Any, ...]] = connection.execute(
            "SELECT tables.name, columns.name FROM sqlite_master AS tables, pragma_table_info(tables.name) AS columns "
            "WHERE tables.type = 'table' ORDER BY 1, 2"
        ).fetchall()
    return [(table, column) for table, column in found]


COLUMNS = columns()
TABLES = sorted({table for table, _ in COLUMNS})


def is_excluded(table: str) -> bool:
    return any(table == name or table.startswith(f"{name}_") for name in EXCLUDED_TABLES)


HASHED = [table for table in TABLES if not is_excluded(table)]


def labelled(text: str, id: str) -> Event:
    event = message(text, name="Ann", id=id, session_id="s")
    return event | {"payload": event["payload"] | {"metadata": {"channel": "email"}}}


#: One event of every type, and what fills the tables that these leave empty.
_EXTRACTED: Event = {
    "type": "facts.extracted",
    "payload": {
        "source_events": ["t1"],
        "extractor": "rules",
        "through": 1,
        "facts": [{"subject": "Ann", "predicate": "plays", "object": "the cello", "source_events": ["t1"]}],
        "endings": [{"subject": "Ann", "about": "the cello", "source_events": ["t1"]}],
        "questions": [{"source_event": "t1", "text": "Why?"}],
        "dates": [
            {"source_event": "t1", "text": "today", "start": "2026-01-05T00:00:00Z", "end": "2026-01-06T00:00:00Z"}
        ],
    },
}
_ABOUT = {"type": "about", "target": "Ann"}
HISTORY: list[Event] = [
    labelled("I am Ann and I met Bob", "t1"),
    labelled("Bob Lee was in Porto", "t2"),
    labelled("I went home with Bob Lee", "t3"),
    message("Zoë Lee said hello to Zoë", name="Eve"),
    {"type": "message.added", "id": "r1", "payload": {"role": "user", "text": "A cake.", "not_for": ["Bob"]}},
    {
        "type": "fact.corrected",
        "payload": {"subject": "Ann", "predicate": "bakes", "object": "a cake", "corrects": "r1"},
    },
    {"type": "entity.described", "payload": {"name": "Zoë Lee", "type": "person", "aliases": ["Zoë"]}},
    *({"type": name, "payload": PAYLOADS[name], "session_id": "s"} for name in PAYLOADS if not name.endswith("erased")),
    _EXTRACTED,
    {"type": "memory.forgotten", "payload": {"memory_id": "t3"}},
    {
        "type": "document.added",
        "payload": {"document_id": "d2", "title": "Tea", "text": "Boil.", "relations": [_ABOUT]},
    },
    {
        "type": "observations.recorded",
        "session_id": "s",
        "payload": {"observations": ["calm"], "source_events": ["t1"], "through": 1},
    },
    {"type": "episodes.compressed", "session_id": "s", "payload": {"text": "They met.", "source_events": ["t2"]}},
]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a read model whose tables all have rows."""
    folder: Path = tmp_path_factory.mktemp("filled")
    with Memory(folder) as memory:
        memory.add(HISTORY)
        check = memory.models.check("a")
        assert check.is_equal
    path = generation_path(namespace_folder(folder, "a"), 1)
    with closing(apsw.Connection(str(path))) as connection:
        # A file in WAL mode cannot be opened in memory.
        connection.pragma("journal_mode", "delete")
        return connection.serialize("main")


@pytest.fixture
def connection(filled: bytes) -> Generator[apsw.Connection]:
    with closing(apsw.Connection(":memory:")) as connection:
        connection.deserialize("main", filled)
        yield connection


def first_row(connection: apsw.Connection, table: str) -> tuple[Any, ...]:
    row = connection.execute(f"SELECT * FROM {table}").fetchone()
    assert row is not None, f"the history of this test leaves {table} empty"
    return row


def test_the_exclusions_are_what_the_schema_has() -> None:
    assert set(EXCLUDED_TABLES) <= set(TABLES)
    assert set(EXCLUDED_COLUMNS) <= set(COLUMNS)


@pytest.mark.parametrize("table", HASHED)
def test_a_row_less_in_any_table_changes_the_hash(connection: apsw.Connection, table: str) -> None:
    before = content_hash(connection)
    assert content_hash(connection) == before
    first_row(connection, table)
    connection.execute(f"DELETE FROM {table}")
    assert content_hash(connection) != before


@pytest.mark.parametrize("table", HASHED)
def test_a_row_more_in_any_table_changes_the_hash(connection: apsw.Connection, table: str) -> None:
    row = first_row(connection, table)
    connection.execute(f"DELETE FROM {table}")
    before = content_hash(connection)
    connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    assert content_hash(connection) != before


@pytest.mark.parametrize("table", HASHED)
def test_another_value_in_any_column_changes_the_hash(filled: bytes, table: str) -> None:
    for column in [column for other, column in COLUMNS if other == table]:
        with closing(apsw.Connection(":memory:")) as connection:
            connection.deserialize("main", filled)
            before = content_hash(connection)
            change(connection, table, column)
            assert (content_hash(connection) == before) == ((table, column) in EXCLUDED_COLUMNS), column


def change(connection: apsw.Connection, table: str, column: str) -> None:
    """Give a column of one row of a table another value."""
    # The columns of SQLite's own table of sequences have no type.
    kind = connection.execute(f"SELECT type FROM pragma_table_info('{table}') WHERE name = ?", (column,)).get
    other: dict[str, Any] = {"TEXT": "something else", "INTEGER": 987_654, "REAL": 0.123, "BLOB": b"other", "": 987_654}
    key = ", ".join(primary_key(connection, table))
    connection.execute(
        f"UPDATE {table} SET {column} = ? WHERE ({key}) IN (SELECT {key} FROM {table} LIMIT 1)", (other[kind],)
    )


def primary_key(connection: apsw.Connection, table: str) -> list[str]:
    """Return the columns that identify a row."""
    columns: list[tuple[Any, ...]] = connection.execute(
        f"SELECT name FROM pragma_table_info('{table}') WHERE pk > 0"
    ).fetchall()
    return [name for (name,) in columns] or ["rowid"]


def test_the_keyword_index_has_a_check_of_its_own(connection: apsw.Connection) -> None:
    assert keyword_index_matches(connection)
    connection.execute("INSERT INTO episodes_fts (rowid, text, caption, previous) VALUES (9999, 'foreign', '', '')")
    assert not keyword_index_matches(connection)


#: Fields of payloads that name an earlier event, or a memory that it states.
_REFERENCES = ("memory_id", "source_event", "fact_id", "procedure_id", "superseded_by", "kept_id")
_LISTS = ("source_events", "episode_ids", "memory_ids", "merged_ids")


#: Types that change most tables together are drawn more often than the others.
_FREQUENT: list[Event] = [
    message("Ann met Bob Lee in Porto", name="Ann", session_id="s1"),
    message("Bob Lee and Eve went home", name="Eve", session_id="s1"),
    {"type": "memory.forgotten", "payload": PAYLOADS["memory.forgotten"]},
    _EXTRACTED,
    {"type": "document.added", "payload": PAYLOADS["document.added"] | {"relations": [_ABOUT]}},
    {
        "type": "observations.recorded",
        "session_id": "s1",
        "payload": PAYLOADS["observations.recorded"] | {"through": 1},
    },
]


@st.composite
def linked_histories(draw: st.DrawFn) -> list[Event]:
    """Histories whose events name earlier ones: they forget, end, review, merge and summarise what is there."""
    history: list[Event] = []
    anything = events().filter(lambda event: not event["type"].endswith("erased"))
    for number in range(draw(st.integers(2, 30))):
        event = draw(st.one_of(anything, st.sampled_from(_FREQUENT)))
        earlier = st.integers(0, number - 1).map(lambda index: f"h{index}") if number else st.just("none")
        payload = draw(_linked(event["payload"], earlier))
        if event["type"] == "message.added":
            payload["metadata"] = draw(st.sampled_from([{}, {"channel": "email"}, {"channel": "chat", "tags": ["a"]}]))
        history.append(event | {"payload": payload, "id": f"h{number}"})
    return history


@st.composite
def _linked(draw: st.DrawFn, payload: Event, earlier: st.SearchStrategy[str]) -> Event:
    """Return a payload, and the items in it, with references to earlier events in place of its own."""
    linked = dict(payload)
    for name, value in payload.items():
        if name in _REFERENCES:
            linked[name] = draw(earlier)
        elif name in _LISTS:
            linked[name] = draw(st.lists(earlier, min_size=1, max_size=3, unique=True))
        elif name in ("facts", "endings", "questions", "dates"):
            items: list[Event] = value
            linked[name] = [draw(_linked(item, earlier)) for item in items]
    return linked


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(history=linked_histories(), batch=st.integers(1, 7))
def test_any_history_of_events_that_name_each_other_equals_its_replay(
    tmp_path_factory: pytest.TempPathFactory, history: list[Event], batch: int
) -> None:
    with Memory(tmp_path_factory.mktemp("linked"), first_batch_events=batch) as memory:
        for start in range(0, len(history), batch):
            memory.add(history[start : start + batch])
        check = memory.models.check("a")
        assert check.live_digest == check.replayed_digest
        assert check.search_equal
