"""SQLite connections: opens databases with one set of pragmas, and translates errors of SQLite to `StorageError`."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Literal

import apsw

from recollect.events.errors import DiskFull, ForeignFile, ReadOnly, StorageError
from recollect.events.storage.private_files import make_private

#: How long a connection waits for the write lock. Writes take milliseconds, so 10 s mean that a process hangs.
BUSY_TIMEOUT_MS = 10_000
#: Seconds to wait for readers whose snapshot still needs the WAL; a read takes milliseconds.
_CHECKPOINT_SECONDS_MAX = 10.0
#: Seconds between two tries to set the journal of a new file; another process sets it within milliseconds.
_JOURNAL_RETRY_SECONDS = 0.005

_DISK_FULL = "{path}: the disk is full; free some space, then do the same again"
#: Bytes of free space below which an error of SQLite is one of a full disk. Even a reader needs a file next to a
#: database with a WAL: 32 KiB for 16 MiB, 1 MiB for 512 MiB. Without room for it, SQLite reports an I/O error, or that
#: the database cannot be opened.
_FULL_BYTES = 1 << 20
#: SQLite's message for a file whose header has an unknown format, which it reports as an error in the SQL.
_NO_FORMAT = "unsupported file format"
_CANNOT_WRITE = "{path} cannot be written; check its owner, its mode and how its disk is mounted"

#: The base class of all errors of SQLite.
DatabaseError = apsw.Error
#: The errors of SQLite for a damaged file.
DAMAGE_ERRORS = (apsw.CorruptError, apsw.NotADBError)

Synchronous = Literal["EXTRA", "FULL", "NORMAL"]
Journal = Literal["WAL", "DELETE"]


def connect(
    path: Path,
    *,
    readonly: bool = False,
    create: bool = True,
    synchronous: Synchronous = "NORMAL",
    journal: Journal = "WAL",
) -> apsw.Connection:
    """Open the SQLite file `path`.

    Parameters:
        create: create the file when it is missing, unless `readonly`.
        synchronous: ``FULL`` makes a commit durable, with the journal ``DELETE`` only ``EXTRA`` does; ``NORMAL`` keeps
            the file consistent, which is enough for data that can be rebuilt.
        journal: ``DELETE`` for a file on a disk that several machines share, and for one that holds little.

    Raises:
        StorageError: the file cannot be opened; `ForeignFile` when it is not a SQLite database.
    """
    flags = apsw.SQLITE_OPEN_READONLY if readonly else apsw.SQLITE_OPEN_READWRITE
    if create and not readonly:
        flags |= apsw.SQLITE_OPEN_CREATE
    with storage_errors(path):
        is_new = create and not readonly and not path.exists()
        connection = apsw.Connection(str(path), flags=flags)
        try:
            if is_new:
                # Before any content; the files that SQLite puts next to it get the same mode.
                make_private(path)
            connection.set_busy_timeout(BUSY_TIMEOUT_MS)
            # Deleted text is overwritten, and temporary data stays in memory, so that no file keeps erased text.
            connection.pragma("secure_delete", True)
            connection.pragma("temp_store", "MEMORY")
            # With it, INSERT OR REPLACE fires the triggers that refuse DELETE.
            connection.pragma("recursive_triggers", True)
            if not readonly:
                _set_journal(connection, journal)
            connection.pragma("synchronous", synchronous)
            # Reads the header, so that another program's file is detected before the first query.
            connection.pragma("schema_version")
        except BaseException:
            connection.close()
            raise
    return connection


def _set_journal(connection: apsw.Connection, journal: Journal) -> None:
    """Set the journal of a file, and wait for other processes that open the new file at the same time.

    SQLite reports at once that the file is busy: a change of the journal takes an exclusive lock from a shared one, and
    of two that waited for each other none would end.
    """
    deadline = time.monotonic() + BUSY_TIMEOUT_MS / 1_000
    while True:
        try:
            connection.pragma("journal_mode", journal)
            return
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_JOURNAL_RETRY_SECONDS)


def truncate_wal(
    connection: apsw.Connection, *, turn: Callable[[], AbstractContextManager[object]] = nullcontext
) -> None:
    """Copy the WAL into the file and empty it, so that no file has what a transaction removed.

    Parameters:
        turn: held during each try, and not while a reader keeps its snapshot.

    Raises:
        StorageError: a reader kept its snapshot for too long.
    """
    deadline = time.monotonic() + _CHECKPOINT_SECONDS_MAX
    while True:
        try:
            with turn():
                left, _ = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.BusyError:
            left = 1
        if left <= 0:
            return
        if time.monotonic() > deadline:
            raise StorageError(
                f"{connection.filename}: a reader holds an old snapshot, so erased bytes stay in the WAL; try again"
            )
        time.sleep(0.05)


@contextmanager
def storage_errors(path: Path) -> Generator[None]:
    """Translate errors of SQLite and of the system about the file `path` to a `StorageError`, with the cause."""
    try:
        yield
    except apsw.Error as error:
        ours = _storage_error(error, path)
        if ours is None:
            raise
        ours.path = path
        raise ours from error
    except OSError as error:
        raise _system_error(error, path) from error
    except UnicodeDecodeError as error:
        # SQLite does not check that stored text is UTF-8.
        damaged = ForeignFile(f"{path} is damaged (it has text that is not UTF-8); restore it from a backup")
        damaged.path = path
        raise damaged from error


def _system_error(error: OSError, path: Path) -> StorageError:
    """Return the `StorageError` for an error of the operating system."""
    match error.errno:
        case errno.EROFS | errno.EACCES | errno.EPERM:
            return ReadOnly(_CANNOT_WRITE.format(path=path))
        case errno.ENOSPC | errno.EDQUOT:
            return DiskFull(_DISK_FULL.format(path=path))
        case errno.ENOENT | errno.ENOTDIR | errno.EEXIST:
            return StorageError(
                f"{path} cannot be opened or created ({error.strerror}); check its folder, or name another with --data"
            )
        case _:
            return StorageError(f"{path}: {error.strerror or error}")


def _storage_error(error: apsw.Error, path: Path) -> StorageError | None:
    """Return the `StorageError` for an error of SQLite; None for an error of the program."""
    if is_of_full_disk(error, path):
        return DiskFull(_DISK_FULL.format(path=path))
    match error:
        case apsw.ReadOnlyError() | apsw.PermissionsError():
            return ReadOnly(_CANNOT_WRITE.format(path=path))
        case apsw.CantOpenError():
            return ReadOnly(f"{path} cannot be opened; check that its folder exists and can be written")
        case apsw.NotADBError():
            return ForeignFile(f"{path} is not a SQLite database; move it away, or name another data folder")
        case apsw.CorruptError():
            return ForeignFile(f"{path} is damaged ({error}); restore it from a backup")
        case apsw.SQLError() if _NO_FORMAT in str(error):
            return ForeignFile(f"{path} is damaged ({error}); restore it from a backup")
        case apsw.BusyError() | apsw.LockedError():
            return StorageError(
                f"{path} is locked by another process for over {BUSY_TIMEOUT_MS // 1000} seconds; end that process"
            )
        case apsw.IOError() | apsw.NoLFSError() | apsw.ProtocolError():
            return StorageError(f"{path}: the disk reports an error ({error}); check the disk")
        case _:
            return None


def is_of_full_disk(error: BaseException, path: Path) -> bool:
    """Return whether a full disk is the reason of an error of SQLite.

    SQLite rolls a transaction back when the disk is full. The `ROLLBACK` after it fails with an error in the SQL, whose
    context is the error of the full disk.
    """
    if isinstance(error, apsw.IOError | apsw.CantOpenError | apsw.SQLError) and is_full(path):
        return True
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, apsw.FullError):
        cause = cause.__context__
    return cause is not None


def is_full(path: Path) -> bool:
    """Return whether the disk of a file, which may be missing, has no room left for what SQLite needs to read it."""
    try:
        existing = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
        disk = os.statvfs(existing)
    except (OSError, StopIteration, AttributeError):
        # Windows has no `statvfs`; its SQLite reports a full disk as such.
        return False
    if disk.f_flag & os.ST_RDONLY:
        return False
    has_no_files_left = disk.f_files > 0 and disk.f_favail == 0
    return disk.f_bavail * disk.f_frsize < _FULL_BYTES or has_no_files_left


def rename_database(path: Path, suffix: str) -> list[Path]:
    """Append `suffix` to the name of a file or folder, and of SQLite's files next to it; return the new names."""
    renamed: list[Path] = []
    with storage_errors(path):
        for part in ("", "-wal", "-shm", "-journal"):
            old, new = Path(f"{path}{part}"), Path(f"{path}.{suffix}{part}")
            if old.exists():
                old.rename(new)
                renamed.append(new)
    return renamed
