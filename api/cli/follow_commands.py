"""Follow commands: follow."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Annotated

import orjson
import typer

from recollect.api.cli.session import open_audit, open_cli_memory
from recollect.api.cli.terminal import echo, visible


def follow(
    context: typer.Context,
    namespace: Annotated[str, typer.Argument(help="The namespace: 1 to 200 letters, digits and . _ : @ -")],
    cursor: Annotated[
        str | None, typer.Option(help="A name for the position, from which the next call with this name goes on.")
    ] = None,
    types: Annotated[
        list[str] | None, typer.Option(help="Only events of this type, such as message.added; may be repeated.")
    ] = None,
    knowledge: Annotated[
        bool,
        typer.Option("--knowledge", help="What events change about facts, preferences and tasks, in place of them."),
    ] = False,
    from_start: Annotated[
        bool, typer.Option("--from-start", help="Begin with the first event, where no position is stored.")
    ] = False,
) -> None:
    """Print the events of a namespace as lines of JSON, and those that are added, until interrupted.

    A line is handled when it was written: the next call with the same cursor prints those after it, and after a crash
    perhaps the last one again.
    """
    from recollect.api.access.audit_log import command_entry  # noqa: PLC0415

    with open_cli_memory(context.obj) as memory, suppress(KeyboardInterrupt, BrokenPipeError):
        after = 0 if from_start else None
        items = memory.follow(namespace, cursor=cursor, after=after, types=types or (), knowledge=knowledge)
        open_audit(context.obj).record(command_entry("recollect follow", namespace, ("export",), count=None))
        if memory.parts.log.head(namespace).version == 0:
            echo(f"{namespace} has no events yet; Ctrl-C ends the wait for the first one", err=True)
        for item in items:
            sys.stdout.buffer.write(visible(orjson.dumps(item).decode()).encode() + b"\n")
            sys.stdout.buffer.flush()
