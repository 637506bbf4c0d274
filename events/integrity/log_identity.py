"""Log identity: stores the log's id in the data folder, so that a missing or exchanged log is refused.

Otherwise Recollect would create a new, empty log next to the read models and the archive of the missing log.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import orjson

from recollect.events.backends.log import EventLog
from recollect.events.backends.open_log import open_log, sqlite_path
from recollect.events.encryption.key_store import open_key_store
from recollect.events.encryption.master_key import KeyOptions
from recollect.events.envelope import now_us
from recollect.events.errors import LogMissing, StorageError
from recollect.events.late_pattern import late_pattern
from recollect.events.storage.atomic_file import sync_file
from recollect.events.storage.database import connect, rename_database, storage_errors
from recollect.events.storage.private_files import PRIVATE_MODE, make_private_folder

_logger = logging.getLogger(__name__)

#: The file in the data folder with the id of its log.
LOG_ID_NAME = "log-id"
_LOG_ID = late_pattern(r"[0-9a-f-]{36}")
#: Folders of the data folder that are derived from the log. The archive is in the folder of a log in SQLite.
_DERIVED_FOLDERS = ("namespaces", "as-of", "traces")
_JOBS_NAME = "jobs.db"
#: A new SQLite file in WAL mode has one page before its first table is checkpointed.
_PAGE_BYTES = 4_096


def open_log_of_folder(data: Path, url: str, options: KeyOptions | None = None) -> EventLog:
    """Open the log at `url` with its keys, and check that it is the log of the data folder `data`.

    The first log that is opened with a data folder becomes its log.

    Parameters:
        options: where the keys are, and whether new events are encrypted; the defaults when None.

    Raises:
        LogMissing: the log is missing, or another log than the log of the folder.
        InvalidInput, StorageError: as `open_log`.
    """
    remembered_id = read_log_id(data)
    path = sqlite_path(url)
    if path is not None and not _holds_log(path):
        derived_names = [name.name for name in _derived_paths(data, path.parent)]
        if remembered_id is not None or derived_names:
            raise LogMissing(
                f"{path} is missing or empty, but {data} was made from it (it holds "
                f"{', '.join(derived_names) or LOG_ID_NAME}): the log is gone; restore it with "
                "`recollect restore FOLDER`, or begin a new log with `recollect init --new-log`, which renames "
                "the data that was made from the old log"
            )
    options = options or KeyOptions()
    encrypt = {"on": True, "off": False}.get(options.mode)
    log = open_log(url, keys=open_key_store(data, options), encrypt=encrypt)
    if remembered_id is None:
        try:
            write_log_id(data, log.log_id)
        except StorageError:
            # The log is usable without the file, and the next opening tries again to write it.
            _logger.warning("%s cannot be written", data / LOG_ID_NAME, exc_info=True)
    elif remembered_id != log.log_id:
        log.close()
        raise LogMissing(
            f"the log at {path or 'RECOLLECT_LOG'} is {log.log_id}, but {data} was made from the log {remembered_id}; "
            "restore that log with `recollect restore FOLDER`, name the right RECOLLECT_LOG or --data folder, or keep "
            "this log with `recollect init --new-log`, which renames the data that was made from the other log"
        )
    return log


def read_log_id(data: Path) -> str | None:
    """Return the id of the data folder's log; None when it is not stored."""
    path = data / LOG_ID_NAME
    with storage_errors(path):
        try:
            content = path.read_bytes().decode(errors="replace").strip()
        except (FileNotFoundError, NotADirectoryError):
            return None
    return content if _LOG_ID.fullmatch(content) else None


def write_log_id(data: Path, log_id: str) -> None:
    """Write the id of the data folder's log to disk, atomically."""
    path = data / LOG_ID_NAME
    temporary = path.with_name(f"{LOG_ID_NAME}.{os.getpid()}")
    with storage_errors(path):
        make_private_folder(data)
        temporary.touch(PRIVATE_MODE)
        temporary.write_text(f"{log_id}\n", encoding="ascii")
        sync_file(temporary)
        temporary.rename(path)
        sync_file(data)


def rename_derived_data(data: Path, url: str) -> list[Path]:
    """Rename the data that was derived from a missing or exchanged log; return the new names. Nothing is deleted.

    An existing log that can be opened keeps its name, and so does its archive. No process may use the folder.
    """
    path = sqlite_path(url)
    log_folder = data if path is None else path.parent
    suffix = f"replaced-{now_us()}"
    obsolete = list(_derived_paths(data, log_folder))
    if path is not None and not _holds_log(path):
        obsolete.append(path)
    elif log_folder / "archive" in obsolete:
        with closing(open_log(url)) as log:
            if _archive_log_ids(log_folder / "archive") == {log.log_id}:
                obsolete.remove(log_folder / "archive")
    renamed: list[Path] = []
    # The id is renamed last: until then the folder is refused, and a second call completes a killed one.
    for obsolete_path in (*obsolete, data / LOG_ID_NAME):
        renamed += rename_database(obsolete_path, suffix)
    with storage_errors(data):
        sync_file(data)
    return renamed


def _holds_log(path: Path) -> bool:
    """Return whether the file has tables; `open_log` checks whether they are those of a log."""
    with storage_errors(path):
        try:
            size = path.stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return False
        if size == 0 or size > _PAGE_BYTES:
            return size > 0
        # All tables may still be in the WAL.
        with closing(connect(path, readonly=True)) as connection:
            return connection.execute("SELECT 1 FROM sqlite_schema").fetchone() is not None


def _derived_paths(data: Path, log_folder: Path) -> Iterator[Path]:
    """Yield the paths derived from a log: folders with content, and the database of jobs."""
    for path in (*(data / name for name in _DERIVED_FOLDERS), log_folder / "archive"):
        with storage_errors(path):
            if path.is_dir() and any(path.iterdir()):
                yield path
    if (data / _JOBS_NAME).is_file():
        yield data / _JOBS_NAME


def _archive_log_ids(archive: Path) -> set[str | None]:
    """Return the log ids in the archive's manifests; None for a manifest that cannot be read."""
    log_ids: set[str | None] = set()
    for manifest in archive.glob("*/*/manifest.json"):
        try:
            log_ids.add(orjson.loads(manifest.read_bytes())["log_id"])
        except (OSError, ValueError, KeyError, TypeError):
            log_ids.add(None)
    return log_ids
