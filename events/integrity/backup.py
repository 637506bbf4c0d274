"""Backup and restore of an embedded log: the SQLite file, copied while it is in use, and its archive beside it."""

from __future__ import annotations

import contextlib
import shutil
from contextlib import closing
from pathlib import Path

import apsw

from recollect.events.backends.log import each_head
from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.envelope import now_us
from recollect.events.errors import ForeignFile, InvalidInput, StorageError
from recollect.events.integrity.parallel_verify import verify_all
from recollect.events.progress import OnProgress
from recollect.events.storage.atomic_file import sync_file
from recollect.events.storage.database import connect, rename_database, storage_errors

#: Pages copied at once: 4 MiB, some milliseconds, then others get their turn.
_STEP_PAGES = 1_024
#: What a backup's folder holds.
LOG_NAME = "log.db"
ARCHIVE_NAME = "archive"


def backup(log: Path, target: Path, *, on_progress: OnProgress | None = None) -> int:
    """Copy the log in the file `log` to the new folder `target` and return how many events it holds.

    Others may append meanwhile: the copy is the log as it was at one moment. It is verified, and becomes `target` only
    when it is whole.

    Raises:
        InvalidInput: `target` is there already, or `log` is not. ForeignFile: the chain is broken.
        StorageError: the disk failed.
    """
    if target.exists():
        raise InvalidInput("is there already; name a new folder", field=str(target))
    if not log.is_file():
        raise InvalidInput("there is no log to back up", field=str(log))
    temporary = target.with_name(f"{target.name}.unfinished")
    with storage_errors(target):
        _copy(log, log.parent / ARCHIVE_NAME, temporary, on_progress)
        events = _verified_events(temporary)
        temporary.rename(target)
        sync_file(target.parent)
    return events


def restore(source: Path, log: Path, *, on_progress: OnProgress | None = None) -> int:
    """Put the backup in the folder `source` in the place of the file `log` and return how many events it holds.

    It is copied beside and verified first. What was there is kept under another name. Nobody may have the log open.
    Read models that have folded more than the backup holds refuse to answer until they are rebuilt.

    Raises:
        InvalidInput: `source` is no backup. ForeignFile: its chain is broken. StorageError: the disk failed.
    """
    if not (source / LOG_NAME).is_file():
        raise InvalidInput(f"is no backup: there is no {LOG_NAME} in it", field=str(source))
    incoming = log.with_name(f"{log.name}.incoming")
    archive = log.parent / ARCHIVE_NAME
    with storage_errors(log):
        log.parent.mkdir(parents=True, exist_ok=True)
        _copy(source / LOG_NAME, source / ARCHIVE_NAME, incoming, on_progress)
        events = _verified_events(incoming)
        _set_aside(log, archive)
        if (incoming / ARCHIVE_NAME).exists():
            (incoming / ARCHIVE_NAME).rename(archive)
        # Last: before it the folder has no log, and the backup is still whole.
        (incoming / LOG_NAME).rename(log)
        sync_file(log.parent)
        incoming.rmdir()
    return events


def _copy(log: Path, archive: Path, folder: Path, on_progress: OnProgress | None) -> None:
    """Copy a log and its archive to the new `folder`, and have them on disk."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with closing(connect(log, readonly=True)) as old, closing(connect(folder / LOG_NAME)) as new:
        with new.backup("main", old, "main") as sqlite_backup:
            while not sqlite_backup.done:
                sqlite_backup.step(_STEP_PAGES)
                if on_progress is not None:
                    on_progress(sqlite_backup.page_count - sqlite_backup.remaining, sqlite_backup.page_count)
        new.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    # After the log: whatever its copy has let go to the archive is there by now.
    if archive.is_dir():
        shutil.copytree(archive, folder / ARCHIVE_NAME)
    for path in (*folder.rglob("*"), folder):
        sync_file(path)


def _verified_events(folder: Path) -> int:
    """Return how many events a copy holds; raise `ForeignFile` when its chain is broken."""
    log = SqliteLog(folder / LOG_NAME)
    try:
        events = 0
        for result in verify_all(log, each_head(log), open_log=lambda: log):
            if not result.is_intact:
                problem = result.problems[0]
                raise ForeignFile(
                    f"{folder}: the chain of namespace {result.namespace!r} is broken at version {problem.version} "
                    f"({problem.message}); `recollect verify` says more"
                )
            events += result.version
    finally:
        log.close()
    return events


def _set_aside(log: Path, archive: Path) -> None:
    """Rename the log and the archive that are there, so that nothing is lost by a restore."""
    suffix = f"replaced-{now_us()}"
    if log.exists():
        # What is in the WAL goes into the file, so that one rename keeps it all. A damaged file keeps its WAL.
        with contextlib.suppress(StorageError, apsw.Error), closing(connect(log, create=False)) as old:
            old.pragma("journal_mode", "DELETE")
    # A WAL without its file too: SQLite would apply it to the file that comes in its place.
    rename_database(log, suffix)
    if archive.exists():
        archive.rename(archive.with_name(f"{archive.name}.{suffix}"))
