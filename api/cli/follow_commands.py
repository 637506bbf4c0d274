"""Follow commands: follow; and the part of replay that fills the projections of other packages again."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from recollect.api.cli.session import open_cli_memory, record_command
from recollect.api.cli.terminal import echo, visible
from recollect.events.counted_nouns import counted

if TYPE_CHECKING:
    from recollect.api.settings import Settings
    from recollect.events.backends.log import EventLog
    from recollect.events.envelope import Head
    from recollect.projections.read_models.read_models import ReadModels

TypesOption = Annotated[
    list[str] | None, typer.Option(help="Only events of this type, such as message.added; may be repeated.")
]
KnowledgeOption = Annotated[
    bool, typer.Option("--knowledge", help="What events change about facts, preferences and tasks, in place of them.")
]


def follow(
    context: typer.Context,
    namespace: Annotated[str, typer.Argument(help="The namespace: 1 to 200 letters, digits and . _ : @ -")],
    cursor: Annotated[
        str | None, typer.Option(help="A name for the position, from which the next call with this name goes on.")
    ] = None,
    types: TypesOption = None,
    knowledge: KnowledgeOption = False,
    from_start: Annotated[
        bool, typer.Option("--from-start", help="Begin with the first event, where no position is stored.")
    ] = False,
) -> None:
    """Print the events of a namespace as lines of JSON, and those that are added, until interrupted.

    A line is handled when it was written: the next call with the same cursor prints those after it, and after a crash
    perhaps the last one again.
    """
    with open_cli_memory(context.obj) as memory, suppress(KeyboardInterrupt, BrokenPipeError):
        # An exception may be lost in a callback of SQLite, where the interrupt comes at any time.
        stop = memory.parts.job_context.stop
        signal.signal(signal.SIGINT, lambda _number, _frame: stop.set())
        after = 0 if from_start else None
        items = memory.follow(namespace, cursor=cursor, after=after, types=types or (), knowledge=knowledge)
        record_command(context, "export")
        if memory.parts.log.head(namespace).version == 0:
            echo(f"{namespace} has no events yet; Ctrl-C ends the wait for the first one", err=True)
        for item in items:
            sys.stdout.buffer.write(visible(orjson.dumps(item).decode()).encode() + b"\n")
            sys.stdout.buffer.flush()


def replay_own(settings: Settings, log: EventLog, models: ReadModels, heads: Sequence[Head]) -> int:
    """Rebuild the projections of other packages; return how many failed, in which namespaces."""
    from recollect.events.errors import short_text  # noqa: PLC0415
    from recollect.jobs.following.consumers import ConsumerRuns, consumer_of  # noqa: PLC0415
    from recollect.jobs.following.extensions import installed_projections  # noqa: PLC0415
    from recollect.jobs.queue.broker import open_run_store  # noqa: PLC0415

    failed = 0
    with closing(open_run_store(settings.queue.broker, settings.storage.data)) as store:
        runs = ConsumerRuns(log, models, store, threading.Event())
        for consumer in map(consumer_of, installed_projections().values()):
            for head in heads:
                try:
                    position = runs.rebuild(consumer, head.namespace)
                    echo(f"{head.namespace}: {consumer.name}, {counted(position, 'event')} replayed")
                except Exception as error:
                    failed += 1
                    echo(f"{head.namespace}: {consumer.name} FAILED: {short_text(error)}")
    return failed
