"""Job commands: worker, scheduler, jobs."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Annotated

import typer

from recollect.api.cli.session import load_cli_settings, open_cli_memory
from recollect.api.cli.terminal import echo
from recollect.events.errors import InvalidInput

app = typer.Typer(help="Background jobs: runs, processes, dead letters.", invoke_without_command=True)


def worker(context: typer.Context) -> None:
    """Process messages until stopped: project, embed, extract, compact. Several workers may run."""
    _run(context, work=True, schedule=False)


def scheduler(context: typer.Context) -> None:
    """Start the nightly jobs when they are due, until stopped. Several may run: each scheduled run is started once."""
    _run(context, work=False, schedule=True)


def _run(context: typer.Context, *, work: bool, schedule: bool) -> None:
    from recollect.api.cli.process_log import configure_process_log  # noqa: PLC0415
    from recollect.api.http.worker_endpoint import worker_endpoint  # noqa: PLC0415
    from recollect.api.memory.recollect import Recollect  # noqa: PLC0415

    settings = load_cli_settings(context.obj)
    if settings.queue.broker == "memory://":
        raise InvalidInput(
            "is memory://, whose queues exist in one process: `recollect serve` runs worker and scheduler itself. For "
            "separate processes set it to redis://host:port/0, for the server too",
            field="RECOLLECT_BROKER",
        )
    configure_process_log(settings.storage.data, settings.logging)
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stopping(stopped))
    with (
        Recollect(settings=settings, workers=work, schedule=schedule) as memory,
        worker_endpoint(memory.parts) as address,
    ):
        if memory.parts.workers is not None:
            memory.parts.workers.allow_night_processes()
        role = "works" if work else "schedules"
        where = settings.queue.broker.rpartition("@")[2]
        echo(f"Recollect {role} for {settings.storage.data.resolve()} on {where}. Ctrl-C stops.")
        if address is not None:
            echo(f"Metrics and health are at {address}/metrics and {address}/health/ready.")
        stopped.wait()


def _stopping(stopped: threading.Event) -> Callable[[int, FrameType | None], None]:
    def stop(_number: int, _frame: FrameType | None) -> None:
        stopped.set()

    return stop


@app.callback()
def jobs(context: typer.Context) -> None:
    """Show the last run of every job, the processes, the backlog, and the dead letters."""
    if context.invoked_subcommand is not None:
        return
    from recollect.api.operations.background_state import background_state  # noqa: PLC0415
    from recollect.api.operations.health import run_json  # noqa: PLC0415
    from recollect.events.envelope import now_us, rfc3339  # noqa: PLC0415

    with open_cli_memory(context.obj) as memory:
        state = background_state(memory.parts)
    for run in state.runs:
        fields = run_json(run)
        end = f"ended {fields['ended']}" if fields["ended"] else "is running"
        echo(f"{run.job}: scheduled for {fields['slot']}, started {fields['started']}, {end}")
        counts = f"{run.namespaces} namespaces, {run.events} events, {run.errors} errors"
        echo(f"  {counts} {run.error or ''}".rstrip())
    for process in state.heartbeats:
        alive = "alive" if process.is_alive(now_us()) else "DEAD"
        last = rfc3339(process.seen_at_us)
        echo(f"{process.role} {process.host} process {process.pid}: {alive}, last heartbeat {last}")
    lag = state.lag(now_us())
    least = "at least " if lag["at_least"] else ""
    echo(
        f"{least}{lag['read_models']} events to project, {lag['embeddings']} episodes to embed, {lag['extraction']} "
        f"messages to read, {state.queues_total} messages in queues"
    )
    echo(f"{least}{lag['namespaces_behind']} of {state.scan.compared} namespaces have a backlog")
    for letter in state.dead_letters:
        last = letter.error.strip().splitlines()[-1]
        echo(f"dead letter {letter.id}: {letter.actor}{letter.arguments}, {rfc3339(letter.failed_at_us)}: {last}")
    if state.problem:
        echo(state.problem, err=True)
        raise typer.Exit(1)


@app.command()
def show(context: typer.Context, letter_id: Annotated[str, typer.Argument(help="The id of a dead letter.")]) -> None:
    """Show a dead letter with its error."""
    with open_cli_memory(context.obj) as memory:
        letters = [letter for letter in memory.parts.run_store.dead_letters() if letter.id == letter_id]
    if not letters:
        raise InvalidInput("no dead letter has this id; `recollect jobs` lists them", field="letter_id")
    echo(f"{letters[0].actor}{letters[0].arguments} in queue {letters[0].queue}")
    echo(letters[0].error)


@app.command()
def requeue(
    context: typer.Context,
    letter_id: Annotated[str | None, typer.Argument(help="The id of a dead letter.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
) -> None:
    """Send dead letters to their queues again; on memory:// run them at once in this process."""
    from recollect.api.operations.requeue import requeue as requeue_letters  # noqa: PLC0415

    if (letter_id is None) is not every:
        raise InvalidInput("give the id of a dead letter, or --all", field="letter_id")
    with open_cli_memory(context.obj) as memory:
        count = requeue_letters(memory.parts, letter_id)
    if not count and letter_id is not None:
        raise InvalidInput("no dead letter has this id; `recollect jobs` lists them", field="letter_id")
    echo(f"{count} dead letters requeued")
