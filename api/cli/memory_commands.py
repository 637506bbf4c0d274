"""Memory commands: serve, append, retrieve, settle, export, embed, replay."""

from __future__ import annotations

import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from recollect.api.cli.follow_commands import replay_own
from recollect.api.cli.progress_line import ProgressBars, progress_bars
from recollect.api.cli.running_server import running_server
from recollect.api.cli.session import (
    CORES,
    NamespaceOption,
    Processes,
    iter_namespaces,
    list_heads,
    load_cli_settings,
    no_namespace,
    open_cli_log,
    open_cli_memory,
    open_models,
    record_command,
)
from recollect.api.cli.terminal import echo
from recollect.events.counted_nouns import counted
from recollect.events.errors import InvalidInput
from recollect.events.storage.private_files import open_private

if TYPE_CHECKING:
    from recollect.api.client.client import Client
    from recollect.api.memory.recollect import Recollect
    from recollect.api.result_types import Trace
    from recollect.api.retrieval.contract.result_json import RetrievalJson

_Namespace = Annotated[str, typer.Argument(help="The namespace: 1 to 200 letters, digits and . _ : @ -")]
_AsOf = Annotated[
    str | None, typer.Option("--as-of", help="A past state: a version, or a time such as 2026-11-20T09:00:00Z.")
]
_ItemsMax = Annotated[
    int | None,
    typer.Option(metavar="<number>", min=1, max=100, help="Maximum number of items.", show_default="set by settings"),
]
_TokensMax = Annotated[
    int | None,
    typer.Option(
        metavar="<number>", min=0, help="Maximum number of tokens of the context.", show_default="set by settings"
    ),
]
_AskServer = Annotated[
    bool, typer.Option("--server/--no-server", help="Ask the running server of the data folder, if there is one.")
]
_AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

#: Seconds that `retrieve` waits for the embedding model; loading takes seconds, a download longer.
_MODEL_SECONDS_MAX = 300


def serve(
    context: typer.Context,
    host: Annotated[str | None, typer.Option(help="The address to listen on.", show_default="127.0.0.1")] = None,
    port: Annotated[
        int | None, typer.Option(metavar="<number>", help="The port; 0 takes a free port.", show_default="8787")
    ] = None,
    processes: Annotated[
        str | None,
        typer.Option(
            metavar="<number>", help="Processes that answer requests; auto: one a processor.", show_default="1"
        ),
    ] = None,
    workers: Annotated[bool, typer.Option("--workers/--no-workers", help="Run worker and scheduler, too.")] = True,
) -> None:
    """Serve the memory over HTTP, with worker and scheduler."""
    from recollect.api.cli.process_log import configure_process_log  # noqa: PLC0415
    from recollect.api.http.server import serve as serve_http  # noqa: PLC0415

    settings = load_cli_settings(context.obj, host=host, port=port, processes=processes)
    configure_log = partial(configure_process_log, settings.storage.data, settings.logging)
    configure_log()

    def announce(address: str) -> None:
        pages = f"viewer: {address}/, API: {address}/docs"
        echo(f"Recollect serves {settings.storage.data.resolve()} at {address} ({pages})")
        echo("The embedding model loads in the background; until then retrieval is by keywords. Ctrl-C stops.")
        sys.stdout.flush()

    serve_http(settings, on_listening=announce, workers=workers, configure_log=configure_log)


def append(
    context: typer.Context,
    namespace: _Namespace,
    event: Annotated[
        str, typer.Argument(help='An event or {"events": […]} as JSON; - reads it from standard input.')
    ] = "-",
) -> None:
    """Append one event, or a batch all or none."""
    from recollect.api.memory.references import check_references, has_references  # noqa: PLC0415
    from recollect.events.intake.quarantine import with_quarantine  # noqa: PLC0415
    from recollect.events.intake.screening import screen_all  # noqa: PLC0415
    from recollect.projections.read_models.read_models import ReadModels  # noqa: PLC0415

    body = sys.stdin.buffer.read() if event == "-" else event.encode(errors="surrogateescape")
    if not body.lstrip().startswith(b"{"):
        raise InvalidInput("give an event as a JSON object; a text is recorded by `recollect add`", field="event")
    from recollect.events.validation import drafts_from_json  # noqa: PLC0415

    drafts, expected_version = drafts_from_json(body)
    prepared = with_quarantine(screen_all(drafts, load_cli_settings(context.obj).privacy.policies(namespace)))
    with open_cli_log(context.obj) as log:
        if has_references(drafts):
            with closing(ReadModels(load_cli_settings(context.obj).storage.data, log)) as models:
                check_references(log, models, namespace, drafts)
        recorded = log.append(namespace, prepared, expected_version=expected_version)
        for appended in recorded[: len(drafts)]:
            echo(f"{appended.version}\t{appended.id}{'	duplicate' if appended.duplicate else ''}")


