"""Command line: the application ``recollect`` with its commands and groups."""

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
    context_commands,
    doctor_command,
    edit_commands,
    erasure_commands,
    hook_commands,
    import_commands,
    job_commands,
    log_commands,
    mcp_commands,
    memory_commands,
    token_commands,
)
from recollect.api.cli.terminal import echo
from recollect.events.errors import NotSettled, ProjectionFailed, RecollectError


class _DataGroup(TyperGroup):
    """A group whose commands take ``--data`` too; there it overrides the ``--data`` before the command."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        option: Any = copy(next(param for param in self.params if param.name == "data"))
        # Only the option before the command reads the environment; otherwise the variable would override it.
        option.envvar, option.expose_value, option.callback = None, False, _set_data
        _add_option(self, option)


def _add_option(group: Any, option: Any) -> None:
    """Add `option` to the commands of a click group (or Typer's copy of one), nested groups included."""
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
app.add_typer(job_commands.app, name="jobs")
app.add_typer(token_commands.app, name="token")
app.command()(memory_commands.serve)
app.command()(job_commands.worker)
app.command()(job_commands.scheduler)
app.command()(memory_commands.append)
app.command()(edit_commands.add)
app.command()(memory_commands.retrieve)
app.command("list")(edit_commands.list_memories)
app.command()(edit_commands.get)
app.command()(edit_commands.update)
app.command()(edit_commands.pin)
app.command()(edit_commands.unpin)
app.command()(edit_commands.end)
app.command()(edit_commands.forget)
app.command()(edit_commands.undo)
app.command()(edit_commands.separate)
app.command()(edit_commands.quarantine)
app.command()(edit_commands.review)
app.command()(erasure_commands.erase)
app.command()(erasure_commands.readmit)
app.command()(erasure_commands.receipts)
app.command("verify-receipt")(erasure_commands.verify_receipt)
app.command()(memory_commands.settle)
app.command()(memory_commands.export)
app.command()(memory_commands.embed)
app.command()(memory_commands.replay)
app.command()(job_commands.compact)
app.command()(job_commands.read)
app.command()(log_commands.init)
app.command()(log_commands.verify)
app.command()(log_commands.backup)
app.command()(log_commands.restore)
app.command()(log_commands.archive)
app.command()(doctor_command.doctor)
app.command()(analytics_commands.stats)
app.command()(analytics_commands.sql)
app.command()(token_commands.audit)
app.command()(mcp_commands.mcp)
app.command()(context_commands.context)
app.add_typer(hook_commands.app, name="hook")


def _print_version(wanted: bool) -> None:
    if wanted:
        echo(f"recollect {version('recollect')}")
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
    """Run the command line: exit 0 on success, 1 when a check failed, 2 when the input or the storage is at fault.

    Parameters:
        arguments: the arguments; those of the process when None.
    """
    try:
        app(args=arguments)
    except (NotSettled, ProjectionFailed) as error:
        echo(f"recollect: {error}", err=True)
        sys.exit(1)
    except RecollectError as error:
        echo(f"recollect: {error}", err=True)
        sys.exit(2)
