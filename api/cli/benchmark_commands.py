"""Benchmark commands: quality of answers, retrieval and compaction on the user's own conversations."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from recollect.api.cli.progress import progress_bars
from recollect.api.cli.session import load_cli_settings
from recollect.api.cli.terminal import echo
from recollect.events.errors import InvalidInput

if TYPE_CHECKING:
    from recollect.api.retrieval.contract.request import Ranking

app = typer.Typer(help="Benchmarks.", no_args_is_help=True)


@app.callback()
def main() -> None:
    """Benchmarks."""


def _files(folder: Path) -> list[Path]:
    files = sorted(folder.glob("*.json"))
    if not files:
        raise InvalidInput("has no *.json file", field=str(folder))
    return files


@app.command()
def answers(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="Conversations with questions and their answers: *.json.")],
    llm: Annotated[str, typer.Option(help="The URL of a server in OpenAI's protocol; the texts are sent to it.")],
    model: Annotated[str | None, typer.Option(help="The model there; the first one listed when left out.")] = None,
    questions: Annotated[int, typer.Option(min=1, help="Questions, drawn at random from all conversations.")] = 40,
    seed: Annotated[int, typer.Option(help="The seed of the draw.")] = 0,
    answers: Annotated[
        Path | None,
        typer.Option(help="Expected answers: {conversation: {place of the question, from 0: answer}}, as JSON."),
    ] = None,
    forms: Annotated[
        str, typer.Option(help="The contexts to compare, with commas; differences are to the first one.")
    ] = "recollect,vectors,bm25,gold,nothing",
    results: Annotated[
        Path, typer.Option(help="A file for the answers, one line of JSON each; a second run goes on with it.")
    ] = Path("answers.jsonl"),
    keep: Annotated[
        Path | None, typer.Option(help="A folder for the data, so that a second run need not embed again.")
    ] = None,
) -> None:
    """Compare the answers of a model from the context, from vectors, BM25, the evidence alone, and without context."""
    from recollect.api.evaluation.answer_benchmark import Reader, run_answer_bench  # noqa: PLC0415

    files = _files(folder)
    with ExitStack() as stack:
        data = keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="recollect-bench-")))
        progress = stack.enter_context(progress_bars())
        settings = load_cli_settings(context.obj).embedding
        reader = stack.enter_context(closing(Reader(llm, model)))
        report = run_answer_bench(
            files,
            data,
            reader,
            results,
            settings.embedding_model,
            progress.show,
            questions=questions,
            seed=seed,
            forms=forms.split(","),
            answers=answers,
            runtime=settings.embedding_runtime,
        )
    echo(report)


@app.command()
def compaction(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="Conversations with questions: *.json.")],
    after: Annotated[
        str,
        typer.Option(help="Days from the last message to each compaction, ascending, with commas."),
    ] = "2,10,120",
    copy_of: Annotated[
        Path | None,
        typer.Option(help="The folder of `bench retrieval --keep`, copied, so that nothing is embedded again."),
    ] = None,
) -> None:
    """Print the share of the evidence that the context holds, and the tokens, before and after compaction."""
    from recollect.api.evaluation.compaction_benchmark import run_compaction_bench  # noqa: PLC0415

    try:
        days = [int(day) for day in after.split(",")]
    except ValueError:
        raise InvalidInput("give whole numbers of days with commas between them", field="--after") from None
    settings = load_cli_settings(context.obj)
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as data, progress_bars() as progress:
        if copy_of is not None:
            _copy(copy_of, Path(data))
        report = run_compaction_bench(
            _files(folder),
            Path(data),
            settings.embedding.embedding_model,
            days,
            settings,
            progress.show,
            runtime=settings.embedding.embedding_runtime,
        )
    echo(report.render())


def _copy(folder: Path, data: Path) -> None:
    """Copy the data folder of a benchmark."""
    try:
        shutil.copytree(folder, data, dirs_exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"cannot be copied: {error}", field="--copy-of") from error


@app.command()
def retrieval(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="Conversations with questions: *.json.")],
    keep: Annotated[
        Path | None, typer.Option(help="A folder for the data, so that a second run need not embed again.")
    ] = None,
    per_question: Annotated[
        Path | None, typer.Option(help="A file for the results of each question, one line of JSON each.")
    ] = None,
    rankings: Annotated[
        str, typer.Option(help="The rankings to compare, with commas: weighted, rrf, seeds, keyword, semantic; or all.")
    ] = "all",
    crops: Annotated[bool, typer.Option(help="Also ask short memories cut out of the conversations.")] = False,
) -> None:
    """Print recall at turn and session level, MRR, latency and effect of the gate, by set, ranking and category."""
    from recollect.api.evaluation.retrieval_benchmark import RANKINGS, run_retrieval_bench  # noqa: PLC0415

    files = _files(folder)
    chosen: list[Ranking] = [name for name in RANKINGS if rankings == "all" or name in rankings.split(",")]
    if not chosen or (rankings != "all" and len(chosen) != len(set(rankings.split(",")))):
        raise InvalidInput(f"give some of {', '.join(RANKINGS)}, or all", field="--rankings")
    lines: list[dict[str, Any]] = []
    with ExitStack() as stack:
        data = keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="recollect-bench-")))
        progress = stack.enter_context(progress_bars())
        settings = load_cli_settings(context.obj)
        report = run_retrieval_bench(
            files,
            data,
            settings.embedding.embedding_model,
            progress.show,
            rankings=chosen,
            with_crops=crops,
            on_result=lines.append,
            runtime=settings.embedding.embedding_runtime,
        )
    echo(report.render())
    if per_question is not None:
        try:
            per_question.write_bytes(b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines))
        except OSError as error:
            raise InvalidInput(f"cannot be written: {error.strerror}", field=str(per_question)) from error