def retrieve(
    context: typer.Context,
    namespace: _Namespace,
    query: Annotated[str, typer.Argument(help="The question or topic.")],
    limit: _ItemsMax = None,
    budget_tokens: _TokensMax = None,
    as_of: _AsOf = None,
    also: Annotated[list[str] | None, typer.Option(help="Another namespace to search too; may be repeated.")] = None,
    speaker: Annotated[str | None, typer.Option(help="Who asks: the name that their messages have.")] = None,
    timezone: Annotated[
        str | None, typer.Option(help="The zone of the asker's days; that of their last message when left out.")
    ] = None,
    form: Annotated[str, typer.Option("--format", help="Format of the context: markdown, preamble or json.")] = (
        "markdown"
    ),
    explain: Annotated[
        bool, typer.Option("--explain", help="Print the trace: why each memory was returned or dropped.")
    ] = False,
    no_store: Annotated[bool, typer.Option("--no-store", help="Store nothing of the query: keep no trace.")] = False,
    as_json: _AsJson = False,
    ask_server: _AskServer = True,
) -> None:
    """Print the memories for a query.

    The folder's running server answers, if there is one. Otherwise the command loads the model and embeds new messages
    first, which takes seconds.
    """
    if no_store and explain:
        raise InvalidInput("needs the trace, which --no-store does not keep; give one of them", field="--explain")
    fields: dict[str, Any] = {
        "query": query,
        "also": also or [],
        "format": form,
        "no_store": no_store,
        "speaker": speaker,
        "timezone": timezone,
    }
    limits = {"limit": limit, "budget_tokens": budget_tokens}
    fields |= {name: value for name, value in limits.items() if value is not None}
    server = running_server(load_cli_settings(context.obj).storage.data) if ask_server else None
    if server is None:
        result, trace = _retrieve_here(context, namespace, fields, as_of=as_of, explain=explain)
    else:
        result, trace = _retrieve_there(server, namespace, fields, as_of=as_of, explain=explain)
    if as_of is None and not also and not result["version"] and not result["degraded"]:
        raise no_namespace(namespace)
    if trace is not None or as_json:
        echo(orjson.dumps(result if trace is None else trace, option=orjson.OPT_INDENT_2).decode())
        return
    reason = result.get("reason")
    echo(result["context"] or (f"Nothing found: {reason}." if reason else "Nothing found."))
    for part in result["degraded"]:
        echo(f"degraded: {part}", err=True)


def _retrieve_here(
    context: typer.Context, namespace: str, fields: dict[str, Any], *, as_of: str | None, explain: bool
) -> tuple[RetrievalJson, Trace | None]:
    """Return the result of a retrieval in this process, and its trace when `explain` is set."""
    with open_cli_memory(context.obj) as memory, progress_bars() as progress:
        version = memory.version(namespace, as_of)
        if version is not None:
            # Build the past read model first: it may take longer than the time budget of the retrieval.
            with memory.parts.history.reading(
                namespace, version, on_progress=partial(progress.show, f"version {version}")
            ):
                pass
        elif not fields["also"] and memory.parts.log.head(namespace).version == 0:
            # Before the model is loaded, which takes seconds.
            raise no_namespace(namespace)
        progress.show("loading the model", 0, None)
        memory.parts.vectors.embedder.start()
        memory.parts.read_models.catch_up(namespace)
        memory.parts.vectors.embedder.wait_ready(_MODEL_SECONDS_MAX)
        memory.parts.vectors.embed_new(namespace, on_progress=partial(progress.show, "embedding"))
        result = memory.retrieve(namespace, as_of=version, wait=False, **fields)
        record_command(context, "read", count=len(result.items))
        return result.as_json(), memory.trace(namespace, result.trace_id) if explain else None


def _retrieve_there(
    server: Client, namespace: str, fields: dict[str, Any], *, as_of: str | None, explain: bool
) -> tuple[RetrievalJson, Trace | None]:
    """Return the result of a retrieval by the running server, and its trace when `explain` is set."""
    with server:
        if as_of is not None:
            # A list of the past builds its read model, which may take longer than the time budget of the retrieval.
            server.episodes(namespace, limit=1, as_of=as_of)
        result = server.retrieve(namespace, **fields, as_of=as_of)
        return result.as_json(), server.trace(namespace, result.trace_id) if explain else None


