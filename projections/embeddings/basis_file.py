"""Basis file: stores the basis of a model's token codes with its digest."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import cast

import numpy as np

from recollect.events.errors import StorageError
from recollect.events.storage.atomic_file import write_once
from recollect.events.storage.database import storage_errors
from recollect.projections.embeddings.token_codes import Vector

_DIGEST_BYTES = sha256().digest_size


def stored_basis(path: Path, compute: Callable[[], Vector]) -> Vector:
    """Return the basis in the file `path`; a missing or damaged file is written first.

    A basis depends on the model alone. Two computations differ in the last bits, as much as a code of before does then.

    Raises:
        StorageError: the file cannot be read or written.
    """
    basis = _read(path)
    if basis is None:
        content = BytesIO()
        np.save(content, compute())
        array = content.getvalue()
        with storage_errors(path):
            path.unlink(missing_ok=True)
            write_once(path, sha256(array).digest() + array)
        basis = _read(path)
        if basis is None:
            raise StorageError(f"{path} does not read back as it was written; check the disk")
    return basis


def _read(path: Path) -> Vector | None:
    """Return the basis in a file; None when the file is missing or damaged."""
    with storage_errors(path):
        content = path.read_bytes() if path.exists() else b""
    digest, array = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return cast(Vector, np.load(BytesIO(array))) if sha256(array).digest() == digest else None
