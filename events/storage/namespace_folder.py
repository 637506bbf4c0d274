"""Namespace folders: returns the folder of each namespace below a root, named by a hash."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from pathlib import Path

#: Names that are cached: a retrieval needs the folder of its namespace a dozen times.
_NAMES_MAX = 4_096


def hashed_folder(root: Path, namespace: str) -> Path:
    """Return the folder of `namespace` below `root`.

    Its name is a hash, since namespaces may differ in case only, which some file systems ignore.
    """
    return named_folder(root, folder_name(namespace))


@lru_cache(maxsize=_NAMES_MAX)
def folder_name(namespace: str) -> str:
    """Return the name of the folder of `namespace`; logs name a namespace by its first twelve digits."""
    return sha256(namespace.encode()).hexdigest()[:32]


def named_folder(root: Path, name: str) -> Path:
    """Return the folder below `root` with the hash `name`; its parent is named by the first two digits."""
    return root / name[:2] / name
