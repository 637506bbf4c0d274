"""Compaction command: the nightly jobs, run at once."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer

from recollect.api.cli.memory_commands import NamespaceOption
from recollect.api.cli.progress import progress_bars
from recollect.api.cli.session import iter_namespaces, open_cli_memory


def compact(
    context: typer.Context,
    namespace: NamespaceOption = None,
    now: Annotated[
        str | None, typer.Option(help="The time that is compared with due times (RFC 3339); the present when left out.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the events that each step would append first, and append nothing.")
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
            totals_before = memory.tiers(name)
            events.update(memory.compact(name, now=now, dry_run=dry_run).events)
            for count, tiers in ((before, totals_before), (after, memory.tiers(name))):
                for tier, totals in tiers.items():
                    count.update({f"{tier} episodes": totals.episodes, f"{tier} tokens": totals.tokens})
    would = "would be appended first" if dry_run else "appended"
    typer.echo(
        f"{len(names)} namespaces; events {would}: " + (", ".join(f"{n} {it}" for it, n in events.items()) or "none")
    )
    from recollect.projections.queries.episode_queries import TIERS  # noqa: PLC0415

    for tier in TIERS:
        was, now_is = (
            f"{count[f'{tier} episodes']:,} episodes, {count[f'{tier} tokens']:,} tokens" for count in (before, after)
        )
        typer.echo(f"{tier:>10}: {was} -> {now_is}")
