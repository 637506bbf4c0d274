"""Layout: names the files of a namespace: one folder each, with the numbered generations of its read model."""

from __future__ import annotations

import re
from pathlib import Path

from recollect.events.storage.namespace_folder import hashed_folder, named_folder

_GENERATION = re.compile(r"(\d{6})\.db")


def namespace_folder(data: Path, namespace: str) -> Path:
    """Return the folder of `namespace` under the data folder."""
    return hashed_folder(data / "namespaces", namespace)


def folder_named(data: Path, name: str) -> Path:
    """Return the folder under the data folder that is called `name`: the last part of a `namespace_folder`."""
    return named_folder(data / "namespaces", name)


def generations(folder: Path) -> list[int]:
    """Return the numbers of the complete generations in `folder`, oldest first; the last one is live."""
    if not folder.is_dir():
        return []
    matches = (_GENERATION.fullmatch(file.name) for file in folder.iterdir())
    return sorted(int(match[1]) for match in matches if match)


def generation_path(folder: Path, generation: int) -> Path:
    """Return the path of a generation's file."""
    return folder / f"{generation:06}.db"


def remove_database(path: Path) -> None:
    """Remove a SQLite file and its WAL; missing files are no error."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
