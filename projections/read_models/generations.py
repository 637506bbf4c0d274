"""How a generation of a read model comes to be: built under another name, and put in its place when it is whole."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from recollect.events.envelope import now_us
from recollect.events.errors import StorageError
from recollect.events.storage.database import connect, rename_database, storage_errors
from recollect.events.storage.file_lock import file_lock
from recollect.projections.read_models.layout import generation_path, generations, remove_database
from recollect.projections.schema.schema import read_state

#: An empty generation that did not get its name in this time belongs to a process that died.
_ABANDONED_SECONDS = 3_600.0


def next_generation(folder: Path) -> int:
    """Return the number after the newest generation in `folder`."""
    return (generations(folder) or [0])[-1] + 1


@contextmanager
def building(folder: Path) -> Generator[Path]:
    """Lend a name for a file to be built in `folder`. One build at a time; what a killed one left is removed.

    The lock ends with its process, however that ends.
    """
    with file_lock(folder / "replay.lock"):
        for left in folder.glob("building-*.db*"):
            left.unlink(missing_ok=True)
        path = folder / f"building-{secrets.token_hex(8)}.db"
        try:
            yield path
        finally:
            remove_database(path)


def empty_path(folder: Path) -> Path:
    """Return a new name for an empty generation on its way, and remove what dead processes left."""
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for file in folder.glob("empty-*.db"):
            if time.time() - file.stat().st_mtime > _ABANDONED_SECONDS:
                remove_database(file)
    return folder / f"empty-{secrets.token_hex(8)}.db"


def publish(built: Path, folder: Path, generation: int, log_id: str) -> bool:
    """Make a whole, closed file of the log `log_id` the generation with this number; False when another was faster.

    A hard link fails when the number is taken, which a rename would not. The generation before it stays, since a
    process that has just chosen it may not have opened it yet; what is older goes, and is put aside when it was
    folded from another log.
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
            # It may be the last copy of what that log said.
            rename_database(path, f"replaced-{now_us()}")
    return True


def _log_id(path: Path) -> str | None:
    """Return the id of the log that a read model was folded from; None when the file is damaged."""
    try:
        with closing(connect(path, create=False)) as connection:
            return read_state(connection).log_id
    except (StorageError, apsw.Error, LookupError, TypeError):
        return None
