"""Import commands: files of other programs as events."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.api.cli.progress import progress_bars
from recollect.api.cli.session import load_cli_settings, open_cli_log
from recollect.api.cli.terminal import echo
from recollect.events.errors import InvalidInput

if TYPE_CHECKING:
    from recollect.api.importers.batches import ImportResult

app = typer.Typer(help="Import events. Importing the same again adds nothing.", no_args_is_help=True)

_File = Annotated[Path, typer.Argument(help="The file.")]


@app.command()
def jsonl(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="Lines of JSON, one event each; - reads standard input.")],
    namespace: Annotated[
        str | None, typer.Option(help="The namespace of all events; each line's own when left out.")
    ] = None,
) -> None:
    """Import an export of Recollect, or events in the form of the HTTP route."""
    from recollect.api.importers.jsonl_import import import_jsonl  # noqa: PLC0415

    try:
        lines = sys.stdin.buffer if str(file) == "-" else file.open("rb")
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}", field=str(file)) from error
    with lines, open_cli_log(context.obj) as log, progress_bars() as progress:
        imported = import_jsonl(
            log,
            lines,
            namespace=namespace,
            on_progress=lambda done: progress.show("importing", done, None),
            privacy=load_cli_settings(context.obj).privacy,
        )
    _print_result(imported)


@app.command()
def locomo(context: typer.Context, file: _File) -> None:
    """Import LoCoMo conversations, each to the namespace locomo-<sample_id>."""
    from recollect.api.importers.locomo_import import import_locomo  # noqa: PLC0415

    with open_cli_log(context.obj) as log, progress_bars() as progress:
        imported = import_locomo(
            log,
            file,
            on_progress=lambda done: progress.show("importing", done, None),
            privacy=load_cli_settings(context.obj).privacy,
        )
    _print_result(imported)


def _print_result(imported: ImportResult) -> None:
    echo(f"{imported.added} events imported, {imported.duplicates} were there already")
    if imported.erased:
        echo(f"{imported.erased} events were left out, since they were erased")
