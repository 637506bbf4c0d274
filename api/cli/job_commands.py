"""Job commands: worker, scheduler, jobs, compact, read."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from operator import itemgetter
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.api.cli.progress_line import ProgressBars, progress_bars
from recollect.api.cli.session import (
    NamespaceOption,
    iter_namespaces,
    load_cli_settings,
    open_cli_memory,
    record_command,
)
from recollect.api.cli.terminal import echo
from recollect.events.counted_nouns import counted
from recollect.events.errors import InvalidInput

if TYPE_CHECKING:
    from recollect.jobs.llm_reading.llm_rereading import Rereading


_Namespace = Annotated[str, typer.Argument(help="The namespace: 1 to 200 letters, digits and . _ : @ -")]
app = typer.Typer(
    help="Background jobs: runs, processes, parked namespaces, dead letters.", invoke_without_command=True
)


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
    """Show the last run of every job, the processes, the backlog, parked namespaces, and the dead letters."""
    if context.invoked_subcommand is not None:
        return
    from recollect.api.operations.background_state import background_state  # noqa: PLC0415
    from recollect.api.operations.failures import list_failures  # noqa: PLC0415
    from recollect.api.operations.health import run_json  # noqa: PLC0415
    from recollect.events.envelope import now_us, rfc3339  # noqa: PLC0415

    with open_cli_memory(context.obj) as memory:
        state = background_state(memory.parts)
        failures = list_failures(memory.parts, state)
    for run in state.runs:
        fields = run_json(run)
        end = f"ended {fields['ended']}" if fields["ended"] else "is running"
        echo(f"{run.job}: scheduled for {fields['slot']}, started {fields['started']}, {end}")
        counts = ", ".join(
            (counted(run.namespaces, "namespace"), counted(run.events, "event"), counted(run.errors, "error"))
        )
        echo(f"  {counts} {run.error or ''}".rstrip())
    for process in state.heartbeats:
        alive = "alive" if process.is_alive(now_us()) else "DEAD"
        last = rfc3339(process.seen_at_us)
        echo(f"{process.role} {process.host} process {process.pid}: {alive}, last heartbeat {last}")
    lag = state.lag(now_us())
    least = "at least " if lag["at_least"] else ""
    echo(
        f"{least}{counted(lag['read_models'], 'event')} to project, {counted(lag['embeddings'], 'episode')} to embed, "
        f"{counted(lag['extraction'], 'message')} to read, {counted(state.queues_total, 'message')} in queues"
    )
    echo(f"with a backlog: {least}{lag['namespaces_behind']} of {counted(state.scan.compared, 'namespace')}")
    for parked in failures["parked"]:
        event = f" ({parked['type']}, {parked['event_id']})" if parked["type"] else ""
        echo(f"parked {parked['namespace']}: version {parked['version']}{event}: {parked['error']}")
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
    from recollect.api.operations.dead_letters import requeue as requeue_letters  # noqa: PLC0415

    if (letter_id is None) is not every:
        raise InvalidInput("give the id of a dead letter, or --all", field="letter_id")
    with open_cli_memory(context.obj) as memory:
        count = requeue_letters(memory.parts, letter_id)
    if not count and letter_id is not None:
        raise InvalidInput("no dead letter has this id; `recollect jobs` lists them", field="letter_id")
    echo(f"{count} dead letters requeued")


@app.command()
def retry(context: typer.Context, namespace: _Namespace) -> None:
    """Project a parked namespace again from the event at which it is parked."""
    from recollect.api.operations.failures import retry_parked  # noqa: PLC0415

    with open_cli_memory(context.obj) as memory:
        _print_progress(namespace, retry_parked(memory.parts, namespace))


@app.command()
def skip(
    context: typer.Context,
    namespace: _Namespace,
    version: Annotated[int, typer.Argument(min=1, help="The version at which it is parked.")],
    reason: Annotated[str, typer.Option(help="Why the event is left out; it is recorded in the log.")],
) -> None:
    """Leave out the event at which a namespace is parked, as long as it cannot be projected, and go on after it."""
    from recollect.api.operations.failures import skip_parked  # noqa: PLC0415

    with open_cli_memory(context.obj) as memory:
        progress = skip_parked(memory.parts, namespace, version, reason)
    record_command(context, "admin", count=1)
    _print_progress(namespace, progress)


def _print_progress(namespace: str, progress: dict[str, Any]) -> None:
    """Print how far a namespace is projected; exit with 1 when it is parked again."""
    echo(f"{namespace}: version {progress['version']} of {progress['head']}")
    if progress["parked"]:
        echo(f"parked at version {progress['parked']['version']}: {progress['parked']['error']}", err=True)
        raise typer.Exit(1)


def compact(
    context: typer.Context,
    namespace: NamespaceOption = None,
    now: Annotated[
        str | None, typer.Option(help="The time that is compared with due times (RFC 3339); the present when left out.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what the same run would do, and append nothing.")
    ] = False,
) -> None:
    """Run the nightly jobs: extract, compress, distill, expire, merge duplicates, mark stale facts."""
    from recollect.api.as_of import parse_past_us  # noqa: PLC0415

    # Before the model is loaded, which takes seconds.
    parse_past_us(now, field="now")
    events: Counter[str] = Counter()
    before: Counter[str] = Counter()
    after: Counter[str] = Counter()
    with open_cli_memory(context.obj) as memory, progress_bars() as progress:
        progress.show("loading the model", 0, 1)
        memory.parts.vectors.embedder.start()
        memory.parts.vectors.embedder.wait_ready(600)
        names = list(iter_namespaces(memory.parts.log, namespace))
        for number, name in enumerate(names):
            progress.show("compacting", number, len(names))
            done = memory.compact(name, now=now, dry_run=dry_run, on_progress=partial(_show_step, progress, name))
            events.update(done.events)
            for count, tiers in ((before, done.tiers_before), (after, done.tiers_after)):
                for tier, totals in tiers.items():
                    count.update({f"{tier} episodes": totals.episodes, f"{tier} tokens": totals.tokens})
    from recollect.jobs.queue.nightly import STEPS  # noqa: PLC0415
    from recollect.projections.queries.episode_queries import TIERS  # noqa: PLC0415

    appended = "that would be appended" if dry_run else "appended"
    # In the order of the steps, of all namespaces together.
    counts = [f"{events[step]} {step}" for step in ("extract", *STEPS) if events[step]]
    echo(f"{counted(len(names), 'namespace')}; events {appended}: {', '.join(counts) or 'none'}")

    for tier in TIERS:
        was, now_is = (
            f"{counted(count[f'{tier} episodes'], 'episode')}, {counted(count[f'{tier} tokens'], 'token')}"
            for count in (before, after)
        )
        echo(f"{tier:>10}: {was} -> {now_is}")


def _show_step(progress: ProgressBars, namespace: str, step: str, done: int, total: int | None) -> None:
    """Show the step of a namespace that begins."""
    progress.show(f"{namespace}: {step}", done, total)


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
    echo(
        f"{counted(result.messages, 'message')} read by {result.model}; the same: {counted(result.same, 'statement')}."
    )
