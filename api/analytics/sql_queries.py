"""SQL queries: one read-only SELECT over the tables `events`, `episodes` and `traces`."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import duckdb
import orjson
from rich.console import Console
from rich.table import Table

from recollect.api.analytics.tables import Tables
from recollect.events.errors import InvalidInput
from recollect.events.progress import OnProgress

Format = Literal["table", "json", "csv", "parquet"]


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The rows of a query and the names of its columns."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def run_query(tables: Tables, sql: str, *, on_progress: OnProgress | None = None) -> QueryResult:
    """Run one SELECT and return its rows.

    Only the tables that it names are loaded. It has no access to other files, the network or settings.

    Raises:
        InvalidInput: `sql` is not a single SELECT, or DuckDB refuses it.
    """
    try:
        statements = tables.connection.extract_statements(sql)
        if len(statements) != 1 or statements[0].type not in (
            duckdb.StatementType.SELECT,
            duckdb.StatementType.EXPLAIN,
        ):
            raise InvalidInput("give one SELECT; other statements are not allowed", field="sql")
        tables.load({name.lower() for name in tables.connection.get_table_names(sql)}, on_progress=on_progress)
        tables.lock()
        cursor = tables.connection.execute(statements[0])
        return QueryResult(tuple(column[0] for column in cursor.description or ()), cursor.fetchall())
    except duckdb.Error as error:
        raise InvalidInput(str(error).strip().replace("\n", " "), field="sql") from None


def render(result: QueryResult, output_format: Format) -> bytes:
    """Return `result` as text: `table`, `json` (a list of objects) or `csv` (with a header)."""
    match output_format:
        case "json":
            rows = [dict(zip(result.columns, row, strict=True)) for row in result.rows]
            return orjson.dumps(rows, default=str, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS) + b"\n"
        case "csv":
            text = io.StringIO()
            writer = csv.writer(text)
            writer.writerow(result.columns)
            writer.writerows(result.rows)
            return text.getvalue().encode()
        case _:
            table = Table(*result.columns)
            for row in result.rows:
                table.add_row(*("" if value is None else str(value) for value in row), style=None)
            text = io.StringIO()
            Console(file=text, width=200, markup=False, highlight=False).print(table)
            return text.getvalue().encode()


def write_parquet(tables: Tables, sql: str, path: Path, *, on_progress: OnProgress | None = None) -> int:
    """Run one SELECT, write its rows to the Parquet file `path`, and return their number.

    Raises:
        InvalidInput: as `run_query`, or the file cannot be written.
    """
    # The locked connection may not write files: it checks the query and stores the rows in a table of the temporary
    # database, which another connection writes.
    run_query(tables, f"SELECT 1 FROM ({sql.rstrip().rstrip(';')}) LIMIT 0", on_progress=on_progress)
    try:
        tables.connection.execute(f"CREATE TABLE answer AS {sql}")
        tables.connection.close()
        with duckdb.connect(str(tables.database)) as writer:
            quoted = str(path).replace("'", "''")
            writer.execute(f"COPY answer TO '{quoted}' (FORMAT parquet, COMPRESSION zstd)")
            count = writer.execute("SELECT count(*) FROM answer").fetchone()
    except duckdb.Error as error:
        raise InvalidInput(str(error).strip().replace("\n", " "), field="sql") from None
    return count[0] if count else 0
