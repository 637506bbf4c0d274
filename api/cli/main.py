"""Command line: the application ``recollect`` with its commands and groups."""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from recollect.api.cli import (
    analytics_commands,
    context_commands,
    diff_command,
    doctor_command,
    edit_commands,
    erasure_commands,
    follow_commands,
    hook_commands,
    import_commands,
    job_commands,
    log_commands,
    mcp_commands,
    memory_commands,
    token_commands,
    webhook_commands,
)
from recollect.api.cli.terminal import echo
from recollect.api.method_hints import meant_by
from recollect.events.errors import NotSettled, ProjectionFailed, RecollectError

#: Objects after whose creation Python collects garbage. With its own 700, a thirtieth of the start of a command is the
#: search for garbage, which imports do not leave.
_GARBAGE_THRESHOLD = 100_000


class _DataGroup(TyperGroup):
    """A group whose commands take ``--data`` too; there it overrides the ``--data`` before the command."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        option: Any = copy(next(param for param in self.params if param.name == "data"))
        # Only the option before the command reads the environment; otherwise the variable would override it.
        option.envvar, option.expose_value, option.callback = None, False, _set_data
        _add_option(self, option)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command of the arguments; of an unknown one, name what it means before what is spelled alike."""
        meant = meant_by(args[0], self.commands) if args[0] not in self.commands else ""
        if meant:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {meant}?")
        return super().resolve_command(ctx, args)


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
#: The commands by the heading in the help, in its order.
_PANELS: dict[str, dict[str, Callable[..., Any] | typer.Typer]] = {
    "Memory": {
        "append": memory_commands.append,
        "add": edit_commands.add,
        "retrieve": memory_commands.retrieve,
        "follow": follow_commands.follow,
        "webhook": webhook_commands.app,
        "context": context_commands.context,
        "hook": hook_commands.app,
        "mcp": mcp_commands.mcp,
    },
    "Knowledge": {
        "list": edit_commands.list_memories,
        "get": edit_commands.get,
        "update": edit_commands.update,
        "pin": edit_commands.pin,
        "unpin": edit_commands.unpin,
        "end": edit_commands.end,
        "forget": edit_commands.forget,
        "undo": edit_commands.undo,
        "separate": edit_commands.separate,
        "quarantine": edit_commands.quarantine,
        "review": edit_commands.review,
    },
    "Moving in and out": {
        "import": import_commands.app,
        "export": memory_commands.export,
        "sql": analytics_commands.sql,
    },
    "Operating": {
        "serve": memory_commands.serve,
        "worker": job_commands.worker,
        "scheduler": job_commands.scheduler,
        "doctor": doctor_command.doctor,
        "stats": analytics_commands.stats,
        "jobs": job_commands.app,
        "settle": memory_commands.settle,
        "embed": memory_commands.embed,
        "replay": memory_commands.replay,
        "compact": job_commands.compact,
        "read": job_commands.read,
    },
    "The log and its copies": {
        "init": log_commands.init,
        "verify": log_commands.verify,
        "backup": log_commands.backup,
        "restore": log_commands.restore,
        "archive": log_commands.archive,
        "diff-projections": diff_command.diff_projections,
    },
    "Privacy and access": {
        "erase": erasure_commands.erase,
        "readmit": erasure_commands.readmit,
        "receipts": erasure_commands.receipts,
        "verify-receipt": erasure_commands.verify_receipt,
        "token": token_commands.app,
        "audit": token_commands.audit,
    },
}
for _panel, _commands in _PANELS.items():
    for _name, _command in _commands.items():
        if isinstance(_command, typer.Typer):
            app.add_typer(_command, name=_name, rich_help_panel=_panel)
        else:
            # An argument too many of `list` is a filter: its own error says how it is given.
            extra = {"allow_extra_args": _name == "list"}
            app.command(_name, rich_help_panel=_panel, context_settings=extra)(_command)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415

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
    gc.set_threshold(_GARBAGE_THRESHOLD)
    # The system frees the memory: without it Python looks for garbage at the end, 0.1 to 0.2 s.
    atexit.register(gc.freeze)
    try:
        app(args=arguments)
    except (NotSettled, ProjectionFailed) as error:
        echo(f"recollect: {error}", err=True)
        sys.exit(1)
    except RecollectError as error:
        echo(f"recollect: {error}", err=True)
        sys.exit(2)
