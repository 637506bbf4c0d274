"""Session: the settings, the log and the memory of a command, and options of several commands.

Imports are late, so that a command starts fast.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.events.errors import InvalidInput, NotFound
from recollect.events.limits import check_namespace

if TYPE_CHECKING:
    from recollect.api.access.audit_log import AuditLog
    from recollect.api.access.callers import Scope
    from recollect.api.memory.recollect import Recollect
    from recollect.api.settings import Settings
    from recollect.events.backends.log import EventLog
    from recollect.events.encryption.master_key import KeyOptions
    from recollect.events.envelope import Head
    from recollect.events.storage.archive import Archive
    from recollect.projections.read_models.read_models import ReadModels

NamespaceOption = Annotated[str | None, typer.Option("--namespace", help="Only this namespace; all when left out.")]
#: Default number of processes.
CORES = os.cpu_count() or 1
Processes = Annotated[
    int, typer.Option(metavar="<number>", min=1, help="Number of parallel processes.", show_default="cores")
]


def load_cli_settings(data: Path | None, **values: str | int | None) -> Settings:
    """Return the settings of the environment, overridden by the options of a command that are not None.

    Raises:
        InvalidInput: a value does not fit; the field is the option, or else the variable.
    """
    from recollect.api.settings import load_settings  # noqa: PLC0415

    options = {name: value for name, value in {"data": data, **values}.items() if value is not None}
    try:
        return load_settings(**options)
    except InvalidInput as error:
        name = error.field.removeprefix("RECOLLECT_").lower()
        if name not in options:
            raise
        raise InvalidInput(error.reason, field=f"--{name.replace('_', '-')}") from None


@contextmanager
def open_cli_log(data: Path | None) -> Generator[EventLog]:
    """Open the log for one command."""
    from recollect.events.integrity.log_identity import open_log_of_folder  # noqa: PLC0415

    settings = load_cli_settings(data)
    storage = settings.storage
    log = open_log_of_folder(storage.data, storage.log_url, storage.key_options)
    try:
        yield log
    finally:
        log.close()


def record_command(
    context: typer.Context, scope: Scope, *, namespace: str | None = None, count: int | None = None
) -> None:
    """Write the line of the audit log about a command that works on the data folder itself.

    Parameters:
        scope: what a caller over HTTP would need for it.
        namespace: the namespace; that of the command when None.
        count: items that were read, or objects that were changed; None where nothing is counted.
    """
    from recollect.api.access.audit_log import command_entry  # noqa: PLC0415

    names: list[str] = []
    command: Any = context
    while command.parent is not None:
        names.insert(0, command.info_name or "")
        command = command.parent
    given: str | list[str] | None = context.params.get("namespace")
    namespace = namespace or (given if isinstance(given, str) else None)
    open_audit(context.obj).record(command_entry(" ".join(["recollect", *names]), namespace, (scope,), count=count))


def open_audit(data: Path | None) -> AuditLog:
    """Return the audit log of the data folder."""
    from recollect.api.access.audit_log import AuditLog  # noqa: PLC0415

    settings = load_cli_settings(data)
    storage = settings.storage
    return AuditLog(storage.data / "audit", storage.key_options, bytes_max=settings.access.audit_bytes_max)


@contextmanager
def open_cli_memory(data: Path | None) -> Generator[Recollect]:
    """Open the memory for one command, without workers: the command does its work itself."""
    from recollect.api.memory.recollect import Recollect  # noqa: PLC0415

    with Recollect(settings=load_cli_settings(data), workers=False) as memory:
        yield memory


def iter_namespaces(log: EventLog, namespace: str | None) -> Iterator[str]:
    """Yield `namespace`, or all of them when it is None."""
    from recollect.events.backends.log import each_head  # noqa: PLC0415

    if namespace is not None:
        yield check_namespace(namespace)
    else:
        yield from (head.namespace for head in each_head(log))


def list_heads(log: EventLog, namespace: str | None) -> list[Head]:
    """Return the head of `namespace`, or all heads when it is None."""
    from recollect.events.backends.log import each_head  # noqa: PLC0415

    return list(each_head(log)) if namespace is None else [log.head(check_namespace(namespace))]


def no_namespace(name: str) -> NotFound:
    """Return the error for a namespace that has no events."""
    return NotFound(f"{name!r} has no events; `recollect stats` lists the namespaces", field="namespace")


def open_models(data: Path, log_url: str, key_options: KeyOptions | None = None) -> ReadModels:
    """Open the read models of a data folder. It can be sent to another process."""
    from recollect.events.integrity.log_identity import open_log_of_folder  # noqa: PLC0415
    from recollect.projections.read_models.read_models import ReadModels  # noqa: PLC0415

    return ReadModels(data, open_log_of_folder(data, log_url, key_options))


def archive_of(log: EventLog, data: Path) -> Archive:
    """Return the archive of `log`: its own, or one in the data folder when it has none."""
    from recollect.events.storage.archive import Archive  # noqa: PLC0415

    return log.archive or Archive(data / "archive", log.log_id)
