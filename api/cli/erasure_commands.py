"""Erasure commands: erase, readmit, receipts, verify-receipt."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from recollect.api.cli.session import open_cli_log, open_cli_memory, record_command
from recollect.api.cli.terminal import echo
from recollect.events.counted_nouns import counted
from recollect.events.errors import InvalidInput

_Namespace = Annotated[str, typer.Argument(help="The namespace: 1 to 200 letters, digits and . _ : @ -")]


def erase(
    context: typer.Context,
    namespace: _Namespace,
    everything: Annotated[bool, typer.Option("--everything", help="Erase the whole namespace.")] = False,
    subject: Annotated[str | None, typer.Option(help="Erase a person in a shared namespace, by name.")] = None,
    session: Annotated[str | None, typer.Option(help="Erase a session.")] = None,
    event: Annotated[list[str] | None, typer.Option(help="Erase an event, by its id; may be repeated.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be erased, and erase nothing.")] = False,
    reason: Annotated[
        str | None, typer.Option(help="The reason; it is stored unencrypted, so it must not name anybody.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Write the receipt to this file too.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Erase without asking; required in a script.")] = False,
) -> None:
    """Erase events for good, with all that was derived from them; print the signed receipt."""
    with open_cli_memory(context.obj) as memory:
        erase = partial(
            memory.erase,
            namespace,
            everything=everything,
            subject=subject,
            session_id=session,
            event_ids=event or None,
        )
        plan = erase(dry_run=True)
        if dry_run:
            echo(orjson.dumps(plan).decode())
            return
        if not yes:
            planned = f"{counted(plan['events'], 'event')} of {namespace}"
            if not sys.stdin.isatty():
                raise InvalidInput(f"{planned} would be erased for good; add it", field="--yes")
            typer.confirm(f"Erase {planned} for good?", abort=True, err=True)
        erased = erase(reason=reason)
        receipt = orjson.dumps(erased)
    record_command(context, "erase", count=erased["log"]["count"])
    if output is not None:
        output.write_bytes(receipt + b"\n")
    echo(receipt.decode())


def readmit(
    context: typer.Context,
    namespace: _Namespace,
    subject: Annotated[str | None, typer.Option(help="An erased person; the namespace itself when absent.")] = None,
) -> None:
    """Accept new events of an erased namespace or person again. Nothing that was erased comes back."""
    with open_cli_memory(context.obj) as memory:
        admitted = memory.readmit(namespace, subject=subject)
    record_command(context, "erase", count=int(admitted))
    echo("readmitted" if admitted else "was not erased")


def receipts(
    context: typer.Context,
    namespace: Annotated[str | None, typer.Argument(help="The namespace; all when absent.")] = None,
) -> None:
    """Print the receipts of erasures as JSON, one a line."""
    with open_cli_memory(context.obj) as memory:
        for receipt in memory.receipts(namespace):
            echo(orjson.dumps(receipt).decode())


def verify_receipt(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="The receipt.")],
    public_key: Annotated[
        str | None, typer.Option(help="The public key of the signer in hex, from a source that you trust.")
    ] = None,
    previous: Annotated[
        Path | None, typer.Option(help="The receipt before it: none may be missing in between.")
    ] = None,
    log: Annotated[
        bool, typer.Option("--log", help="Compare with the log of the data folder too; it needs no keys.")
    ] = False,
) -> None:
    """Verify the signature of a receipt, and with --log that the log has erased what it says; exit 1 on a problem."""
    from recollect.events.integrity.receipt import verify_receipt as problems_of  # noqa: PLC0415

    content = _read(file)
    checks: dict[str, Any] = {"public_key": public_key, "previous": None if previous is None else _read(previous)}
    if log:
        with open_cli_log(context.obj) as opened:
            problems = problems_of(content, log=opened, **checks)
    else:
        problems = problems_of(content, **checks)
    for problem in problems:
        echo(problem)
    if problems:
        raise typer.Exit(1)
    fields: dict[str, Any] = orjson.loads(content)
    events = counted(fields["log"]["count"], "event")
    echo(f"intact: {events} of {fields['namespace']} erased at {fields['completed_at']}")
    echo(f"signed by {fields['sig']['public_key']}")
    for target in fields.get("targets", ()):
        if target.get("residue_windows"):
            count = f"{target['residue_hits']} of {target['residue_windows']}"
            names = f" in {', '.join(target['files_with_hits'])}" if target["residue_hits"] else ""
            part = "" if target["is_complete"] else ", of which a part was searched"
            pieces = f"{count} pieces of the erased texts were still there{names}"
            echo(f"{target['store']}: {pieces} ({counted(target['files'], 'file')}{part})")


def _read(file: Path) -> bytes:
    """Return the content of a file; raise `InvalidInput` when it cannot be read."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}", field=str(file)) from error
