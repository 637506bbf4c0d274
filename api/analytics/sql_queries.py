"""SQL queries: one read-only SELECT over the tables of analytics."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any, Literal

import duckdb
import orjson
from msgspec import Struct
from rich.console import Console
from rich.table import Column, Table

from recollect.api.analytics.tables import Tables
from recollect.events.errors import InvalidInput
from recollect.events.progress import OnProgress

#: The first characters of what spreadsheets take for a formula.
_FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")
Format = Literal["table", "json", "csv", "parquet"]

#: Characters of a line of a table where nothing else is said.
TABLE_WIDTH = 120
#: Characters of a column under which a table is not readable.
_COLUMN_WIDTH_MIN = 12


class QueryResult(Struct, frozen=True):
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


def render(result: QueryResult, output_format: Format, *, width: int = TABLE_WIDTH) -> bytes:
    """Return `result` as text: `table`, `json` (a list of objects) or `csv` (with a header).

    Parameters:
        width: characters of a line of the table, at most.
    """
    match output_format:
        case "json":
            rows = [dict(zip(result.columns, row, strict=True)) for row in result.rows]
            return orjson.dumps(rows, default=str, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS) + b"\n"
        case "csv":
            text = io.StringIO()
            writer = csv.writer(text)
            writer.writerow(result.columns)
            writer.writerows([*map(_without_formula, row)] for row in result.rows)
            return text.getvalue().encode()
        case _:
            return _table(result, width).encode()


def _without_formula(value: Any) -> Any:
    """Return a value as a cell that no spreadsheet computes: text like a formula gets an apostrophe (by OWASP)."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA_SIGNS) else value


def _table(result: QueryResult, width: int) -> str:
    """Return the rows as a table with a line each, or, with too many columns for that, as a block of lines each."""
    cells = [["" if value is None else " ".join(str(value).split()) for value in row] for row in result.rows]
    text = io.StringIO()
    console = Console(file=text, width=width, markup=False, highlight=False)
    if len(result.columns) * _COLUMN_WIDTH_MIN > width:
        name_width = max(map(len, result.columns))
        for number, row in enumerate(cells, start=1):
            lines = [f"{name:<{name_width}}  {value}" for name, value in zip(result.columns, row, strict=True)]
            lines.insert(0, f"-- row {number}")
            text.write("".join(f"{_cut(line, width)}\n" for line in lines))
        return text.getvalue()
    table = Table(*(Column(name, no_wrap=True, overflow="ellipsis") for name in result.columns))
    for row in cells:
        table.add_row(*row, style=None)
    console.print(table)
    return text.getvalue()


def _cut(line: str, width: int) -> str:
    """Return `line` in at most `width` characters."""
    return line if len(line) <= width else f"{line[: width - 1]}…"


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
