"""Backup: copies the SQLite file of a log and its archive while they are in use, and restores the copy."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import apsw

from recollect.events.backends.log import each_head
from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.encryption.key_store import KID_BYTES
from recollect.events.envelope import ENCODING_AES, Head, now_us
from recollect.events.errors import ForeignFile, InvalidInput, KeyMissing, StorageError
from recollect.events.integrity.parallel_verify import verify_all
from recollect.events.progress import OnProgress
from recollect.events.storage.atomic_file import sync_file
from recollect.events.storage.database import connect, rename_database, storage_errors
from recollect.events.storage.private_files import make_private_folder

#: Pages copied in one step: 4 MiB in some milliseconds, after which other connections may continue.
_STEP_PAGES = 1_024
#: The file and the folder in the folder of a backup.
LOG_NAME = "log.db"
ARCHIVE_NAME = "archive"


def backup(log: Path, target: Path, *, on_progress: OnProgress | None = None) -> int:
    """Copy the log in the file `log` to the new folder `target` and return the number of its events.

    The copy is a consistent snapshot, also while other processes append. It is verified, then renamed to `target`.

    Raises:
        InvalidInput: `target` exists, or `log` does not. ForeignFile: the chain is broken.
        StorageError: the disk failed.
    """
    if target.exists():
        raise InvalidInput("exists already; name a new folder", field=str(target))
    if not log.is_file():
        raise InvalidInput("there is no log to back up", field=str(log))
    temporary = target.with_name(f"{target.name}.unfinished")
    with storage_errors(target):
        _copy(log, log.parent / ARCHIVE_NAME, temporary, on_progress)
        events = _verified_events(temporary)
        temporary.rename(target)
        sync_file(target.parent)
    return events


def restore(source: Path, log: Path, *, key_store: Path | None = None, on_progress: OnProgress | None = None) -> int:
    """Replace the file `log` by the backup in the folder `source` and return the number of its events.

    The backup is first copied to the same disk and verified. The old log and archive are renamed, not deleted. No
    process may have the log open. Read models that have projected later events than the backup has must be rebuilt
    before they are read.

    Parameters:
        key_store: the key store that must have the keys of all encrypted events; None: they are not looked for.

    Raises:
        InvalidInput: `source` is not a backup. ForeignFile: its chain is broken. StorageError: the disk failed.
        KeyMissing: keys are not in `key_store`; nothing was changed. InvalidInput: it is a file of another kind.
    """
    if not (source / LOG_NAME).is_file():
        raise InvalidInput(f"is not a backup: it has no file {LOG_NAME}", field=str(source))
    incoming = log.with_name(f"{log.name}.incoming")
    archive = log.parent / ARCHIVE_NAME
    with storage_errors(log):
        make_private_folder(log.parent)
        _copy(source / LOG_NAME, source / ARCHIVE_NAME, incoming, on_progress)
        events = _verified_events(incoming)
        try:
            if key_store is not None and (missing := events_without_key(incoming / LOG_NAME, key_store)):
                raise KeyMissing(
                    f"{key_store} does not have {len(missing)} of the keys of the backup, and events cannot be read "
                    "without their key; nothing was changed"
                )
        except (InvalidInput, KeyMissing):
            shutil.rmtree(incoming)
            raise
        _set_aside(log, archive)
        if (incoming / ARCHIVE_NAME).exists():
            (incoming / ARCHIVE_NAME).rename(archive)
        # The last step: until then the folder has no log, and the restore can be repeated.
        (incoming / LOG_NAME).rename(log)
        sync_file(log.parent)
        incoming.rmdir()
    return events


def backup_keys(store: Path, target: Path) -> None:
    """Copy the key store in the file `store` to the new file `target`, which only its owner can read.

    Keep it apart from backups of the log: together they are readable, also what is erased later.

    Raises:
        InvalidInput: `target` exists, or `store` does not. StorageError: the disk failed.
    """
    if target.exists():
        raise InvalidInput("exists already; name a new file", field=str(target))
    if not store.is_file():
        raise InvalidInput("there is no key store to back up", field=str(store))
    with storage_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        with (
            closing(connect(store, readonly=True)) as old,
            closing(connect(target, journal="DELETE")) as new,
            new.backup("main", old, "main") as sqlite_backup,
        ):
            sqlite_backup.step()
        sync_file(target)
        sync_file(target.parent)


def restore_keys(source: Path, store: Path) -> None:
    """Replace the key store in the file `store` by the copy in `source`. The old one is renamed.

    Only for a log that the old key store does not belong to: that one also knows what was erased since the copy.

    Raises:
        InvalidInput: `source` does not exist. StorageError: the disk failed.
    """
    if not source.is_file():
        raise InvalidInput("is not a copy of a key store", field=str(source))
    incoming = store.with_name(f"{store.name}.incoming")
    incoming.unlink(missing_ok=True)
    backup_keys(source, incoming)
    rename_database(store, f"replaced-{now_us()}")
    with storage_errors(store):
        incoming.rename(store)
        sync_file(store.parent)


def _copy(log: Path, archive: Path, folder: Path, on_progress: OnProgress | None) -> None:
    """Copy a log and its archive to the new `folder` and sync every file to disk."""
    shutil.rmtree(folder, ignore_errors=True)
    make_private_folder(folder)
    with closing(connect(log, readonly=True)) as old, closing(connect(folder / LOG_NAME)) as new:
        with new.backup("main", old, "main") as sqlite_backup:
            while not sqlite_backup.done:
                sqlite_backup.step(_STEP_PAGES)
                if on_progress is not None:
                    on_progress(sqlite_backup.page_count - sqlite_backup.remaining, sqlite_backup.page_count)
        new.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    # Copied after the log, so that the archive has every event that was pruned from the copy.
    if archive.is_dir():
        shutil.copytree(archive, folder / ARCHIVE_NAME)
    for path in (*folder.rglob("*"), folder):
        sync_file(path)


def _verified_events(folder: Path) -> int:
    """Return the number of events in a copy; raise `ForeignFile` when a chain is broken."""
    log = SqliteLog(folder / LOG_NAME)
    try:
        events = 0
        for result in verify_all(log, each_head(log), open_log=lambda: log):
            if not result.is_intact:
                problem = result.problems[0]
                raise ForeignFile(
                    f"{folder}: the chain of namespace {result.namespace!r} is broken at version {problem.version} "
                    f"({problem.message}); `recollect verify` lists all problems"
                )
            events += result.version
    finally:
        log.close()
    return events


def events_without_key(log: Path, key_store: Path) -> Mapping[bytes, int]:
    """Return the number of events of each key that a log needs and a key store has not; a destroyed key is in it.

    Raises:
        InvalidInput: `key_store` is a file of another kind.
    """
    opened = SqliteLog(log)
    try:
        needed = Counter(kid for head in each_head(opened) for kid in _kids(opened, head))
    finally:
        opened.close()
    if not key_store.is_file():
        return needed
    try:
        with closing(connect(key_store, readonly=True)) as connection:
            kids: set[bytes] = {kid for (kid,) in connection.execute("SELECT kid FROM data_keys")}
    except (ForeignFile, apsw.NotADBError, apsw.SQLError):
        reason = "is not a key store; `recollect backup FOLDER --keys FILE` writes a copy of one"
        raise InvalidInput(reason, field=str(key_store)) from None
    return {kid: events for kid, events in needed.items() if kid not in kids}


def _kids(log: SqliteLog, head: Head) -> Iterator[bytes]:
    """Yield the id of the key of each encrypted event of a namespace."""
    after = 0
    while after < head.version:
        events = log.read_stored(head.namespace, after=after)
        yield from (event.payload[:KID_BYTES] for event in events if event.encoding == ENCODING_AES)
        after = events[-1].version if events else head.version


def _set_aside(log: Path, archive: Path) -> None:
    """Rename the existing log and archive, so that a restore loses no data."""
    suffix = f"replaced-{now_us()}"
    if log.exists():
        # This mode merges the WAL into the file. A damaged file keeps its WAL, which is renamed with it.
        with contextlib.suppress(StorageError, apsw.Error), closing(connect(log, create=False)) as old:
            old.pragma("journal_mode", "DELETE")
    # Renames a WAL without its file too, which SQLite would apply to the restored file.
    rename_database(log, suffix)
    if archive.exists():
        archive.rename(archive.with_name(f"{archive.name}.{suffix}"))
