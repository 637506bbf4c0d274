"""The vectors of one namespace in memory, as int8: every search looks at all of them, at a quarter of the memory.

Rounding moves a cosine by about 0.002, which lost no recall (`PERFORMANCE.md`); the whole vectors stay on disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numkong
import numpy as np
from numpy.typing import NDArray

from recollect.projections.embeddings.passages import PARTS, Part
from recollect.projections.embeddings.token_codes import Vector

#: Rows that a new matrix has room for.
_ROWS_FIRST = 256
_INT8_MAX = 127.0


class Cosines(NamedTuple):
    """How near each episode is to a query, by its best chunk."""

    #: In rising order, each once.
    versions: NDArray[np.int64]
    values: Vector


class VectorIndex:
    """All vectors of one namespace, a growing matrix a part. One thread adds, any number search meanwhile.

    Parameters:
        dimensions: the length of a vector.
    """

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self._parts = {part: _Rows(dimensions) for part in PARTS}

    @property
    def size_bytes(self) -> int:
        """Return the memory that the matrices take."""
        return sum(rows.size_bytes for rows in self._parts.values())

    def add(self, part: Part, versions: Sequence[int], vectors: Vector) -> None:
        """Add normalised `vectors`, shape (n, dimensions), of the episodes `versions`, which never go back.

        One episode may have several, all in one call.
        """
        self._parts[part].add(np.asarray(versions, np.int64), vectors)

    def cosines(self, query: Vector, part: Part, *, until: int | None = None) -> Cosines:
        """Return how near every episode is to a normalised `query`, shape (dimensions,).

        Parameters:
            until: the last version to look at; the newest when None.
        """
        return self._parts[part].cosines(query, until)


class _Rows:
    """Matrices that double when they are full."""

    def __init__(self, dimensions: int) -> None:
        self._codes = np.empty((_ROWS_FIRST, dimensions), np.int8)
        #: What each row was divided by.
        self._scales = np.empty(_ROWS_FIRST, np.float32)
        #: Each episode once, and the row that it begins at.
        self._versions = np.empty(_ROWS_FIRST, np.int64)
        self._starts = np.empty(_ROWS_FIRST, np.int64)
        #: Rows and episodes that are there: replaced together, so that a search sees whole ones.
        self._filled = (0, 0)

    @property
    def size_bytes(self) -> int:
        return self._codes.nbytes + self._scales.nbytes + self._versions.nbytes + self._starts.nbytes

    def add(self, versions: NDArray[np.int64], vectors: Vector) -> None:
        if not len(versions):
            return
        rows, episodes = self._filled
        firsts = np.flatnonzero(np.diff(versions, prepend=versions[0] - 1))
        rows_end, episodes_end = rows + len(versions), episodes + len(firsts)
        self._codes = _with_room(self._codes, rows, rows_end)
        self._scales = _with_room(self._scales, rows, rows_end)
        self._versions = _with_room(self._versions, episodes, episodes_end)
        self._starts = _with_room(self._starts, episodes, episodes_end)
        self._codes[rows:rows_end], self._scales[rows:rows_end] = _rounded(vectors)
        self._versions[episodes:episodes_end] = versions[firsts]
        self._starts[episodes:episodes_end] = rows + firsts
        self._filled = (rows_end, episodes_end)

    def cosines(self, query: Vector, until: int | None) -> Cosines:
        rows, episodes = self._filled
        versions, starts = self._versions[:episodes], self._starts[:episodes]
        if until is not None and episodes and versions[-1] > until:
            episodes = int(np.searchsorted(versions, until, side="right"))
            rows = int(starts[episodes])
            versions, starts = versions[:episodes], starts[:episodes]
        if not rows:
            return Cosines(np.empty(0, np.int64), np.empty(0, np.float32))
        code, scale = _rounded(query[np.newaxis])
        products: Any = numkong.cdist(code, self._codes[:rows], "dot")
        values = np.asarray(products, np.float32)[0] * (self._scales[:rows] * scale[0])
        return Cosines(versions, np.maximum.reduceat(values, starts) if episodes < rows else values)


def _rounded(vectors: Vector) -> tuple[NDArray[np.int8], Vector]:
    """Return `vectors` as int8, and what to multiply each row with to get them back."""
    scales: Vector = (np.maximum(np.abs(vectors).max(axis=1), 1e-12) / _INT8_MAX).astype(np.float32)
    return np.round(vectors / scales[:, np.newaxis]).astype(np.int8), scales


def _with_room(array: NDArray[Any], filled: int, wanted: int) -> NDArray[Any]:
    """Return `array`, or a copy twice as long when `wanted` rows do not fit."""
    if wanted <= len(array):
        return array
    grown = np.empty((max(wanted, 2 * len(array)), *array.shape[1:]), array.dtype)
    grown[:filled] = array[:filled]
    return grown
