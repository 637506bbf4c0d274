"""Private files: folders and files that only their owner reads, from their creation on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

#: The mode of files that hold text of users, hashes of tokens or locks.
PRIVATE_MODE = 0o600
#: The mode of their folders.
_FOLDER_MODE = 0o700


def make_private_folder(path: Path) -> None:
    """Create the folder `path` and its missing parents, readable by their owner alone; existing ones stay as they are.

    Raises:
        OSError: it cannot be created, or is a file.
    """
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=_FOLDER_MODE, exist_ok=True)
    if not path.is_dir():
        path.mkdir()


def open_private(path: Path) -> BinaryIO:
    """Open the file `path` to write it from its beginning; a new one is readable by its owner alone.

    Raises:
        OSError: it cannot be written.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)
    return os.fdopen(os.open(path, flags, PRIVATE_MODE), "wb")


def make_private(path: Path) -> None:
    """Let only the owner read and write the file `path`, by its name: opening it could drop SQLite's locks."""
    if os.name != "nt":
        path.chmod(PRIVATE_MODE)
