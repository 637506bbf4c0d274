"""SQLite as every part of Recollect opens it: one set of pragmas, and errors that tell the user what to do."""

from __future__ import annotations

import errno
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import apsw

from recollect.events.errors import DiskFull, ForeignFile, ReadOnly, StorageError

#: How long a connection waits for another one's write. Ours last milliseconds; seconds mean a stuck process.
BUSY_TIMEOUT_MS = 10_000

_DISK_FULL = "{path}: the disk is full; free some space, then send the same again"
#: What SQLite says, as an error in the SQL, of a file whose header names a format that it does not know.
_NO_FORMAT = "unsupported file format"
_CANNOT_WRITE = "{path} cannot be written; check its owner, its mode and how its disk is mounted"

#: The base class of everything that SQLite reports.
DatabaseError = apsw.Error
#: What SQLite reports of a damaged file.
DAMAGE_ERRORS = (apsw.CorruptError, apsw.NotADBError)

Synchronous = Literal["FULL", "NORMAL"]


def connect(
    path: Path, *, readonly: bool = False, create: bool = True, synchronous: Synchronous = "NORMAL"
) -> apsw.Connection:
    """Open the SQLite file `path` in WAL mode.

    Parameters:
        create: make the file when it is not there, unless `readonly`.
        synchronous: ``FULL`` makes a commit durable; ``NORMAL`` keeps the file consistent, which is enough for what
            can be rebuilt.

    Raises:
        StorageError: the file cannot be opened; `ForeignFile` when it is no SQLite database.
    """
    flags = apsw.SQLITE_OPEN_READONLY if readonly else apsw.SQLITE_OPEN_READWRITE
    if create and not readonly:
        flags |= apsw.SQLITE_OPEN_CREATE
    with storage_errors(path):
        connection = apsw.Connection(str(path), flags=flags)
        try:
            connection.set_busy_timeout(BUSY_TIMEOUT_MS)
            # Deleted text is overwritten, and nothing goes to temporary files: what is forgotten is gone.
            connection.pragma("secure_delete", True)
            connection.pragma("temp_store", "MEMORY")
            # INSERT OR REPLACE fires the triggers that refuse DELETE.
            connection.pragma("recursive_triggers", True)
            if not readonly:
                connection.pragma("journal_mode", "WAL")
            connection.pragma("synchronous", synchronous)
            # Reads the header, so that a file that is no database is noticed here and not at the first query.
            connection.pragma("schema_version")
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def storage_errors(path: Path) -> Generator[None]:
    """Turn what SQLite reports about the file `path` into a `StorageError`, keeping the cause."""
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
        # SQLite hands out what is stored as text unseen.
        damaged = ForeignFile(f"{path} is damaged (a text in it is no UTF-8); restore it from a backup")
        damaged.path = path
        raise damaged from error


def _system_error(error: OSError, path: Path) -> StorageError:
    match error.errno:
        case errno.EROFS | errno.EACCES | errno.EPERM:
            return ReadOnly(_CANNOT_WRITE.format(path=path))
        case errno.ENOSPC | errno.EDQUOT:
            return DiskFull(_DISK_FULL.format(path=path))
        case _:
            return StorageError(f"{path}: {error.strerror or error}")


def _storage_error(error: apsw.Error, path: Path) -> StorageError | None:
    match error:
        case apsw.FullError():
            return DiskFull(_DISK_FULL.format(path=path))
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
            return StorageError(f"{path} is locked by another process for over {BUSY_TIMEOUT_MS // 1000} seconds")
        case apsw.IOError() | apsw.NoLFSError() | apsw.ProtocolError():
            return StorageError(f"{path}: the disk reports an error ({error}); check it before you go on")
        case _:
            return None


def rename_database(path: Path, suffix: str) -> list[Path]:
    """Put `suffix` behind the name of a file or folder, and of what SQLite keeps beside the file; return new names."""
    renamed: list[Path] = []
    with storage_errors(path):
        for part in ("", "-wal", "-shm", "-journal"):
            old, new = Path(f"{path}{part}"), Path(f"{path}.{suffix}{part}")
            if old.exists():
                old.rename(new)
                renamed.append(new)
    return renamed
