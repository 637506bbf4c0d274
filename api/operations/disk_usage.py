"""Disk usage: the free space of the data folder, and the bytes of its files by kind."""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path

#: The kinds of files directly in the data folder, by the beginning of their names; others are `other`.
_TOP_KINDS = {"log.db": "log", "keys.db": "keys", "jobs.db": "jobs"}
#: The kinds of files in folders of the data folder.
_FOLDER_KINDS = {"archive": "archive", "traces": "traces", "audit": "audit", "namespaces": "read_models"}
KINDS = ("log", "archive", "keys", "jobs", "read_models", "vectors", "traces", "audit", "other")
#: Files counted between two looks at the clock: 2 ms.
_STEP_FILES = 100


def free_bytes(data: Path) -> int | None:
    """Return the free bytes of the file system of the data folder; None when it cannot be asked."""
    try:
        return shutil.disk_usage(data).free
    except OSError:
        return None


class DatabaseBytes:
    """The bytes of the files of a data folder by kind, counted a little at a time: a large folder has a million files.

    Parameters:
        rest_seconds: seconds between two counts.
    """

    def __init__(self, data: Path, *, rest_seconds: float = 60.0) -> None:
        self._data = data
        self._rest_seconds = rest_seconds
        #: The last complete count.
        self.by_kind: dict[str, int] = {}
        self._walk: Generator[None] | None = None
        self._ended = -rest_seconds

    def advance(self, seconds: float) -> None:
        """Count for at most `seconds`, unless the last count is recent."""
        if self._walk is None:
            if time.monotonic() - self._ended < self._rest_seconds:
                return
            self._walk = self._count()
        deadline = time.monotonic() + seconds
        for _ in self._walk:
            if time.monotonic() > deadline:
                return
        self._walk, self._ended = None, time.monotonic()

    def _count(self) -> Generator[None]:
        """Count all files, with a pause after each `_STEP_FILES`; then set `by_kind`."""
        counts = Counter[str](dict.fromkeys(KINDS, 0))
        for number, (kind, size) in enumerate(_files(self._data), start=1):
            counts[kind] += size
            if number % _STEP_FILES == 0:
                yield
        self.by_kind = dict(counts)


def _files(data: Path) -> Iterator[tuple[str, int]]:
    """Yield kind and size of each file below the data folder."""
    for folder, _, names in os.walk(data):
        parts = Path(folder).relative_to(data).parts
        for name in names:
            try:
                size = (Path(folder) / name).stat().st_size
            except OSError:
                # It was removed meanwhile.
                continue
            yield _kind(parts, name), size


def _kind(folders: tuple[str, ...], name: str) -> str:
    if not folders:
        return next((kind for start, kind in _TOP_KINDS.items() if name.startswith(start)), "other")
    if folders[0] == "namespaces" and name.startswith("vectors.db"):
        return "vectors"
    return _FOLDER_KINDS.get(folders[0], "other")
