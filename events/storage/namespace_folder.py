"""Namespace folders: returns the folder of each namespace below a root, named by a hash."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path


def hashed_folder(root: Path, namespace: str) -> Path:
    """Return the folder of `namespace` below `root`.

    Its name is a hash, since namespaces may differ in case only, which some file systems ignore.
    """
    return named_folder(root, folder_name(namespace))


def folder_name(namespace: str) -> str:
    """Return the name of the folder of `namespace`; logs name a namespace by its first twelve digits."""
    return sha256(namespace.encode()).hexdigest()[:32]


def named_folder(root: Path, name: str) -> Path:
    """Return the folder below `root` with the hash `name`; its parent is named by the first two digits."""
    return root / name[:2] / name
