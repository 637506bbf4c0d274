"""The command ``recollect``."""

from __future__ import annotations

import sys
from copy import copy
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from recollect.api.cli import (
    analytics_commands,
    compaction_commands,
    import_commands,
    job_commands,
    log_commands,
    memory_commands,
)
from recollect.api.cli.benchmark_commands import app as bench_app
from recollect.events.errors import ProjectionFailed, RecollectError


class _DataGroup(TyperGroup):
    """The memory_commands, each with ``--data`` after its name too; what stands there wins."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        option: Any = copy(next(param for param in self.params if param.name == "data"))
        # The environment counts for the option before the command alone, which is asked first.
        option.envvar, option.expose_value, option.callback = None, False, _set_data
        _add_option(self, option)


def _add_option(group: Any, option: Any) -> None:
    """Add an option to the commands of a group of click, or of Typer's copy of it, and of the groups in it."""
    for command in group.commands.values():
        command.params.append(option)
        if hasattr(command, "commands"):
            _add_option(command, option)


def _set_data(context: typer.Context, _option: object, data: Path | None) -> None:
    if data is not None:
        context.obj = data


app = typer.Typer(
    name="recollect",
    cls=_DataGroup,
    help="Long-term memory for chat bots and agents.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(import_commands.app, name="import")
app.add_typer(bench_app, name="bench")
app.add_typer(job_commands.app, name="jobs")
app.command()(memory_commands.serve)
app.command()(job_commands.worker)
app.command()(job_commands.scheduler)
app.command()(memory_commands.append)
app.command()(memory_commands.retrieve)
app.command()(memory_commands.export)
app.command()(memory_commands.embed)
app.command()(memory_commands.replay)
app.command()(compaction_commands.compact)
app.command()(log_commands.init)
app.command()(log_commands.verify)
app.command()(log_commands.backup)
app.command()(log_commands.restore)
app.command()(log_commands.archive)
app.command()(analytics_commands.stats)
app.command()(analytics_commands.sql)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"recollect {version('recollect')}")
        raise typer.Exit


@app.callback()
def main(
    context: typer.Context,
    data: Annotated[
        Path | None, typer.Option(help="The data folder.", envvar="RECOLLECT_DATA", show_default="recollect-data")
    ] = None,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Long-term memory for chat bots and agents."""
    context.obj = data


def run(arguments: list[str] | None = None) -> None:
    """Run the command line: exit 0 when all is well, 1 when a check failed, 2 when input or storage is at fault.

    Parameters:
        arguments: those of the process when None.
    """
    try:
        app(args=arguments)
    except ProjectionFailed as error:
        typer.echo(f"recollect: {error}", err=True)
        sys.exit(1)
    except RecollectError as error:
        typer.echo(f"recollect: {error}", err=True)
        sys.exit(2)
