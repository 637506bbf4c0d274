"""Diff command: what another version of Recollect makes of a log, before it is switched on."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from recollect.api.cli.log_commands import log_file
from recollect.api.cli.session import no_namespace, open_cli_log, record_command
from recollect.api.cli.terminal import echo

if TYPE_CHECKING:
    from recollect.projections.schema.row_differences import RowDifference

#: Characters of a value in a line.
_VALUE_CHARS_MAX = 60


def diff_projections(
    context: typer.Context,
    before: Annotated[str, typer.Argument(help="The Python of one environment, such as /srv/now/bin/python.")],
    after: Annotated[str, typer.Argument(help="The Python of the other one, such as /srv/next/bin/python.")],
    namespace: Annotated[str, typer.Option(help="The namespace.")],
    limit: Annotated[int, typer.Option(metavar="<number>", min=0, help="Rows of a table that are printed.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print all differences as JSON, one a line.")] = False,
) -> None:
    """Compare the rows that two versions of Recollect make of a copy of the log; exit 1 when they differ."""
    from recollect.api.operations.projection_diff import diff_projections as differences_of  # noqa: PLC0415
    from recollect.events.limits import check_namespace  # noqa: PLC0415

    check_namespace(namespace)
    with open_cli_log(context.obj) as log:
        if log.head(namespace).version == 0:
            raise no_namespace(namespace)
        keys = log.keys.path if log.keys is not None else Path()
    with TemporaryDirectory() as folder:
        differences = differences_of(log_file(context), keys, Path(folder), (before, after), namespace)
    record_command(context, "read", count=len(differences))
    for table, rows in groupby(differences, attrgetter("table")):
        _print_table(table, [*rows], limit, as_json=as_json)
    if not differences:
        echo("Both make the same rows.")
    raise typer.Exit(1 if differences else 0)


def _print_table(table: str, rows: list[RowDifference], limit: int, *, as_json: bool) -> None:
    """Print the differences of a table."""
    if as_json:
        for row in rows:
            echo(orjson.dumps({"table": table, "before": row.before, "after": row.after}, default=repr).decode())
        return
    kinds = Counter(
        "only after" if row.before is None else "only before" if row.after is None else "changed" for row in rows
    )
    echo(f"{table}: {', '.join(f'{count} {kind}' for kind, count in kinds.items())}")
    for row in rows[:limit]:
        sign = "+" if row.before is None else "-" if row.after is None else "~"
        echo(f"  {sign} {_described(row)}")
    if len(rows) > limit:
        echo(f"  and {len(rows) - limit} more")


def _described(row: RowDifference) -> str:
    """Return the values of a row of one side, or those that differ."""
    before, after = row.before, row.after
    if before is None or after is None:
        return ", ".join(
            f"{name}={_short(value)}" for name, value in (before or after or {}).items() if value is not None
        )
    changes = ", ".join(f"{name} {_short(before[name])} -> {_short(after[name])}" for name in row.changed_columns)
    return f"{_short(before['id'])}: {changes}" if "id" in before else changes


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _VALUE_CHARS_MAX else f"{text[: _VALUE_CHARS_MAX - 1]}…"
