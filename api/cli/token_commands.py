"""Token commands: create, list, rotate and revoke the tokens of a data folder; and the audit log."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from recollect.api.cli.session import load_cli_settings, record_command
from recollect.api.cli.terminal import echo
from recollect.events.counted_nouns import counted

if TYPE_CHECKING:
    from recollect.api.access.token_store import TokenStore
    from recollect.events.encryption.master_key import KeyOptions

app = typer.Typer(help="Tokens of callers over HTTP. After the first, every request needs one.", no_args_is_help=True)

_Id = Annotated[str, typer.Argument(help="The id or the name of the token, as `token list` has them.")]
_AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def _store(context: typer.Context) -> TokenStore:
    from recollect.api.access.token_store import TokenStore  # noqa: PLC0415

    return TokenStore(load_cli_settings(context.obj).tokens_path)


@app.command()
def create(
    context: typer.Context,
    name: Annotated[str, typer.Option(help="What it is for, such as bot.")],
    namespace: Annotated[
        list[str],
        typer.Option(help="A namespace, or the beginning of names and *, such as team-*; may be repeated."),
    ],
    scope: Annotated[
        list[str] | None,
        typer.Option(
            help="read, write, export, erase, review or admin; may be repeated. No scope includes another one.",
            show_default="read and write",
        ),
    ] = None,
    days: Annotated[
        int | None, typer.Option(metavar="<number>", min=1, help="Days until it expires.", show_default="never expires")
    ] = None,
) -> None:
    """Create a token and print it. It is shown this once: the folder keeps its hash."""
    store = _store(context)
    is_first = not store.tokens()
    token, text = store.create(name=name, scopes=scope or ("read", "write"), patterns=namespace, days=days)
    record_command(context, "admin", count=1)
    _print_secret(token.as_json(0), text)
    if is_first:
        echo("From now on the server answers no request without a token.", err=True)


@app.command("list")
def list_tokens(context: typer.Context, as_json: _AsJson = False) -> None:
    """List the tokens, without their secrets."""
    from recollect.events.envelope import now_us  # noqa: PLC0415

    rows = [token.as_json(now_us()) for token in _store(context).tokens()]
    if as_json:
        echo(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode())
        return
    if not rows:
        echo("No tokens: the server answers programs of this machine only.")
        return
    columns = ("id", "state", "name", "scopes", "namespaces", "created_at", "expires_at")
    echo("\t".join(columns))
    for row in rows:
        values = (row[name] or "never" for name in columns)
        echo("\t".join(value if isinstance(value, str) else ",".join(value) for value in values))


@app.command()
def rotate(
    context: typer.Context,
    id: _Id,
    overlap_hours: Annotated[
        int,
        typer.Option(metavar="<number>", min=0, max=24 * 90, help="Hours in which the old secret is accepted."),
    ] = 24,
) -> None:
    """Give a token a new secret and print it. The old one ends after the overlap."""
    from recollect.events.envelope import rfc3339  # noqa: PLC0415

    store = _store(context)
    token, text = store.rotate(store.id_of(id), overlap_hours=overlap_hours)
    record_command(context, "admin", count=1)
    _print_secret(token.as_json(0), text)
    for _, end_us in token.digests:
        if end_us is not None:
            echo(f"The old secret is accepted until {rfc3339(end_us)}.", err=True)


@app.command()
def revoke(context: typer.Context, id: _Id) -> None:
    """Revoke a token: a running server refuses it from the next request on."""
    store = _store(context)
    token = store.revoke(store.id_of(id))
    record_command(context, "admin", count=1)
    echo(f"{token.id} is revoked")


def audit(
    context: typer.Context,
    namespace: Annotated[str | None, typer.Option(help="Only lines about this namespace.")] = None,
    token: Annotated[str | None, typer.Option(help="Only lines of the token with this id.")] = None,
    limit: Annotated[int, typer.Option(metavar="<number>", min=1, help="Maximum number of lines.")] = 100,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Check that no line was changed or removed; print the head."),
    ] = False,
    head: Annotated[
        str | None, typer.Option(help="Verify, and check that the line with this head, printed before, is there.")
    ] = None,
    as_json: _AsJson = False,
) -> None:
    """List who read, exported or erased what, and who was refused, newest first. It holds no text of users."""
    from recollect.api.access.audit_log import read_audit  # noqa: PLC0415

    storage = load_cli_settings(context.obj).storage
    folder = storage.data / "audit"
    if verify or head is not None:
        _verify_audit(folder, storage.key_options, head)
        return
    for line in islice(read_audit(folder, namespace=namespace, token_id=token), limit):
        if as_json:
            echo(orjson.dumps(line).decode())
        else:
            count = "" if line["count"] is None else f"\t{counted(line['count'], 'item')}"
            echo(f"{line['at']}\t{line['token']}\t{line['namespace'] or '-'}\t{line['status']}\t{line['route']}{count}")


def _verify_audit(folder: Path, options: KeyOptions, head: str | None) -> None:
    """Print whether the audit log is intact; exit 1 when it is not."""
    from recollect.api.access.audit_log import verify_audit  # noqa: PLC0415

    check = verify_audit(folder, options, expected=head)
    for problem in check.problems:
        echo(problem)
    if check.problems:
        raise typer.Exit(1)
    if not check.lines:
        echo("the audit log has no lines")
        return
    begin = "earlier files were removed" if check.has_removed_files else "from the first line on"
    echo(f"intact: {counted(check.lines, 'line')}, {begin}; head {check.head}")


def _print_secret(token: dict[str, Any], text: str) -> None:
    """Print a token's secret to standard output alone, so that a script can store it; the rest to standard error."""
    echo(
        f"{token['id']}: {', '.join(token['scopes'])} of {', '.join(token['namespaces'])}. It is shown this once:",
        err=True,
    )
    echo(text)
