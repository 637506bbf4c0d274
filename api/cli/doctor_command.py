"""Doctor command: the checks of an installation, with those of the running server, its port and its locks."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from recollect.api.cli.running_server import running_server
from recollect.api.cli.session import load_cli_settings
from recollect.api.cli.terminal import echo
from recollect.events.counted_nouns import counted
from recollect.events.errors import InvalidInput, RecollectError

if TYPE_CHECKING:
    from recollect.api.client.client import Client
    from recollect.api.operations.doctor import Check
    from recollect.api.settings import Settings

#: Seconds in which a running server has to say how it is.
_ANSWER_SECONDS_MAX = 10.0
#: The width of the longest status and name.
_STATUS_WIDTH, _NAME_WIDTH = 8, 11


def doctor(
    context: typer.Context,
    model: Annotated[bool, typer.Option(help="Load the embedding model, unless a server has it loaded.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the checks as JSON.")] = False,
) -> None:
    """Check the installation, the data folder and the server; exit 1 when a check failed. Nothing is changed."""
    checks: list[Check] = []
    for check in _checks(context, model=model):
        checks.append(check)
        if not as_json:
            echo(f"{check.status:{_STATUS_WIDTH}} {check.name:{_NAME_WIDTH}} {check.detail}")
            if check.hint:
                echo(f"{'':{_STATUS_WIDTH}} {'':{_NAME_WIDTH}} → {check.hint}")
    failed = sum(check.status == "failed" for check in checks)
    if as_json:
        fields = [
            {"name": check.name, "status": check.status, "detail": check.detail, "hint": check.hint} for check in checks
        ]
        echo(orjson.dumps({"ok": not failed, "checks": fields}, option=orjson.OPT_INDENT_2).decode())
    elif failed:
        echo(f"{failed} of {len(checks)} checks failed")
    else:
        echo("no check failed")
    raise typer.Exit(1 if failed else 0)


def _checks(context: typer.Context, *, model: bool) -> Iterator[Check]:
    """Yield the results of all checks; that of the settings alone when these cannot be read."""
    from recollect.api.operations.doctor import Check, diagnose  # noqa: PLC0415
    from recollect.api.settings import unknown_variables  # noqa: PLC0415

    try:
        settings = load_cli_settings(context.obj)
    except InvalidInput as error:
        yield Check(name="settings", status="failed", detail=str(error), hint="correct this variable")
        return
    unknown = [*unknown_variables().values()]
    for advice in unknown:
        problem, _, hint = advice.partition("; ")
        yield Check(name="settings", status="warning", detail=problem, hint=hint)
    if not unknown:
        yield Check(name="settings", status="ok", detail="all variables can be read")
    server, server_check = _server(settings)
    yield from diagnose(settings, loads_model=model and server is None)
    yield server_check
    if server is None:
        yield _port(settings)
    else:
        with server:
            yield from _server_problems(server)
    yield _model_lock(settings)


def _server(settings: Settings) -> tuple[Client | None, Check]:
    """Return the running server of the folder, None without one, and what its lock says about it."""
    from recollect.api.folder_locks import server_address  # noqa: PLC0415
    from recollect.api.operations.doctor import Check  # noqa: PLC0415

    published = server_address(settings.storage.data)
    if not _is_held(settings, "server.lock"):
        stale = " (server.lock is of one that was killed; the next start replaces it)" if published else ""
        return None, Check(name="server", status="ok", detail=f"none runs on this folder{stale}")
    server = running_server(settings.storage.data, timeout_seconds=_ANSWER_SECONDS_MAX)
    if server is not None:
        return server, Check(name="server", status="ok", detail=f"runs at {server.url}")
    hint = "wait if it is starting; otherwise end the process whose id is the first line of server.lock"
    return None, Check(name="server", status="failed", detail="one holds server.lock and does not answer", hint=hint)


def _server_problems(server: Client) -> Iterator[Check]:
    """Yield a check for the health of the running server, and one for each of its problems."""
    from recollect.api.operations.doctor import Check, without_password  # noqa: PLC0415

    try:
        health = server.health()
    except RecollectError as error:
        yield Check(name="health", status="failed", detail=str(error) or "it refused to say", hint="restart the server")
        return
    embedding, lag = health["embedding"]["state"], health["lag"]
    behind = f"{counted(lag['read_models'], 'event')} to project, {counted(lag['embeddings'], 'episode')} to embed"
    servers = sum(process["process"] != "background" for process in health.get("servers", ()))
    processes = f"{servers} server processes; " if servers else ""
    detail = f"{health['status']}; {processes}model {embedding}; {behind}"
    yield Check(name="health", status="ok", detail=detail)
    for problem in health["problems"]:
        text, _, hint = str(problem).partition("; ")
        yield Check(name="health", status="warning", detail=without_password(text), hint=hint)


def _port(settings: Settings) -> Check:
    from recollect.api.operations.doctor import Check  # noqa: PLC0415

    host, port = settings.server.host, settings.server.port
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        hint = "choose another with --port or RECOLLECT_PORT, or end the program that has it"
        return Check(name="port", status="warning", detail=f"{host}:{port}: {error.strerror}", hint=hint)
    return Check(name="port", status="ok", detail=f"{host}:{port} is free")


def _model_lock(settings: Settings) -> Check:
    from recollect.api.operations.doctor import Check  # noqa: PLC0415

    if _is_held(settings, "embedding.lock"):
        hint = "wait until `recollect embed --model` is done; its process id is in embedding.lock"
        return Check(name="locks", status="warning", detail="the embedding model is being changed", hint=hint)
    return Check(name="locks", status="ok", detail="no lock is held but that of a running server, if any")


def _is_held(settings: Settings, name: str) -> bool:
    """Return whether a process holds a lock of the data folder; a lock file alone holds nothing."""
    from recollect.events.storage.file_lock import file_lock  # noqa: PLC0415

    path = settings.storage.data / name
    if not path.exists():
        return False
    with file_lock(path, wait=False) as descriptor:
        return descriptor is None
