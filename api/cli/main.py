"""The command ``recollect``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from recollect.api.cli import analytics, commands, compaction, imports, jobs, upkeep
from recollect.api.cli.bench import app as bench_app
from recollect.events.errors import ProjectionFailed, RecollectError

app = typer.Typer(
    name="recollect",
    help="Long-term memory for chat bots and agents.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(imports.app, name="import")
app.add_typer(bench_app, name="bench")
app.add_typer(jobs.app, name="jobs")
app.command()(commands.serve)
app.command()(jobs.worker)
app.command()(jobs.scheduler)
app.command()(commands.append)
app.command()(commands.retrieve)
app.command()(commands.export)
app.command()(commands.embed)
app.command()(commands.replay)
app.command()(compaction.compact)
app.command()(upkeep.verify)
app.command()(upkeep.backup)
app.command()(upkeep.restore)
app.command()(upkeep.archive)
app.command()(analytics.stats)
app.command()(analytics.sql)


@app.callback()
def main(
    context: typer.Context,
    data: Annotated[
        Path | None, typer.Option(help="The data folder.", envvar="RECOLLECT_DATA", show_default="recollect-data")
    ] = None,
) -> None:
    """Long-term memory for chat bots and agents."""
    context.obj = data


def run() -> None:
    """Run the command line: exit 0 when all is well, 1 when a check failed, 2 when input or storage is at fault."""
    try:
        app()
    except ProjectionFailed as error:
        typer.echo(f"recollect: {error}", err=True)
        sys.exit(1)
    except RecollectError as error:
        typer.echo(f"recollect: {error}", err=True)
        sys.exit(2)