def settle(
    context: typer.Context,
    namespace: _Namespace,
    timeout_seconds: Annotated[
        float | None, typer.Option(min=0, help="Seconds after which no further step begins.", show_default="no limit")
    ] = None,
    ask_server: _AskServer = True,
) -> None:
    """Wait until everything appended to a namespace is embedded, and knowledge is extracted from it.

    The folder's running server does the work, if there is one. Exits with 1 when it cannot be completed, or when the
    time is over; then it prints what is missing.
    """
    server = running_server(load_cli_settings(context.obj).storage.data) if ask_server else None
    if server is not None:
        with server:
            settled = server.settle(namespace, timeout_seconds=timeout_seconds)
    else:
        with open_cli_memory(context.obj) as memory, progress_bars() as progress:
            progress.show("settling", 0, None)
            settled = memory.settle(namespace, timeout_seconds=timeout_seconds)
    if settled.is_settled:
        echo(f"{namespace}: settled at version {settled.version}")
        return
    echo(f"{namespace}: not settled at version {settled.version}: {'; '.join(settled.missing)}", err=True)
    raise typer.Exit(1)


def export(
    context: typer.Context,
    namespace: NamespaceOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="The file to write; of okf and memory-md a new folder or a .zip. Standard output when left out."
        ),
    ] = None,
    subject: Annotated[
        str | None, typer.Option(help="A person's name: export everything about them, readable, instead of the log.")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="events (lossless, the default), okf (Open Knowledge Format) or memory-md (MEMORY.md, USER.md, "
            "memory/*.md); of a subject markdown or json.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over the files of a folder.")] = False,
) -> None:
    """Write the log as lines of JSON, which `import` reads; or a namespace as files; or everything about one subject.

    Only the events are complete. The files of memory-md can be edited and imported again.
    """
    if subject is not None:
        _export_subject(context, namespace, subject, output, form or "markdown")
    elif form in ("okf", "memory-md"):
        _export_files(context, namespace, output, form, force=force)
    elif form in (None, "events"):
        _export_events(context, namespace, output)
    else:
        raise InvalidInput("give events, okf or memory-md; markdown and json are for --subject", field="--format")


def _export_events(context: typer.Context, namespace: str | None, output: Path | None) -> None:
    """Write the log as lines of JSON."""
    from recollect.api.pages.export import export_lines  # noqa: PLC0415

    with open_cli_log(context.obj) as log, progress_bars() as progress:
        try:
            target = sys.stdout.buffer if output is None else open_private(output)
        except OSError as error:
            raise InvalidInput(f"cannot be written: {error.strerror}", field=str(output)) from error
        written = 0
        with target:
            for name in iter_namespaces(log, namespace):
                total = log.head(name).version
                for done, line in enumerate(export_lines(log, name), start=1):
                    target.write(line)
                    written += 1
                    if done % 1_000 == 0:
                        progress.show(name, done, total)
                record_command(context, "export", namespace=name, count=total)
    if output is not None:
        echo(f"{output} has {counted(written, 'event')}")


def _export_files(
    context: typer.Context, namespace: str | None, output: Path | None, form: str, *, force: bool
) -> None:
    """Write a namespace as files of Markdown."""
    from recollect.api.exporters.bundle_files import write_bundle  # noqa: PLC0415
    from recollect.api.memory.file_export import export_files  # noqa: PLC0415

    if namespace is None:
        raise InvalidInput(f"{form} is an export of one namespace; give it", field="--namespace")
    if output is None:
        raise InvalidInput("names a new folder, or a file with .zip; give it", field="--output")
    with open_cli_memory(context.obj) as memory:
        version = memory.parts.log.head(namespace).version
        if version == 0:
            raise no_namespace(namespace)
        count = write_bundle(output, export_files(memory, namespace, form), overwrite=force)
    record_command(context, "export", count=version)
    echo(f"{output} has {counted(count, 'file')}")


def _export_subject(
    context: typer.Context, namespace: str | None, subject: str, output: Path | None, form: str
) -> None:
    """Write everything about a subject of a namespace as Markdown or JSON."""
    from recollect.api.memory.subject_export import as_markdown  # noqa: PLC0415

    if namespace is None:
        raise InvalidInput("names the namespace of the subject; give it", field="--namespace")
    if form not in ("markdown", "json"):
        raise InvalidInput("give markdown or json", field="--format")
    with open_cli_memory(context.obj) as memory:
        if memory.parts.log.head(namespace).version == 0:
            raise no_namespace(namespace)
        exported = memory.export_subject(namespace, subject)
    record_command(context, "export")
    content = (
        as_markdown(exported).encode() if form == "markdown" else orjson.dumps(exported, option=orjson.OPT_INDENT_2)
    )
    try:
        with sys.stdout.buffer if output is None else open_private(output) as target:
            target.write(content)
    except OSError as error:
        raise InvalidInput(f"cannot be written: {error.strerror}", field=str(output)) from error


