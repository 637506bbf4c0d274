"""Reading command: reads a namespace again with a language model, and shows what it states otherwise."""

from __future__ import annotations

from collections import Counter
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.api.cli.progress import progress_bars
from recollect.api.cli.session import open_cli_memory
from recollect.api.cli.terminal import echo
from recollect.events.errors import InvalidInput

if TYPE_CHECKING:
    from recollect.jobs.llm_reading.llm_rereading import Rereading


def read(
    context: typer.Context,
    namespace: Annotated[str, typer.Argument(help="The namespace: 1 to 200 letters, digits and . _ : @ -")],
    again: Annotated[bool, typer.Option("--again", help="Read all messages, also those that were read.")] = False,
    model: Annotated[str | None, typer.Option("--with", help="The model; RECOLLECT_LLM when left out.")] = None,
    diff: Annotated[bool, typer.Option("--diff", help="Print the difference, and store nothing.")] = False,
    switch: Annotated[bool, typer.Option("--switch", help="Print the difference, and make it the reading.")] = False,
) -> None:
    """Read a namespace again with a language model; what users corrected, pinned or forgot stays."""
    if not again or diff == switch:
        raise InvalidInput("give --again, and either --diff or --switch", field="read")
    with open_cli_memory(context.obj) as memory, progress_bars() as progress:
        result = memory.read_again(namespace, model=model, switch=switch, on_progress=progress.show)
    _print(result)
    echo("It is the reading now." if switch else "Nothing was stored; --switch makes it the reading.")


def _print(result: Rereading) -> None:
    """Print the statements that differ, and their number by kind."""
    for sign, statements in (("+", result.added), ("-", result.removed), ("~", result.changed)):
        for statement in sorted(statements, key=itemgetter("kind", "text")):
            before = f"{statement['before']} -> " if "before" in statement else ""
            echo(f"{sign} {statement['kind']:<10} {before}{statement['text']}")
        counts = Counter(statement["kind"] for statement in statements)
        if counts:
            echo(f"{sign} {counts.total()}: " + ", ".join(f"{count} {kind}" for kind, count in counts.most_common()))
    echo(f"{result.messages} messages read by {result.model}; {result.same} statements are the same.")
