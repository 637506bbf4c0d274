"""The commands that stand alone."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Annotated

import orjson
import typer

from recollect.api.cli.opening import (
    archive_of,
    heads_of,
    namespaces_of,
    open_models,
    opened_log,
    opened_memory,
    settings_of,
)
from recollect.api.cli.progress import bars
from recollect.events.backend import sqlite_path
from recollect.events.errors import InvalidInput
from recollect.events.validation import drafts_from_json
from recollect.events.verify import Verdict

_Namespace = Annotated[str, typer.Argument(help="Whose memory: 1 to 200 letters, digits and . _ : @ -")]
_OneOrAll = Annotated[str | None, typer.Option("--namespace", help="Only this one; all when it is left out.")]
_AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

#: Processes at once, when nobody says.
_CORES = os.cpu_count() or 1
_Processes = Annotated[int, typer.Option(min=1, help="How many processes work side by side.", show_default="cores")]

#: How long `retrieve` waits for the model; loading takes seconds, fetching it from the hub longer.
_MODEL_SECONDS_MAX = 300


def serve(
    context: typer.Context,
    host: Annotated[str | None, typer.Option(help="The address to listen on.", show_default="127.0.0.1")] = None,
    port: Annotated[int | None, typer.Option(help="The port; 0 takes a free one.", show_default="8787")] = None,
) -> None:
    """Serve the memory over HTTP, with worker and scheduler in this process."""
    from recollect.api.http.server import serve as serve_http  # noqa: PLC0415

    settings = settings_of(context.obj)
    # What the server says of itself, such as which model it uses; of its libraries only warnings.
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("recollect").setLevel(logging.INFO)
    changes = {"host": host or settings.host, "port": settings.port if port is None else port}
    settings = settings.model_copy(update=changes)

    def announce(address: str) -> None:
        typer.echo(f"Recollect serves {settings.data.resolve()} at {address} (API: {address}/docs)")
        typer.echo("The embedding model loads in the background; until then retrieval is by keywords. Ctrl-C stops.")
        sys.stdout.flush()

    serve_http(settings, on_listening=announce)


def append(
    context: typer.Context,
    namespace: _Namespace,
    event: Annotated[
        str, typer.Argument(help='An event or {"events": […]} as JSON; - reads it from standard input.')
    ] = "-",
) -> None:
    """Record one event, or a batch all or none."""
    body = sys.stdin.buffer.read() if event == "-" else event.encode(errors="surrogateescape")
    drafts, expected_version = drafts_from_json(body)
    with opened_log(context.obj) as log:
        for one in log.append(namespace, drafts, expected_version=expected_version):
            typer.echo(f"{one.version}\t{one.id}{'	duplicate' if one.duplicate else ''}")


def retrieve(
    context: typer.Context,
    namespace: _Namespace,
    query: Annotated[str, typer.Argument(help="What to remember something about.")],
    limit: Annotated[int, typer.Option(min=1, max=100, help="Most items.")] = 10,
    budget_tokens: Annotated[int, typer.Option(min=0, help="Most tokens in the context.")] = 3_500,
    as_json: _AsJson = False,
) -> None:
    """Print what the memory has for a query. Waits for the model and embeds what is not embedded yet."""
    with opened_memory(context.obj) as memory, bars() as shown:
        shown.show("loading the model", 0, None)
        memory.embedder.start()
        memory.models.catch_up(namespace)
        memory.embedder.wait_ready(_MODEL_SECONDS_MAX)
        memory.vectors.embed_news(namespace, on_progress=partial(shown.show, "embedding"))
        result = memory.retrieve(namespace, query, limit=limit, budget_tokens=budget_tokens)
    if as_json:
        typer.echo(orjson.dumps(result.as_json(), option=orjson.OPT_INDENT_2).decode())
        return
    typer.echo(result.context or "Nothing found.")
    for part in result.degraded:
        typer.echo(f"degraded: {part}", err=True)


def export(
    context: typer.Context,
    namespace: _OneOrAll = None,
    output: Annotated[Path | None, typer.Option(help="The file to write; standard output when left out.")] = None,
) -> None:
    """Write the log as lines of JSON, which `import jsonl` takes back."""
    from recollect.api.exporter import export_lines  # noqa: PLC0415

    with opened_log(context.obj) as log, bars() as shown:
        try:
            target = sys.stdout.buffer if output is None else output.open("wb")
        except OSError as error:
            raise InvalidInput(f"cannot be written: {error.strerror}", field=str(output)) from error
        with target:
            for name in namespaces_of(log, namespace):
                total = log.head(name).version
                for done, line in enumerate(export_lines(log, name), start=1):
                    target.write(line)
                    if done % 1_000 == 0:
                        shown.show(name, done, total)


def embed(
    context: typer.Context,
    model: Annotated[
        str | None,
        typer.Option(help="Change to this model, a name or a path: embed everything with it beside the one in use."),
    ] = None,
    namespace: _OneOrAll = None,
    undo: Annotated[bool, typer.Option("--undo", help="Go back to the model before the last change.")] = False,
) -> None:
    """Embed what has no vectors yet, or change the model while everything goes on serving."""
    if undo and (model or namespace):
        raise InvalidInput("stands alone", field="--undo")
    with opened_memory(context.obj) as memory, bars() as shown:
        if undo:
            typer.echo(f"{memory.undo_embed()} is in use again")
            return
        done = memory.embed(model, namespace=namespace, on_progress=shown.show)
        typer.echo(f"{done} episodes embedded with {model or memory.embedder.name}")
    if model is not None:
        typer.echo("It is in use from now on; a running server loads it first. `recollect embed --undo` goes back.")


def replay(
    context: typer.Context,
    namespace: _OneOrAll = None,
    check: Annotated[
        bool, typer.Option("--check", help="Rebuild beside the live read models and compare; exit 1 on a difference.")
    ] = False,
    processes: _Processes = _CORES,
) -> None:
    """Rebuild read models from the log while they go on serving; exit 1 when one cannot be."""
    from recollect.projections.models import ReadModels  # noqa: PLC0415
    from recollect.projections.rebuild import rebuild  # noqa: PLC0415

    settings = settings_of(context.obj)
    failed = 0
    with opened_log(context.obj) as log, closing(ReadModels(settings.data, log)) as models, bars() as shown:
        heads = heads_of(log, namespace)
        reopen = partial(open_models, settings.data, settings.log_url)
        on_progress = partial(shown.show, "checking" if check else "replaying")
        work = "check" if check else "replay"
        for done in rebuild(heads, models, open_models=reopen, work=work, processes=processes, on_progress=on_progress):
            if done.error is not None:
                failed += 1
                typer.echo(f"{done.namespace}: FAILED: {done.error}")
            elif done.check is None:
                typer.echo(f"{done.namespace}: {done.version} events replayed")
            else:
                failed += not done.check.equal
                verdict = "equal" if done.check.equal else "DIFFERENT"
                typer.echo(f"{done.namespace}: {verdict} at version {done.version}, digest {done.check.live_digest}")
    raise typer.Exit(1 if failed else 0)


def verify(
    context: typer.Context,
    namespace: _OneOrAll = None,
    processes: _Processes = _CORES,
    anchor: Annotated[
        Path | None, typer.Option(help="Compare with heads kept elsewhere: finds a log whose end was cut off.")
    ] = None,
    save_anchor: Annotated[
        Path | None, typer.Option(help="Write the verified heads to this file, to be kept elsewhere.")
    ] = None,
) -> None:
    """Recompute the hash chains of the log; exit 1 when something was altered, removed or reordered."""
    from recollect.events.anchor import read_anchor, write_anchor  # noqa: PLC0415
    from recollect.events.audit import audit  # noqa: PLC0415
    from recollect.events.backend import open_log  # noqa: PLC0415

    verdicts: list[Verdict] = []
    with opened_log(context.obj) as log, bars() as shown:
        heads = heads_of(log, namespace)
        kept = None if anchor is None else read_anchor(anchor, log)
        if kept is not None and namespace is not None:
            kept = kept._replace(heads={name: head for name, head in kept.heads.items() if name == namespace})
        reopen = partial(open_log, settings_of(context.obj).log_url)
        on_progress = partial(shown.show, "verifying")
        for verdict in audit(log, heads, open_log=reopen, processes=processes, anchor=kept, on_progress=on_progress):
            verdicts.append(verdict)
            state = "intact" if verdict.ok else "BROKEN"
            typer.echo(f"{verdict.namespace}: {state}, {verdict.version} events, hash {verdict.hash.hex()}")
            for problem in verdict.problems:
                typer.echo(f"  version {problem.version}: {problem.what}")
        broken = sum(not verdict.ok for verdict in verdicts)
        if save_anchor is not None and not broken:
            write_anchor(save_anchor, log.log_id, verdicts)
    raise typer.Exit(1 if broken else 0)


def backup(context: typer.Context, folder: Annotated[Path, typer.Argument(help="A new folder for the copy.")]) -> None:
    """Copy the log, its archive included, while it is in use; the copy is verified."""
    from recollect.events.backup import backup as backup_log  # noqa: PLC0415

    with bars() as shown:
        events = backup_log(_log_file(context), folder, on_progress=partial(shown.show, "copying"))
    typer.echo(f"{events} events, verified, are in {folder}")


def restore(context: typer.Context, folder: Annotated[Path, typer.Argument(help="What `backup` wrote.")]) -> None:
    """Put a verified backup in the place of the log; the log that was there is kept beside it."""
    from recollect.api.folder import serving  # noqa: PLC0415
    from recollect.events.backup import restore as restore_log  # noqa: PLC0415

    log = _log_file(context)
    with serving(settings_of(context.obj).data), bars() as shown:
        events = restore_log(folder, log, on_progress=partial(shown.show, "copying"))
    typer.echo(f"{events} events, verified, are in {log}")
    typer.echo("Read models that knew more refuse to answer now; rebuild them with: recollect replay")


def _log_file(context: typer.Context) -> Path:
    """Return the file of a log in SQLite."""
    url = settings_of(context.obj).log_url
    path = sqlite_path(url)
    if path is None:
        raise InvalidInput(
            "is in PostgreSQL; back it up with pg_dump or a base backup, as the README says", field="RECOLLECT_LOG"
        )
    return path


def archive(
    context: typer.Context,
    namespace: _OneOrAll = None,
    min_events: Annotated[
        int, typer.Option(min=1, help="Seal a namespace when it has at least so many events that are not sealed.")
    ] = 1_000,
    prune: Annotated[
        bool, typer.Option("--prune", help="Let sealed events go from the SQLite file; they stay a part of the log.")
    ] = False,
) -> None:
    """Seal the log into Parquet segments, each verified against the hash chain."""
    from recollect.events.sqlite import SqliteLog  # noqa: PLC0415

    pruned = 0
    with opened_log(context.obj) as log, bars() as shown:
        if prune and not isinstance(log, SqliteLog):
            raise InvalidInput("only a log in SQLite can be pruned", field="--prune")
        sealed = archive_of(log, settings_of(context.obj).data)
        heads = heads_of(log, namespace)
        for number, head in enumerate(heads, start=1):
            shown.show("sealing", number, len(heads))
            new = sealed.seal(log, head.namespace, min_events=min_events)
            if new:
                size = sum(segment.bytes for segment in new)
                events = new[-1].last_version - new[0].first_version + 1
                typer.echo(f"{head.namespace}: {events} events sealed, {size / events:.0f} bytes each")
            else:
                left = head.version - sealed.sealed(head.namespace)
                typer.echo(f"{head.namespace}: nothing to seal, {left} events since the last segment")
            if prune and isinstance(log, SqliteLog):
                pruned += log.prune(head.namespace, on_progress=partial(shown.show, f"pruning {head.namespace}"))
        if pruned and isinstance(log, SqliteLog):
            log.shrink()
            typer.echo(f"{pruned} events left the SQLite file")
