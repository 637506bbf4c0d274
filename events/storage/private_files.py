"""Private files: folders and files that only their owner reads, from their creation on."""

from __future__ import annotations

import os
from pathlib import Path

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


def make_private(path: Path) -> None:
    """Let only the owner read and write the file `path`, by its name: opening it could drop SQLite's locks."""
    if os.name != "nt":
        path.chmod(PRIVATE_MODE)
