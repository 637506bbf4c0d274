"""Import commands: files of other programs as events."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import orjson
import typer
from typer.core import TyperGroup

from recollect.api.cli.progress_line import progress_bars
from recollect.api.cli.session import load_cli_settings, open_cli_log, open_cli_memory, record_command
from recollect.api.cli.terminal import echo
from recollect.events.counted_nouns import counted
from recollect.events.errors import InvalidInput

if TYPE_CHECKING:
    from recollect.api.importers.batches import ImportResult
    from recollect.api.importers.imported_records import ImportReport

#: The command that a path without a command means: `recollect import PATH` is `recollect import file PATH`.
_DEFAULT_COMMAND = "file"


class _ImportGroup(TyperGroup):
    """A group whose first argument may be the path itself."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the default command before anything that is neither a command nor a request for help."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [_DEFAULT_COMMAND, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_ImportGroup,
    help="Import the memory of another program: recollect import PATH --namespace NAME. The same again adds nothing.",
    no_args_is_help=True,
)

_File = Annotated[Path, typer.Argument(help="The file.")]


@app.command(_DEFAULT_COMMAND)
def import_file(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(help="A file, a folder, or a zip archive as it was downloaded.")],
    form: Annotated[
        str,
        typer.Option(
            "--format",
            help="auto, a format, or memory-md for files of an export; an unknown name prints the formats.",
        ),
    ] = "auto",
    namespace: Annotated[
        str | None, typer.Option(help="The namespace that it is imported to; jsonl has its own.")
    ] = None,
    user: Annotated[
        str | None, typer.Option(help="The name of the user in your bot's own messages; none when left out.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Leave out what happened before, such as 2026-01-01 or 2026-01-01T09:00:00Z.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Import at most this many messages and facts.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Write nothing, and print what would be imported.")
    ] = False,
    delete_missing: Annotated[
        bool,
        typer.Option(
            "--delete-missing",
            help="Remove the documents of notes that this folder does not have any more; --dry-run names them.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Import an export of another program: `file` can be left out. Exits with 1 when it, or an item, cannot be read.

    Messages get their original times and sessions. What another program remembered becomes facts of less confidence.
    What looks like instructions, and the user did not say, waits for a review.
    """
    from recollect.api.importers.file_import import import_path  # noqa: PLC0415
    from recollect.api.importers.imported_records import Failed, ImportReport  # noqa: PLC0415

    try:
        report = None
        if form in ("auto", "memory-md", "kira"):
            report = _import_view(context, path, form, namespace, dry_run=dry_run, delete_missing=delete_missing)
        if report is None:
            with progress_bars() as progress:
                report = import_path(
                    path,
                    settings=load_cli_settings(context.obj),
                    form=form,
                    namespace=namespace,
                    user=user,
                    since=since,
                    limit=limit,
                    dry_run=dry_run,
                    delete_missing=delete_missing,
                    on_progress=lambda done: progress.show("importing", done, None),
                )
    except InvalidInput as error:
        # Errors of options are those of every command.
        if not error.field.startswith(str(path)):
            raise
        report = ImportReport(format=form, is_dry_run=dry_run)
        report.fail(Failed(where=error.field, reason=error.reason))
    if not dry_run:
        record_command(context, "write")
    _finish(report, as_json=as_json)


def _import_view(
    context: typer.Context, path: Path, form: str, namespace: str | None, *, dry_run: bool, delete_missing: bool
) -> ImportReport | None:
    """Import the edits of an exported memory-md folder; return None for any other path."""
    from recollect.api.importers.source_files import open_source  # noqa: PLC0415
    from recollect.api.memory.view_import import import_view, is_view  # noqa: PLC0415

    with open_source(path) as files:
        if not is_view(files):
            if form != "memory-md":
                return None
            raise InvalidInput("has no file that `recollect export --format memory-md` wrote", field=str(path))
        if delete_missing:
            raise InvalidInput("is for a folder of notes, not for files of an export", field="--delete-missing")
        with _memory_folder(context.obj, dry_run=dry_run) as folder, open_cli_memory(folder) as memory:
            return import_view(memory, files, namespace, dry_run=dry_run)


@contextmanager
def _memory_folder(data: Path | None, *, dry_run: bool) -> Generator[Path | None]:
    """Yield the data folder; for a dry run without a log another one, so that it creates none."""
    from recollect.events.backends.open_log import sqlite_path  # noqa: PLC0415

    storage = load_cli_settings(data).storage
    file = sqlite_path(storage.log_url)
    if dry_run and file is not None and not file.exists():
        with TemporaryDirectory() as folder:
            yield Path(folder)
    else:
        yield data


def _finish(report: ImportReport, *, as_json: bool) -> NoReturn:
    """Print a report, and exit with 1 when an item failed."""
    echo(orjson.dumps(report.as_json(), option=orjson.OPT_INDENT_2).decode() if as_json else report.as_text())
    raise typer.Exit(1 if report.failures else 0)


@app.command()
def jsonl(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="Lines of JSON, one event each; - reads standard input.")],
    namespace: Annotated[
        str | None, typer.Option(help="The namespace of all events; each line's own when left out.")
    ] = None,
) -> None:
    """Import an export of Recollect, or events in the form of the HTTP route."""
    from recollect.api.importers.formats.jsonl_import import import_jsonl  # noqa: PLC0415

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
    record_command(context, "admin", count=imported.added)
    _print_result(imported)


def _print_result(imported: ImportResult) -> None:
    echo(f"{counted(imported.added, 'event')} imported, {imported.duplicates:,} there already")
    if imported.erased:
        echo(f"{counted(imported.erased, 'event')} left out: erased before")
