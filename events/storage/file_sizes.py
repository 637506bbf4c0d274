"""File sizes: the bytes of files that another thread may remove meanwhile."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def size_bytes(files: Iterable[Path]) -> int:
    """Return the bytes of all `files`; one that is gone has none."""
    return sum(_size_bytes(file) for file in files)


def _size_bytes(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0
