"""Analytics tables: events, episodes, memories and traces in a temporary DuckDB database."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from recollect.api.retrieval.answer.trace_store import trace_files
from recollect.events.backends.log import EventLog, each_head, each_page
from recollect.events.envelope import Head
from recollect.events.memory_kinds import KINDS_WITH_COLUMNS
from recollect.events.progress import OnProgress
from recollect.events.storage.archive import SEGMENT_COLUMNS, Archive
from recollect.projections.queries.page_queries import LISTS
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.read_models.read_models import ReadModels

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


#: Rows per INSERT into DuckDB.
_BATCH_ROWS = 8_192
#: Memory of a query before DuckDB spills it to disk.
_MEMORY = "1GB"

_EVENT_FIELDS: dict[str, str] = {
    "namespace": "VARCHAR",
    **{name: kind for name, kind in SEGMENT_COLUMNS.items() if name not in ("leaf", "hash")},
}
_EPISODE_FIELDS: dict[str, str] = {
    "namespace": "VARCHAR",
    "version": "BIGINT",
    "id": "VARCHAR",
    "session_id": "VARCHAR",
    "occurred_at_us": "BIGINT",
    "type": "VARCHAR",
    "role": "VARCHAR",
    "speaker": "VARCHAR",
    "text": "VARCHAR",
    "caption": "VARCHAR",
    "importance": "INTEGER",
    "outcome": "VARCHAR",
    "tier": "VARCHAR",
    "status": "VARCHAR",
    "token_count": "INTEGER",
}
_TRACE_FIELDS: dict[str, str] = {
    "trace_id": "VARCHAR",
    "namespace": "VARCHAR",
    "at": "TIMESTAMP",
    "query": "VARCHAR",
    "limit": "INTEGER",
    "version": "BIGINT",
    "latency_ms": "DOUBLE",
    "stages_ms": "JSON",
    "degraded": "VARCHAR[]",
    "tokens": "INTEGER",
    "context": "VARCHAR",
    "items": "JSON",
    "trigger": "VARCHAR",
    "understood": "JSON",
    "candidates": "JSON",
    "gate": "JSON",
    "dropped": "JSON",
    "answer": "JSON",
}
#: Times are UTC.
_EVENTS_VIEW = """
CREATE VIEW events AS SELECT
    namespace, version, id, type, schema_version, make_timestamp(occurred_at_us) AS occurred_at,
    make_timestamp(recorded_at_us) AS recorded_at, session_id, actor, causation_id, correlation_id,
    CASE WHEN encoding = 'json' THEN decode(payload)::JSON END AS payload
