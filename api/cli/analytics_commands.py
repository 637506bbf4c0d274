"""Analytics commands: stats and sql."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Generator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from recollect.api.cli.progress_line import progress_bars
from recollect.api.cli.session import archive_of, load_cli_settings, open_cli_log, record_command
from recollect.api.cli.terminal import echo, visible
from recollect.events.counted_nouns import counted
from recollect.events.errors import InvalidInput
from recollect.events.storage.private_files import make_private, open_private

if TYPE_CHECKING:
    from recollect.api.analytics.tables import Tables
    from recollect.events.backends.log import EventLog
    from recollect.events.storage.archive import Archive
    from recollect.projections.read_models.read_models import ReadModels


def sql(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help="One SELECT; SHOW TABLES lists the tables; - reads standard input.")],
    output_format: Annotated[str, typer.Option("--format", help="table, json, csv or parquet.")] = "table",
    output: Annotated[Path | None, typer.Option(help="The file to write; standard output when left out.")] = None,
    width: Annotated[
        int | None,
        typer.Option(
            metavar="<number>",
            min=20,
            help="Characters of a line of the table; longer values are cut.",
            show_default="the terminal's, or 120",
        ),
    ] = None,
) -> None:
    """Query the log, the read models and the traces in SQL (DuckDB's dialect), read-only."""
    from recollect.api.analytics.sql_queries import TABLE_WIDTH, render, run_query, write_parquet  # noqa: PLC0415

    text = sys.stdin.read() if query == "-" else query
    if output_format not in ("table", "json", "csv", "parquet"):
        raise InvalidInput("give table, json, csv or parquet", field="--format")
    if output_format == "parquet" and output is None:
        raise InvalidInput("name the file for Parquet", field="--output")
    with _open_tables(context) as (tables, *_), progress_bars() as progress:
        on_progress = partial(progress.show, "loading")
        record_command(context, "export")
        if output_format == "parquet" and output is not None:
            rows = write_parquet(tables, text, output, on_progress=on_progress)
            make_private(output)
            echo(f"{output} has {counted(rows, 'row')}")
            return
        result = run_query(tables, text, on_progress=on_progress)
    content = render(result, output_format, width=width or shutil.get_terminal_size((TABLE_WIDTH, 0)).columns)
    if output is None:
        # CSV in a pipe is data; anything else is read by a person, or is JSON, in which an escape is the same.
        shown = content if output_format == "csv" and not sys.stdout.isatty() else visible(content.decode()).encode()
        sys.stdout.buffer.write(shown)
        return
    try:
        with open_private(output) as file:
            file.write(content)
    except OSError as error:
        raise InvalidInput(f"cannot be written: {error.strerror}", field=str(output)) from error


def stats(context: typer.Context, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Print events by day, type and namespace, tiers, knowledge, lag, sizes and compression."""
    from recollect.api.analytics.stats import stats as compute  # noqa: PLC0415

    settings = load_cli_settings(context.obj)
    with _open_tables(context) as (tables, log, archive, models), progress_bars() as progress:
        figures = compute(
            tables,
            log,
            archive,
            models,
            settings.storage.data,
            on_progress=partial(progress.show, "loading"),
        )
    if as_json:
        echo(orjson.dumps(figures, option=orjson.OPT_INDENT_2).decode())
    else:
        _print(figures)


#: The lists that `stats` prints: title and name.
_LISTS = (
    ("Types", "by_type"),
    ("Days", "by_day"),
    ("Namespaces", "by_namespace"),
    ("Tiers", "tiers"),
    ("Knowledge: active, and others", "knowledge"),
)


def _print(figures: dict[str, Any]) -> None:
    echo(f"{counted(figures['events'], 'event')} in {counted(figures['namespaces'], 'namespace')}")
    for title, name in _LISTS:
        echo(f"\n{title}")
        for row in figures[name]:
            first, count, *rest = row.values()
            more = "  ".join(f"{value:,}" if isinstance(value, int) else str(value) for value in rest)
            echo(f"  {first:<40} {count:>12,}  {more}")
    echo("\nBehind the log")
    for row in figures["lag"]:
        echo(f"  {row['namespace']:<40} {row['behind']:>12,}  {row['problem'] or ''}")
    if not figures["lag"]:
        echo("  none")
    echo("\nSizes")
    for name, value in figures["sizes"].items():
        echo(f"  {name.replace('_', ' '):<40} {'unknown' if value is None else f'{value:,}':>12}")


@contextmanager
def _open_tables(context: typer.Context) -> Generator[tuple[Tables, EventLog, Archive, ReadModels]]:
    """Open the tables with the log, its archive and the read models."""
    from recollect.api.analytics.tables import opened_tables  # noqa: PLC0415
    from recollect.projections.read_models.read_models import ReadModels  # noqa: PLC0415

    data = load_cli_settings(context.obj).storage.data
    with open_cli_log(context.obj) as log, closing(ReadModels(data, log)) as models:
        archive = archive_of(log, data)
        with opened_tables(log, archive, models, data / "traces") as tables:
            yield tables, log, archive, models
