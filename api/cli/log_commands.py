"""Log commands: init, verify, backup, restore, archive."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.api.cli.progress_line import progress_bars
from recollect.api.cli.session import (
    CORES,
    NamespaceOption,
    Processes,
    archive_of,
    list_heads,
    load_cli_settings,
    no_namespace,
    open_cli_log,
    open_cli_memory,
    record_command,
)
from recollect.api.cli.terminal import echo
from recollect.events.counted_nouns import counted
from recollect.events.errors import InvalidInput, KeyMissing, LogMissing

if TYPE_CHECKING:
    from recollect.events.integrity.verify import VerifyResult


def init(
    context: typer.Context,
    new_log: Annotated[
        bool,
        typer.Option(
            "--new-log",
            help="Begin a new log when the folder's log is missing or another one; files derived from the old log are "
            "renamed, not deleted.",
        ),
    ] = False,
) -> None:
    """Create the data folder with an empty log, or check that its log exists."""
    from recollect.api.folder_locks import serving_lock  # noqa: PLC0415
    from recollect.events.integrity.log_identity import open_log_of_folder, rename_derived_data  # noqa: PLC0415

    storage = load_cli_settings(context.obj).storage
    with serving_lock(storage.data):
        try:
            log = open_log_of_folder(storage.data, storage.log_url, storage.key_options)
        except LogMissing:
            if not new_log:
                raise
            for path in rename_derived_data(storage.data, storage.log_url):
                echo(f"put aside: {path}")
            log = open_log_of_folder(storage.data, storage.log_url, storage.key_options)
        log.close()
    echo(f"{storage.data} has the log {log.log_id}")


def verify(
    context: typer.Context,
    folder: Annotated[
        Path | None, typer.Argument(help="The folder that `backup` wrote; the log in use when left out.")
    ] = None,
    namespace: NamespaceOption = None,
    processes: Processes = CORES,
    anchor: Annotated[
        Path | None, typer.Option(help="Compare with heads stored elsewhere, to find a log whose end was cut off.")
    ] = None,
    save_anchor: Annotated[
        Path | None, typer.Option(help="Write the verified heads to this file, to be stored elsewhere.")
    ] = None,
) -> None:
    """Recompute the hash chains of the log; exit 1 when something was altered, removed or reordered."""
    from recollect.events.backends.open_log import open_log  # noqa: PLC0415
    from recollect.events.integrity.anchor import read_anchor, write_anchor  # noqa: PLC0415
    from recollect.events.integrity.backup import LOG_NAME  # noqa: PLC0415
    from recollect.events.integrity.parallel_verify import verify_all  # noqa: PLC0415

    if folder is not None and not (folder / LOG_NAME).is_file():
        reason = f"is not a backup: it has no file {LOG_NAME}; a namespace is given as --namespace NAME"
        raise InvalidInput(reason, field=str(folder))
    url = load_cli_settings(context.obj).storage.log_url if folder is None else f"sqlite:///{folder / LOG_NAME}"
    verdicts: list[VerifyResult] = []
    with (
        open_cli_log(context.obj) if folder is None else closing(open_log(url)) as log,
        progress_bars() as progress,
    ):
        heads = list_heads(log, namespace)
        expected = None if anchor is None else read_anchor(anchor, log)
        if namespace is not None and heads[0].version == 0 and (expected is None or namespace not in expected.heads):
            raise no_namespace(namespace)
        if expected is not None and namespace is not None:
            expected = expected._replace(
                heads={name: head for name, head in expected.heads.items() if name == namespace}
            )
        reopen = partial(open_log, url)
        on_progress = partial(progress.show, "verifying")
        for verdict in verify_all(
            log, heads, open_log=reopen, processes=processes, anchor=expected, on_progress=on_progress
        ):
            verdicts.append(verdict)
            state = "intact" if verdict.is_intact else "BROKEN"
            echo(f"{verdict.namespace}: {state}, {counted(verdict.version, 'event')}, hash {verdict.hash.hex()}")
            for problem in verdict.problems:
                echo(f"  version {problem.version}: {problem.message}")
        if not verdicts:
            # A folder that was mistyped is made with an empty log.
            echo("the log has no events, so nothing was verified; --data names its folder")
        broken = sum(not verdict.is_intact for verdict in verdicts)
        if save_anchor is not None and not broken:
            write_anchor(save_anchor, log.log_id, verdicts)
    raise typer.Exit(1 if broken else 0)


def backup(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="A new folder for the copy.")],
    keys: Annotated[Path | None, typer.Option(help="A new file for a copy of the keys; keep it elsewhere.")] = None,
) -> None:
    """Copy the log, its archive included, while it is in use; the copy is verified. The keys are not part of it."""
    from recollect.events.integrity.backup import backup as backup_log  # noqa: PLC0415
    from recollect.events.integrity.backup import backup_keys  # noqa: PLC0415

    with open_cli_log(context.obj) as log, progress_bars() as progress:
        events = backup_log(log_file(context), folder, on_progress=partial(progress.show, "copying"))
        store = log.keys.path if log.keys is not None and log.keys.exists else None
    record_command(context, "export", count=events)
    echo(f"{folder} has {counted(events, 'event')}, verified")
    if keys is not None and store is not None:
        backup_keys(store, keys)
        echo(f"the keys are in {keys}; keep that file apart from the backup")
    elif store is not None:
        echo(f"without {store} the copy cannot be read; copy the keys to another place with --keys FILE")


def restore(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="The folder that `backup` wrote.")],
    keys: Annotated[
        Path | None, typer.Option(help="The copy of the keys; only where the folder has no keys of this log.")
    ] = None,
    without_keys: Annotated[
        bool, typer.Option("--without-keys", help="Restore also when keys are missing; their events stay unreadable.")
    ] = False,
) -> None:
    """Replace the log by a verified backup; the old log is renamed. Erasures since the backup are repeated."""
    from recollect.api.folder_locks import serving_lock  # noqa: PLC0415
    from recollect.events.backends.open_log import open_log  # noqa: PLC0415
    from recollect.events.encryption.key_store import open_key_store  # noqa: PLC0415
    from recollect.events.integrity.backup import events_without_key, restore_keys  # noqa: PLC0415
    from recollect.events.integrity.backup import restore as restore_log  # noqa: PLC0415
    from recollect.events.integrity.log_identity import read_log_id, write_log_id  # noqa: PLC0415

    log = log_file(context)
    settings = load_cli_settings(context.obj)
    key_file = open_key_store(settings.storage.data, settings.storage.key_options)
    store = key_file.path
    before = read_log_id(settings.storage.data)
    key_store = None if without_keys else keys or store
    unreadable = 0
    with serving_lock(settings.storage.data), progress_bars() as progress:
        try:
            events = restore_log(folder, log, key_store=key_store, on_progress=partial(progress.show, "copying"))
        except KeyMissing as error:
            hint = "name their copy with --keys FILE, or accept that these events stay unreadable with --without-keys"
            raise KeyMissing(f"{error}; {hint}") from error
        with closing(open_log(settings.storage.log_url)) as restored:
            write_log_id(settings.storage.data, restored.log_id)
            if keys is not None and store.exists() and restored.log_id == before:
                raise InvalidInput(
                    f"{store} has the keys of this log, and knows later erasures; leave out", field="--keys"
                )
        if keys is not None:
            restore_keys(keys, store)
        elif without_keys:
            # A new key store says that the old one is not waited for.
            with closing(key_file), key_file.transaction():
                pass
        unreadable = sum(events_without_key(log, store).values())
        repeated = _repeat_erasures(context)
    record_command(context, "admin", count=events)
    echo(f"{log} has {counted(events, 'event')}, verified")
    if unreadable:
        echo(f"warning: {unreadable} of them cannot be read: {store} does not have their keys", err=True)
    if repeated:
        echo(f"repeated {counted(repeated, 'erasure')} that the backup did not have")
    echo("Read models that are ahead of the restored log refuse to answer; rebuild them with: recollect replay")


def _repeat_erasures(context: typer.Context) -> int:
    """Repeat the erasures that were made after the backup, which opening the memory does; return their number."""
    with open_cli_memory(context.obj) as memory:
        return memory.parts.eraser.resumed


def log_file(context: typer.Context) -> Path:
    """Return the file of the log.

    Raises:
        InvalidInput: the log is in PostgreSQL.
    """
    url = load_cli_settings(context.obj).storage.log_url
    from recollect.events.backends.open_log import sqlite_path  # noqa: PLC0415

    path = sqlite_path(url)
    if path is None:
        raise InvalidInput(
            "is in PostgreSQL; back it up with pg_dump or a base backup (see docs/how-to/back-up.md)",
            field="RECOLLECT_LOG",
        )
    return path


def archive(
    context: typer.Context,
    namespace: NamespaceOption = None,
    min_events: Annotated[
        int,
        typer.Option(
            metavar="<number>", min=1, help="Seal a namespace when it has at least this many unsealed events."
        ),
    ] = 1_000,
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove sealed events from the SQLite file; they stay part of the log.")
    ] = False,
) -> None:
    """Seal the log into Parquet segments, each verified against the hash chain."""
    pruned = 0
    with open_cli_log(context.obj) as log, progress_bars() as progress:
        if prune and log.archive is None:
            raise InvalidInput("only a log in SQLite can be pruned", field="--prune")
        sealed = archive_of(log, load_cli_settings(context.obj).storage.data)
        heads = list_heads(log, namespace)
        for number, head in enumerate(heads, start=1):
            progress.show("sealing", number, len(heads))
            new = sealed.seal(log, head.namespace, min_events=min_events)
            if new:
                size = sum(segment.bytes for segment in new)
                events = new[-1].last_version - new[0].first_version + 1
                echo(f"{head.namespace}: {counted(events, 'event')} sealed, {size / events:.0f} bytes each")
            else:
                left = head.version - sealed.sealed(head.namespace)
                echo(f"{head.namespace}: nothing to seal, {counted(left, 'event')} since the last segment")
            if prune:
                pruned += log.prune(head.namespace, on_progress=partial(progress.show, f"pruning {head.namespace}"))
        if pruned:
            log.shrink()
            echo(f"{counted(pruned, 'event')} left the SQLite file")
