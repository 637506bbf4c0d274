"""``recollect bench``: how good, on conversations of the user's own."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from recollect.api.cli.opening import settings_of
from recollect.api.cli.progress import bars
from recollect.events.errors import InvalidInput

app = typer.Typer(help="Benchmarks.", no_args_is_help=True)


@app.callback()
def main() -> None:
    """Benchmarks."""


@app.command()
def retrieval(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="Conversations with questions: *.json.")],
    keep: Annotated[
        Path | None, typer.Option(help="A folder for the data, so that a second run need not embed again.")
    ] = None,
) -> None:
    """Print recall at turn and session level, MRR and latency, by set and category."""
    from recollect.api.bench.retrieval import run_retrieval_bench  # noqa: PLC0415

    files = sorted(folder.glob("*.json"))
    if not files:
        raise InvalidInput("there is no *.json in it", field=str(folder))
    with ExitStack() as stack:
        data = keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="recollect-bench-")))
        shown = stack.enter_context(bars())
        report = run_retrieval_bench(files, data, settings_of(context.obj).embedding_model, shown.show)
    typer.echo(report.render())
