"""Stored vectors: pack a vector as int8 numbers and their scale, a quarter of float32.

What is restored packs to the same bytes again, and the index rounds it to the same numbers, so a vector is the same
when it was embedded just now, read from a file, or taken from another machine.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from recollect.projections.embeddings.token_codes import Vector

_INT8_MAX = 127
#: A scale of 11 bits makes 127 times the scale exact in float32.
_SCALE = np.dtype("<f2")
#: Bytes of a packed vector behind its numbers, one a dimension.
SCALE_BYTES = _SCALE.itemsize
#: The least scale: of a vector of zeros, too.
_SCALE_MIN = 1e-6


def packed(vector: Vector) -> bytes:
    """Return a vector as int8 numbers with their scale behind them."""
    numbers, scales = _rounded(vector[np.newaxis])
    return numbers.tobytes() + scales.tobytes()


def restored(content: bytes) -> Vector:
    """Return a packed vector as float32, shape (dimensions,)."""
    return restored_matrix([content], len(content) - SCALE_BYTES)[0]


def restored_matrix(contents: Iterable[bytes], dimensions: int) -> Vector:
    """Return packed vectors as float32, shape (vectors, dimensions)."""
    rows = np.frombuffer(b"".join(contents), np.uint8).reshape(-1, dimensions + SCALE_BYTES)
    numbers, scales = rows[:, :dimensions].view(np.int8), np.ascontiguousarray(rows[:, dimensions:]).view(_SCALE)
    return numbers.astype(np.float32) * scales.astype(np.float32)


def as_stored(vector: Vector) -> Vector:
    """Return a vector as it is restored from its packed bytes."""
    return restored(packed(vector))


def _rounded(vectors: Vector) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
    """Return vectors rounded to int8, and the scale of each row, shape (vectors, 1): vector = row * scale."""
    greatest: Vector = np.abs(vectors).max(axis=1, keepdims=True)
    scales: NDArray[np.float16] = np.maximum(greatest / _INT8_MAX, _SCALE_MIN).astype(_SCALE)
    numbers: Vector = np.round(vectors / scales.astype(np.float32))
    return np.clip(numbers, -_INT8_MAX, _INT8_MAX).astype(np.int8), scales
