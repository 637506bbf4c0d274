"""Identity of a data folder's log: the folder remembers the log's id, so that a lost or exchanged log is refused.

Without it a new, empty log would be begun beside the read models and the archive of the lost one.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import orjson

from recollect.events.backends.log import EventLog
from recollect.events.backends.open_log import open_log, sqlite_path
from recollect.events.envelope import now_us
from recollect.events.errors import LogMissing, StorageError
from recollect.events.storage.atomic_file import sync_file
from recollect.events.storage.database import connect, rename_database, storage_errors

_logger = logging.getLogger(__name__)

#: The file of the data folder that holds the id of its log.
LOG_ID_NAME = "log-id"
_LOG_ID = re.compile(r"[0-9a-f-]{36}")
#: Folders of the data folder that were made from the log, beside the archive, which lies beside a log in SQLite.
_MADE_FROM_LOG = ("namespaces", "as-of", "traces")
_JOBS_NAME = "jobs.db"
#: A new SQLite file in WAL mode has one page before its first table is checkpointed.
_PAGE_BYTES = 4_096


def open_log_of(data: Path, url: str) -> EventLog:
    """Open the log of the data folder `data`; one that was never opened there is remembered as its log.

    Raises:
        LogMissing: the log is gone, or is not the one that the folder was made from.
        what `open_log` raises.
    """
    known = remembered_log_id(data)
    path = sqlite_path(url)
    if path is not None and not _holds_log(path):
        left = [name.name for name in _made_from_log(data, path.parent)]
        if known is not None or left:
            raise LogMissing(
                f"{path} is missing or empty, but {data} was made from it (it holds {', '.join(left) or LOG_ID_NAME}): "
                "the log is gone; restore it with `recollect restore FOLDER`, or begin a new one with "
                "`recollect init --new-log`, which puts what was made from the old one aside"
            )
    log = open_log(url)
    if known is None:
        try:
            remember_log_id(data, log.log_id)
        except StorageError:
            # The log can be used without; the next opening remembers it.
            _logger.warning("%s cannot be written", data / LOG_ID_NAME, exc_info=True)
    elif known != log.log_id:
        log.close()
        raise LogMissing(
            f"the log at {path or 'RECOLLECT_LOG'} is {log.log_id}, but {data} was made from the log {known}; put that "
            "one back with `recollect restore FOLDER`, name the right RECOLLECT_LOG or --data folder, or go on with "
            "this log by `recollect init --new-log`, which puts what was made from the other one aside"
        )
    return log


def remembered_log_id(data: Path) -> str | None:
    """Return the id of the log that the data folder was made from; None when it is not recorded."""
    path = data / LOG_ID_NAME
    with storage_errors(path):
        try:
            content = path.read_bytes().decode(errors="replace").strip()
        except (FileNotFoundError, NotADirectoryError):
            return None
    return content if _LOG_ID.fullmatch(content) else None


def remember_log_id(data: Path, log_id: str) -> None:
    """Write the id of the folder's log to disk."""
    path = data / LOG_ID_NAME
    unfinished = path.with_name(f"{LOG_ID_NAME}.{os.getpid()}")
    with storage_errors(path):
        data.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(f"{log_id}\n", encoding="ascii")
        sync_file(unfinished)
        unfinished.rename(path)
        sync_file(data)


def put_aside(data: Path, url: str) -> list[Path]:
    """Rename what was made from a log that is gone or is another one; return the new names. Nothing is deleted.

    A log that is there and can be opened stays, and so does the archive that belongs to it. Nobody may use the folder.
    """
    path = sqlite_path(url)
    beside_log = data if path is None else path.parent
    suffix = f"replaced-{now_us()}"
    old = list(_made_from_log(data, beside_log))
    if path is not None and not _holds_log(path):
        old.append(path)
    elif beside_log / "archive" in old:
        with closing(open_log(url)) as log:
            if _archive_log_ids(beside_log / "archive") == {log.log_id}:
                old.remove(beside_log / "archive")
    renamed: list[Path] = []
    # The id last: before it the folder is refused, and the next call goes on.
    for one in (*old, data / LOG_ID_NAME):
        renamed += rename_database(one, suffix)
    with storage_errors(data):
        sync_file(data)
    return renamed


def _holds_log(path: Path) -> bool:
    """Return whether the file has tables; what they are is for `open_log` to find out."""
    with storage_errors(path):
        try:
            size = path.stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return False
        if size == 0 or size > _PAGE_BYTES:
            return size > 0
        # All that was written may still be in the WAL.
        with closing(connect(path, readonly=True)) as connection:
            return connection.execute("SELECT 1 FROM sqlite_schema").fetchone() is not None


def _made_from_log(data: Path, beside_log: Path) -> Iterator[Path]:
    """Yield what was made from a log: folders with content, and the records of jobs."""
    for path in (*(data / name for name in _MADE_FROM_LOG), beside_log / "archive"):
        with storage_errors(path):
            if path.is_dir() and any(path.iterdir()):
                yield path
    if (data / _JOBS_NAME).is_file():
        yield data / _JOBS_NAME


def _archive_log_ids(archive: Path) -> set[str | None]:
    """Return the ids of the logs that the archive's manifests name; None for one that cannot be read."""
    found: set[str | None] = set()
    for manifest in archive.glob("*/*/manifest.json"):
        try:
            found.add(orjson.loads(manifest.read_bytes())["log_id"])
        except (OSError, ValueError, KeyError, TypeError):
            found.add(None)
    return found
