"""The commands ``stats`` and ``sql``."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from recollect.api.cli.progress import bars
from recollect.api.cli.session import archive_of, load_cli_settings, open_cli_log
from recollect.events.errors import InvalidInput

if TYPE_CHECKING:
    from recollect.api.analytics.tables import Tables
    from recollect.events.backends.log import EventLog
    from recollect.events.storage.archive import Archive
    from recollect.projections.read_models.read_models import ReadModels


def sql(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help="One SELECT over events, episodes and traces; - reads standard input.")],
    output_format: Annotated[str, typer.Option("--format", help="table, json, csv or parquet.")] = "table",
    output: Annotated[Path | None, typer.Option(help="The file to write; standard output when left out.")] = None,
) -> None:
    """Ask the log, the read models and the traces in SQL (DuckDB's), read-only."""
    from recollect.api.analytics.sql_queries import render, run_query, write_parquet  # noqa: PLC0415

    text = sys.stdin.read() if query == "-" else query
    if output_format not in ("table", "json", "csv", "parquet"):
        raise InvalidInput("give table, json, csv or parquet", field="--format")
    if output_format == "parquet" and output is None:
        raise InvalidInput("name the file for Parquet", field="--output")
    with _opened(context) as (tables, *_), bars() as shown:
        on_progress = partial(shown.show, "loading")
        if output_format == "parquet":
            assert output is not None
            typer.echo(f"{write_parquet(tables, text, output, on_progress=on_progress)} rows are in {output}")
            return
        content = render(run_query(tables, text, on_progress=on_progress), output_format)
    if output is None:
        sys.stdout.buffer.write(content)
        return
    try:
        output.write_bytes(content)
    except OSError as error:
        raise InvalidInput(f"cannot be written: {error.strerror}", field=str(output)) from error


def stats(context: typer.Context, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Print events by day, type and namespace, tiers, lag, sizes and compression."""
    from recollect.api.analytics.stats import stats as compute  # noqa: PLC0415

    settings = load_cli_settings(context.obj)
    with _opened(context) as (tables, log, archive, models), bars() as shown:
        found = compute(
            tables,
            log,
            archive,
            models,
            settings.storage.data,
            on_progress=partial(shown.show, "loading"),
        )
    if as_json:
        typer.echo(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode())
    else:
        _print(found)


#: What `stats` prints as lists, with their titles.
_LISTS = (("Types", "by_type"), ("Days", "by_day"), ("Namespaces", "by_namespace"), ("Tiers", "tiers"))


def _print(found: dict[str, Any]) -> None:
    typer.echo(f"{found['events']:,} events in {found['namespaces']:,} namespaces")
    for title, name in _LISTS:
        typer.echo(f"\n{title}")
        for row in found[name]:
            first, count, *rest = row.values()
            more = "  ".join(f"{value:,}" if isinstance(value, int) else str(value) for value in rest)
            typer.echo(f"  {first:<40} {count:>12,}  {more}")
    typer.echo("\nBehind the log")
    for row in found["lag"]:
        typer.echo(f"  {row['namespace']:<40} {row['behind']:>12,}  {row['problem'] or ''}")
    if not found["lag"]:
        typer.echo("  nobody")
    typer.echo("\nSizes")
    for name, value in found["sizes"].items():
        typer.echo(f"  {name.replace('_', ' '):<40} {'unknown' if value is None else f'{value:,}':>12}")


@contextmanager
def _opened(context: typer.Context) -> Generator[tuple[Tables, EventLog, Archive, ReadModels]]:
    from recollect.api.analytics.tables import opened_tables  # noqa: PLC0415
    from recollect.projections.read_models.read_models import ReadModels  # noqa: PLC0415

    data = load_cli_settings(context.obj).storage.data
    with open_cli_log(context.obj) as log, closing(ReadModels(data, log)) as models:
        archive = archive_of(log, data)
        with opened_tables(log, archive, models, data / "traces") as tables:
            yield tables, log, archive, models