FROM ({sources})
"""
_SEGMENTS = """
SELECT owners.namespace, segments.* EXCLUDE (filename, leaf, hash)
FROM read_parquet({paths}, filename = true) AS segments JOIN loaded.owners AS owners ON owners.path = segments.filename
"""
_EPISODES_VIEW = """
CREATE VIEW episodes AS
SELECT * EXCLUDE (occurred_at_us), make_timestamp(occurred_at_us) AS occurred_at FROM loaded.episode_rows
"""


class Tables:
    """The tables of one data folder in a temporary DuckDB database; see `opened_tables`.

    Parameters:
        database: DuckDB's file, in a folder of its own.
        archive: the archive with the sealed segments of the log.
        traces: the folder of the trace files.
    """

    def __init__(self, database: Path, log: EventLog, archive: Archive, read_models: ReadModels, traces: Path) -> None:
        self._log = log
        self._archive = archive
        self._read_models = read_models
        self._traces = traces
        self.database = database
        self.connection = duckdb.connect(str(database), config=_config())
        self.connection.execute(f"SET memory_limit = '{_MEMORY}'; SET temp_directory = '{_quoted(database.parent)}'")

    def load(self, names: Collection[str], *, on_progress: OnProgress | None = None) -> None:
        """Create all tables, and fill those in `names`; other names are ignored."""
        # Only the views are in the schema that `SHOW TABLES` lists.
        self.connection.execute("CREATE SCHEMA loaded")
        heads = list(each_head(self._log))
        self._load_events(heads if "events" in names else [], on_progress)
        self._load_episodes(heads if "episodes" in names else [], on_progress)
        for table in MEMORY_TABLES:
            self._load_memories(table, heads if table in names else [], on_progress)
        self._load_traces(trace_files(self._traces) if "traces" in names else [])

    def lock(self) -> None:
        """Restrict the connection to the database and the archive's segments, for good."""
        self.connection.execute(f"SET allowed_directories = ['{_quoted(self._archive.folder.resolve())}']")
        self.connection.execute("SET enable_external_access = false; SET lock_configuration = true")

    def _load_events(self, heads: Sequence[Head], on_progress: OnProgress | None) -> None:
        self._create("tail", _EVENT_FIELDS)
        self._create("owners", {"path": "VARCHAR", "namespace": "VARCHAR"})
        owners: list[tuple[str, str]] = []
        for number, head in enumerate(heads, start=1):
            after = 0
            if self._log.keys is None or not self._log.keys.exists:
                # Encrypted segments are read through the log, which decrypts them.
                owners += [(str(path.resolve()), head.namespace) for path in self._archive.paths(head.namespace)]
                after = self._archive.sealed(head.namespace)
            for events in each_page(self._log.read, head.namespace, after=after, limit=_BATCH_ROWS):
                self._insert("tail", _EVENT_FIELDS, [event[:13] for event in events])
            if on_progress is not None:
                on_progress(number, len(heads))
        self._insert("owners", {"path": "VARCHAR", "namespace": "VARCHAR"}, owners)
        sources = "SELECT * FROM loaded.tail"
        if owners:
            paths = "[" + ", ".join(f"'{_quoted(path)}'" for path, _ in owners) + "]"
            sources += " UNION ALL BY NAME " + _SEGMENTS.format(paths=paths)
        self.connection.execute(_EVENTS_VIEW.format(sources=sources))

    def _load_episodes(self, heads: Sequence[Head], on_progress: OnProgress | None) -> None:
        self._create("episode_rows", _EPISODE_FIELDS)
        columns = [name for name in _EPISODE_FIELDS if name != "namespace"]
        for number, head in enumerate(heads, start=1):
            self._read_models.catch_up(head.namespace)
            with self._read_models.reading(head.namespace) as snapshot:
                for batch in _batches((head.namespace, *row) for row in snapshot.episodes.columns(columns)):
                    self._insert("episode_rows", _EPISODE_FIELDS, batch)
            if on_progress is not None:
                on_progress(number, len(heads))
        self.connection.execute(_EPISODES_VIEW)

    def _load_memories(self, table: str, heads: Sequence[Head], on_progress: OnProgress | None) -> None:
        fields, rows = MEMORY_TABLES[table], f"{table}_rows"
        self._create(rows, fields)
        for number, head in enumerate(heads, start=1):
            self._read_models.catch_up(head.namespace)
            with self._read_models.reading(head.namespace) as snapshot:
                for batch in _batches(memory_rows(snapshot, head.namespace, table)):
                    self._insert(rows, fields, batch)
            if on_progress is not None:
                on_progress(number, len(heads))
        self.connection.execute(view_of(table, f"loaded.{rows}"))

    def _load_traces(self, paths: Sequence[Path]) -> None:
        if not paths:
            self._create("trace_rows", _TRACE_FIELDS)
            self.connection.execute("CREATE VIEW traces AS SELECT * FROM loaded.trace_rows")
            return
        files = "[" + ", ".join(f"'{_quoted(path)}'" for path in paths) + "]"
        columns = ", ".join(f"'{name}': '{kind}'" for name, kind in _TRACE_FIELDS.items())
        self.connection.execute(
            f"CREATE TABLE traces AS SELECT * FROM read_json({files}, format = 'newline_delimited', "
            f"ignore_errors = true, columns = {{{columns}}})"
        )

    def _create(self, table: str, fields: dict[str, str]) -> None:
        columns = ", ".join(f'"{name}" {kind}' for name, kind in fields.items())
        self.connection.execute(f"CREATE TABLE loaded.{table} ({columns})")

    def _insert(self, table: str, fields: dict[str, str], rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows as numpy columns, which DuckDB reads at a million rows per second."""
        if not rows:
            return
        batch: dict[str, Any] = {}
        for (name, kind), values in zip(fields.items(), zip(*rows, strict=True), strict=True):
            is_number = kind in ("BIGINT", "INTEGER") and None not in values
            column = np.empty(len(rows), dtype=np.int64 if is_number else object)
            column[:] = values
            batch[name] = column
        self.connection.register("batch", batch)
        casts = ", ".join(f'"{name}"::{kind}' for name, kind in fields.items())
        self.connection.execute(f"INSERT INTO loaded.{table} SELECT {casts} FROM batch")
        self.connection.unregister("batch")


@contextmanager
def opened_tables(log: EventLog, archive: Archive, read_models: ReadModels, traces: Path) -> Generator[Tables]:
    """Open a temporary database for the tables, and remove it at the end."""
    with tempfile.TemporaryDirectory(prefix="recollect-sql-") as folder:
        tables = Tables(Path(folder) / "tables.duckdb", log, archive, read_models, traces)
        try:
            yield tables
        finally:
            tables.connection.close()


def _config() -> dict[str, str | bool | int | float | list[str]]:
    # DuckDB must not download extensions.
    return {"autoinstall_known_extensions": False, "autoload_known_extensions": False}


def _quoted(path: Path | str) -> str:
    return str(path).replace("'", "''")


def _batches(rows: Iterator[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    batch: list[tuple[Any, ...]] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _BATCH_ROWS:
            yield batch
            batch = []
    if batch:
        yield batch
