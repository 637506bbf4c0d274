"""Generations: build a read model's file under a temporary name and publish the complete file under its number."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import apsw

from recollect.events.envelope import now_us
from recollect.events.errors import StorageError
from recollect.events.storage.database import connect, rename_database, storage_errors
from recollect.events.storage.file_lock import file_lock
from recollect.events.storage.private_files import make_private_folder
from recollect.projections.read_models.layout import EVICTED_NAME, generation_path, generations, remove_database
from recollect.projections.schema.schema import read_state

#: An unpublished empty generation of this age was left by a process that died: publishing takes milliseconds.
_ABANDONED_SECONDS = 3_600.0
#: Builds of one file, of which erasures may remove all but the last.
_BUILDS_MAX = 5

Result = TypeVar("Result")


def next_generation(folder: Path) -> int:
    """Return the number after the newest generation that `folder` has, or has had."""
    return max([*generations(folder), _evicted_generation(folder)]) + 1


def _evicted_generation(folder: Path) -> int:
    """Return the number of the generation that was removed last for the limit of the disk; 0 without one."""
    try:
        return int((folder / EVICTED_NAME).read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return 0


@contextmanager
def building(folder: Path) -> Generator[Path]:
    """Yield a new path for a file to be built in `folder`, and remove the file at the end if it is still at that path.

    A file lock allows one build at a time; the system releases it when its process dies. Files of killed builds are
    removed first.
    """
    with file_lock(folder / "replay.lock"):
        for unfinished in folder.glob("building-*.db*"):
            unfinished.unlink(missing_ok=True)
        path = folder / f"building-{secrets.token_hex(8)}.db"
        try:
            yield path
        finally:
            remove_database(path)


def empty_path(folder: Path) -> Path:
    """Return a new path for an empty generation before it is published; remove the files of dead processes."""
    with storage_errors(folder):
        make_private_folder(folder)
        for file in folder.glob("empty-*.db"):
            # Another process may have published it meanwhile.
            with suppress(FileNotFoundError):
                if time.time() - file.stat().st_mtime > _ABANDONED_SECONDS:
                    remove_database(file)
    return folder / f"empty-{secrets.token_hex(8)}.db"


def publish(built: Path, folder: Path, generation: int, log_id: str) -> bool:
    """Publish a complete, closed file as a generation; return False when another process has taken the number.

    A hard link fails when the number is taken; a rename would overwrite. The generation before it stays, since a
    process that has just chosen it may not have opened it yet. Older generations are removed; those of another log
    are renamed.

    Parameters:
        built: the file, in `folder`; its own name is removed.
        generation: the number to publish it under.
        log_id: the id of the log that the file was projected from.
    """
    try:
        os.link(built, generation_path(folder, generation))
    except FileExistsError:
        return False
    finally:
        built.unlink()
    for older in generations(folder)[:-2]:
        path = generation_path(folder, older)
        if _log_id(path) in (None, log_id):
            remove_database(path)
        else:
            # The file may be the last copy of that log's content.
            rename_database(path, f"replaced-{now_us()}")
    return True


def _log_id(path: Path) -> str | None:
    """Return the id of the log that a read model was projected from; None when the file is damaged."""
    try:
        with closing(connect(path, create=False)) as connection:
            return read_state(connection).log_id
    except (StorageError, apsw.Error, LookupError):
        return None


def built(folder: Path, work: Callable[[Path], Result]) -> Result:
    """Return the result of `work` with the path of a new file, which it builds.

    An erasure removes what may hold erased texts, also a file that is being built; then the build is repeated.
    """
    for _ in range(_BUILDS_MAX - 1):
        with building(folder) as path:
            try:
                return work(path)
            except StorageError:
                if path.exists():
                    raise
    with building(folder) as path:
        return work(path)
