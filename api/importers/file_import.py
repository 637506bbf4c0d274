"""File import: reads a file, a folder or an archive of any format into the log of a data folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from datetime import UTC, datetime
from pathlib import Path

from recollect.api.importers.import_loader import LoadOptions, load
from recollect.api.importers.imported_records import Failed, ImportReport, ReadOptions
from recollect.api.importers.importer import importer_of, recognised
from recollect.api.importers.missing_documents import MissingDocument, missing_documents
from recollect.api.importers.returned_documents import returned_documents
from recollect.api.importers.source_files import open_source
from recollect.api.settings import Settings
from recollect.events.backends.log import EventLog
from recollect.events.backends.open_log import sqlite_path
from recollect.events.envelope import EventDraft
from recollect.events.errors import InvalidInput
from recollect.events.integrity.log_identity import open_log_of_folder
from recollect.events.limits import check_namespace
from recollect.events.progress import OnCount


def import_path(
    path: Path,
    *,
    settings: Settings,
    form: str = "auto",
    namespace: str | None = None,
    user: str | None = None,
    since: str | None = None,
    limit: int | None = None,
    dry_run: bool = False,
    delete_missing: bool = False,
    on_progress: OnCount = lambda _: None,
) -> ImportReport:
    """Import `path`, and return what became of its items. Importing it again adds nothing.

    Parameters:
        form: the name of an installed format, or ``auto``.
        namespace: where it is imported to; None only for formats that have namespaces.
        user: the name of the user in the bot's own messages.
        since: a time or a date; what happened before is left out.
        limit: the largest number of items to import.
        dry_run: append nothing, and create no log.
        delete_missing: remove the documents of earlier imports of a folder of notes whose file it does not have.

    Raises:
        InvalidInput: an option is wrong, or the path is not an export of this format; nothing was appended.
    """
    importer = None if form == "auto" else importer_of(form)
    if namespace is not None:
        check_namespace(namespace)
    since_moment = None if since is None else _parse_since(since)
    with open_source(path) as files:
        importer = importer or recognised(files)
        name = importer.name
        if namespace is None and not importer.has_namespaces:
            raise InvalidInput(f"{name} has no namespaces; say whose memory it becomes", field="--namespace")
        folder = path.resolve().name if importer.is_folder and path.is_dir() else None
        is_whole = folder is not None and since is None and limit is None
        if delete_missing and not is_whole:
            raise InvalidInput("is for a whole folder of notes, without --since and --limit", field="--delete-missing")
        options = LoadOptions(
            format=name,
            namespace=namespace,
            since=since_moment,
            items_max=limit,
            dry_run=dry_run,
            folder=folder,
            delete_missing=delete_missing,
        )
        records = importer.read(files, ReadOptions(user=user, namespace=namespace))
        log = _open_log(settings, dry_run=dry_run)
        with closing(log) if log is not None else nullcontext():
            data = settings.storage.data

            def returned(namespace: str, documents: Sequence[EventDraft]) -> list[EventDraft]:
                return [] if log is None else returned_documents(data, log, namespace, name, documents)

            def missing(namespace: str, read: Mapping[str, str | None]) -> list[MissingDocument]:
                # A first import has nothing to compare with, and no read models yet.
                if log is None or is_first or folder is None or not is_whole:
                    return []
                return missing_documents(data, log, namespace, name, folder, read)

            is_first = log is None or namespace is None or log.head(namespace).version == 0
            report = load(log, records, options, settings.privacy, on_progress, returned, missing)
    if not report.seen:
        report.fail(Failed(where=str(path), reason=f"holds nothing that {name} would have"))
    return report


def _open_log(settings: Settings, *, dry_run: bool) -> EventLog | None:
    """Return the log of the settings; None for a dry run where there is no log, so that it creates none."""
    storage = settings.storage
    file = sqlite_path(storage.log_url)
    if dry_run and file is not None and not file.exists():
        return None
    return open_log_of_folder(storage.data, storage.log_url, storage.key_options)


def _parse_since(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput(
            "give a date or a time, such as 2026-01-01 or 2026-01-01T09:00:00Z", field="--since"
        ) from error
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
