"""Quality on conversations with known answers: `python ops/evaluation answers|compaction|retrieval FOLDER`.

The embedding model and the other settings are those of the environment, as for every command.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

import orjson

from recollect.api.cli.progress_line import progress_bars
from recollect.api.settings import load_settings
from recollect.events.errors import RecollectError

sys.path.append(str(Path(__file__).parents[1]))
from evaluation.answer_benchmark import FORMS, Reader, run_answer_bench
from evaluation.compaction_benchmark import run_compaction_bench
from evaluation.retrieval_benchmark import RANKINGS, run_retrieval_bench


class _Options(Protocol):
    """The options of all commands."""

    command: Callable[[_Options], None]
    folder: Path
    keep: Path | None
    copy_of: Path | None
    after: list[int]
    per_question: Path | None
    rankings: list[Any]
    crops: bool
    llm: str
    model: str | None
    questions: int
    seed: int
    answers: Path | None
    forms: list[str]
    results: Path


def main() -> None:
    options: Any = _parser().parse_args()
    try:
        options.command(options)
    except RecollectError as error:
        raise SystemExit(str(error)) from error


def _parser() -> argparse.ArgumentParser:
    """Return the parser of the three commands."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    answers = _command(commands, "answers", _answers, "compare the answers of a language model from several contexts")
    answers.add_argument("--llm", required=True, help="the URL of a server in OpenAI's protocol; texts are sent to it")
    answers.add_argument("--model", help="the model there; the first one listed when left out")
    answers.add_argument("--questions", type=int, default=40, help="questions, drawn at random")
    answers.add_argument("--seed", type=int, default=0, help="the seed of the draw")
    answers.add_argument("--answers", type=Path, help="{conversation: {place of the question: answer}}")
    answers.add_argument("--forms", type=_words, default=list(FORMS), help="contexts, the first one beside the others")
    answers.add_argument("--results", type=Path, default=Path("answers.jsonl"), help="a second run goes on with it")
    answers.add_argument("--keep", type=Path, help="a folder for the data, so that a second run need not embed again")
    compaction = _command(commands, "compaction", _compaction, "evidence in the context before and after compaction")
    compaction.add_argument("--after", type=_days, default=[2, 10, 120], help="days to each compaction, with commas")
    compaction.add_argument("--copy-of", type=Path, help="the folder of `retrieval --keep`, copied to save embedding")
    retrieval = _command(commands, "retrieval", _retrieval, "recall, MRR, latency and effect of the gate, by set")
    retrieval.add_argument("--keep", type=Path, help="a folder for the data, so that a second run need not embed again")
    retrieval.add_argument("--per-question", type=Path, help="a file for the result of each question, a line each")
    retrieval.add_argument("--rankings", type=_rankings, default=list(RANKINGS), help=f"some of {', '.join(RANKINGS)}")
    retrieval.add_argument("--crops", action="store_true", help="also ask short memories cut out of the conversations")
    return parser


def _command(commands: Any, name: str, run: Callable[[_Options], None], help: str) -> argparse.ArgumentParser:
    """Return the parser of a command that reads a folder of conversations."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=help, description=help)
    parser.add_argument("folder", type=_folder, help="conversations with questions: *.json")
    parser.set_defaults(command=run)
    return parser


def _folder(text: str) -> Path:
    if not any(Path(text).glob("*.json")):
        raise argparse.ArgumentTypeError(f"{text} has no *.json file")
    return Path(text)


def _words(text: str) -> list[str]:
    return text.split(",")


def _rankings(text: str) -> list[str]:
    if unknown := set(_words(text)).difference(RANKINGS):
        raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: choose from {', '.join(RANKINGS)}")
    return _words(text)


def _days(text: str) -> list[int]:
    return [int(day) for day in text.split(",")]


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.json"))


@contextmanager
def _data(keep: Path | None) -> Generator[Path]:
    """Yield the folder of the data: a temporary one when none is kept."""
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder:
        yield keep or Path(folder)


def _answers(options: _Options) -> None:
    settings = load_settings().embedding
    reader = Reader(options.llm, options.model)
    with closing(reader), _data(options.keep) as data, progress_bars() as progress:
        report = run_answer_bench(
            _files(options.folder),
            data,
            reader,
            options.results,
            settings.embedding_model,
            progress.show,
            questions=options.questions,
            seed=options.seed,
            forms=options.forms,
            answers=options.answers,
            runtime=settings.embedding_runtime,
        )
    print(report)


def _compaction(options: _Options) -> None:
    settings = load_settings()
    with _data(None) as data, progress_bars() as progress:
        if options.copy_of is not None:
            shutil.copytree(options.copy_of, data, dirs_exist_ok=True)
        report = run_compaction_bench(
            _files(options.folder),
            data,
            settings.embedding.embedding_model,
            options.after,
            settings,
            progress.show,
            runtime=settings.embedding.embedding_runtime,
        )
    print(report.render())


def _retrieval(options: _Options) -> None:
    settings = load_settings().embedding
    lines: list[dict[str, Any]] = []
    with _data(options.keep) as data, progress_bars() as progress:
        report = run_retrieval_bench(
            _files(options.folder),
            data,
            settings.embedding_model,
            progress.show,
            rankings=options.rankings,
            with_crops=options.crops,
            on_result=lines.append,
            runtime=settings.embedding_runtime,
        )
    print(report.render())
    if options.per_question is not None:
        text = b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines)
        options.per_question.write_bytes(text)


if __name__ == "__main__":
    main()
