"""Where a namespace's files lie: one folder each, numbered generations of its read model in it."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from hashlib import sha256
from pathlib import Path

_GENERATION = re.compile(r"(\d{6})\.db")


def namespace_folder(data: Path, namespace: str) -> Path:
    """Return the folder of `namespace` under the data folder.

    Its name is a hash: names may differ in case only, and some file systems do not.
    """
    digest = sha256(namespace.encode()).hexdigest()
    return data / "namespaces" / digest[:2] / digest[:32]


def generations(folder: Path) -> list[int]:
    """Return the numbers of the complete generations in `folder`, oldest first; the last one is live."""
    if not folder.is_dir():
        return []
    matches = (_GENERATION.fullmatch(file.name) for file in folder.iterdir())
    return sorted(int(match[1]) for match in matches if match)


def generation_path(folder: Path, generation: int) -> Path:
    """Return the file of one generation."""
    return folder / f"{generation:06}.db"


def remove_database(path: Path) -> None:
    """Remove a SQLite file with its WAL, whether they are there or not."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def write_once(path: Path, content: bytes) -> None:
    """Make the file `path` unless it is there: of several processes one makes it, and nobody sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}")
    try:
        new.write_bytes(content)
        with contextlib.suppress(FileExistsError):
            os.link(new, path)
    finally:
        new.unlink(missing_ok=True)
