"""Compaction command: the nightly jobs, run at once."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Annotated

import typer

from recollect.api.cli.memory_commands import NamespaceOption
from recollect.api.cli.progress import ProgressBars, progress_bars
from recollect.api.cli.session import iter_namespaces, open_cli_memory
from recollect.api.cli.terminal import echo


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
    echo(f"{len(names)} namespaces; events {appended}: {', '.join(counts) or 'none'}")

    for tier in TIERS:
        was, now_is = (
            f"{count[f'{tier} episodes']:,} episodes, {count[f'{tier} tokens']:,} tokens" for count in (before, after)
        )
        echo(f"{tier:>10}: {was} -> {now_is}")


def _show_step(progress: ProgressBars, namespace: str, step: str, done: int, total: int | None) -> None:
    """Show the step of a namespace that begins."""
    progress.show(f"{namespace}: {step}", done, total)
