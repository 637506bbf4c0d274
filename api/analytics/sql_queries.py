"""``recollect sql``: one question in SQL, read-only, over `events`, `episodes` and `traces`."""

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
    """The rows of an answer, by the names of its columns."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def run_query(tables: Tables, sql: str, *, on_progress: OnProgress | None = None) -> QueryResult:
    """Run one SELECT and return its rows.

    Only the tables that it names are loaded. It sees nothing outside them: no file, no network, no setting.

    Raises:
        InvalidInput: it is no single SELECT, or DuckDB refuses it.
    """
    try:
        statements = tables.connection.extract_statements(sql)
        if len(statements) != 1 or statements[0].type not in (
            duckdb.StatementType.SELECT,
            duckdb.StatementType.EXPLAIN,
        ):
            raise InvalidInput("give one SELECT; nothing can be changed here", field="sql")
        tables.load({name.lower() for name in tables.connection.get_table_names(sql)}, on_progress=on_progress)
        tables.lock()
        found = tables.connection.execute(statements[0])
        return QueryResult(tuple(column[0] for column in found.description or ()), found.fetchall())
    except duckdb.Error as error:
        raise InvalidInput(str(error).strip().replace("\n", " "), field="sql") from None


def render(answer: QueryResult, kind: Format) -> bytes:
    """Return the answer as text: `table`, `json` (a list of objects) or `csv` (with a header)."""
    match kind:
        case "json":
            rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
            return orjson.dumps(rows, default=str, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS) + b"\n"
        case "csv":
            text = io.StringIO()
            writer = csv.writer(text)
            writer.writerow(answer.columns)
            writer.writerows(answer.rows)
            return text.getvalue().encode()
        case _:
            table = Table(*answer.columns)
            for row in answer.rows:
                table.add_row(*("" if value is None else str(value) for value in row), style=None)
            text = io.StringIO()
            Console(file=text, width=200, markup=False, highlight=False).print(table)
            return text.getvalue().encode()


def write_parquet(tables: Tables, sql: str, path: Path, *, on_progress: OnProgress | None = None) -> int:
    """Run one SELECT, write its rows to the Parquet file `path`, and return how many they are.

    Raises:
        InvalidInput: as `ask`, or the file cannot be written.
    """
    # Checked as a question, kept as a table of the temporary database, and written by a connection that may write.
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