def embed(
    context: typer.Context,
    model: Annotated[
        str | None,
        typer.Option(help="Change to this model, a name or a path; the old model serves until all is embedded."),
    ] = None,
    namespace: NamespaceOption = None,
    undo: Annotated[bool, typer.Option("--undo", help="Return to the model before the last change.")] = False,
) -> None:
    """Embed episodes without vectors, or change the embedding model while the server keeps running."""
    if undo and (model or namespace):
        raise InvalidInput("cannot be combined with --model or --namespace", field="--undo")
    with open_cli_memory(context.obj) as memory, progress_bars() as progress:
        if undo:
            echo(f"{memory.undo_embed()} is in use again")
            return
        episodes = memory.embed(model, namespace=namespace, on_progress=progress.show)
        echo(f"{counted(episodes, 'episode')} embedded with {model or memory.parts.vectors.embedder.name}")
    if model is not None:
        echo("It is in use from now on; a running server loads it first. `recollect embed --undo` goes back.")


def replay(
    context: typer.Context,
    namespace: NamespaceOption = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Rebuild into other files and compare with those in use; exit 1 on a difference."),
    ] = False,
    park: Annotated[
        bool, typer.Option("--park", help="Stop at an event that cannot be projected, and use what is before it.")
    ] = False,
    as_of: _AsOf = None,
    processes: Processes = CORES,
) -> None:
    """Rebuild read models from the log while they keep serving, or build those of a past version.

    The projections of other packages are emptied and filled again.

    Exits with 1 when a read model cannot be built, or differs.
    """
    from recollect.projections.read_models.parallel_rebuild import rebuild_all  # noqa: PLC0415
    from recollect.projections.read_models.read_models import ReadModels  # noqa: PLC0415

    if as_of is not None:
        if check or park:
            raise InvalidInput("cannot be combined with --as-of", field="--check" if check else "--park")
        with open_cli_memory(context.obj) as memory, progress_bars() as progress:
            _replay_past(memory, namespace, as_of, progress)
        return
    settings = load_cli_settings(context.obj)
    failed = 0
    with (
        open_cli_log(context.obj) as log,
        closing(ReadModels(settings.storage.data, log)) as models,
        progress_bars() as progress,
    ):
        heads = list_heads(log, namespace)
        reopen = partial(open_models, settings.storage.data, settings.storage.log_url, settings.storage.key_options)
        on_progress = partial(progress.show, "checking" if check else "replaying")
        work = "check" if check else "park" if park else "replay"
        for result in rebuild_all(
            heads, models, open_read_models=reopen, mode=work, processes=processes, on_progress=on_progress
        ):
            if result.error is not None:
                failed += 1
                echo(f"{result.namespace}: FAILED: {result.error}")
            elif result.check is None:
                echo(f"{result.namespace}: {counted(result.version, 'event')} replayed")
            else:
                failed += not result.check.is_equal
                verdict = "equal" if result.check.is_equal else "DIFFERENT"
                digest = result.check.live_digest
                echo(f"{result.namespace}: {verdict} at version {result.version}, digest {digest}")
        failed += 0 if check else replay_own(settings, log, models, heads)
    raise typer.Exit(1 if failed else 0)


def _replay_past(memory: Recollect, namespace: str | None, as_of: str, progress: ProgressBars) -> None:
    """Build the read models as of `as_of`, or reuse existing ones; print version, digest and file of each."""
    from recollect.api.as_of import parse_as_of  # noqa: PLC0415

    moment = parse_as_of(as_of)
    for name in iter_namespaces(memory.parts.log, namespace):
        head = memory.parts.log.head(name).version
        if namespace is None and isinstance(moment, int) and moment > head:
            echo(f"{name}: has no version {moment}, the newest is {head}")
            continue
        version = memory.version(name, moment)
        if not version:
            echo(f"{name}: nothing at that time")
            continue
        path, digest = memory.parts.history.build(name, version, on_progress=partial(progress.show, name))
        echo(f"{name}: version {version}, digest {digest}, {path}")
