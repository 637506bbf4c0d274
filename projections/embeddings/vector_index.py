"""Vector index: holds the vectors of one namespace in memory as int8 and searches them exhaustively.

The memory is private, or that of a file which the system can drop and read again (`vector_file.py`).

int8 takes a quarter of the memory of float32. Rounding moves a cosine by about 0.002, which lost no recall
(`PERFORMANCE.md`); the float32 vectors stay on disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numkong
import numpy as np
from numpy.typing import NDArray

from recollect.projections.embeddings.token_codes import Vector

#: Rows of a new matrix, and the room behind a full one as a share of its rows. Unused pages of it take no memory.
_INITIAL_ROWS = 256
_ROOM_SHARE = 0.25
_INT8_MAX = 127.0


class Cosines(NamedTuple):
    """The cosine of each episode to a query: that of its best chunk."""

    #: Versions of the episodes, ascending, shape (episodes,).
    versions: NDArray[np.int64]
    #: Cosines, shape (episodes,).
    values: Vector


class VectorArrays(NamedTuple):
    """Vectors as int8 rows, with their episodes."""

    #: Shape (rows, dimensions).
    codes: NDArray[np.int8]
    #: Divisor of each row: its vector is codes * scale.
    scales: Vector
    #: Key of each row's vector in `vectors.db`.
    keys: NDArray[np.int64]
    #: Version of each episode, ascending.
    versions: NDArray[np.int64]
    #: First row of each episode.
    starts: NDArray[np.int64]


class VectorIndex:
    """The vectors of one namespace as int8 rows. One thread adds while any number search.

    Parameters:
        dimensions: the number of dimensions of a vector.
        mapped: the arrays of a vector file, which stay as they are; vectors are added to an index after them.
    """

    def __init__(self, dimensions: int, mapped: VectorArrays | None = None) -> None:
        self.dimensions = dimensions
        self._codes, self._scales, self._keys, self._versions, self._starts = mapped or _empty(dimensions)
        #: Filled (rows, episodes), replaced in one assignment, so that a concurrent search sees complete episodes only.
        self._filled = (len(mapped.keys), len(mapped.versions)) if mapped else (0, 0)
        self._is_mapped = mapped is not None
        #: Vectors of later episodes: those after mapped ones, then those embedded out of turn; None: there are none.
        self.ahead = VectorIndex(dimensions) if mapped else None

    @property
    def size_bytes(self) -> int:
        """Return the private memory of the arrays, with the room for further vectors; mapped ones take none."""
        later = self.ahead.size_bytes if self.ahead else 0
        arrays = () if self._is_mapped else (self._codes, self._scales, self._keys, self._versions, self._starts)
        return later + sum(array.nbytes for array in arrays)

    @property
    def tail(self) -> VectorIndex:
        """Return the index that vectors are added to: this one, or that after the mapped vectors."""
        return self.ahead if self._is_mapped and self.ahead is not None else self

    @property
    def rows(self) -> int:
        """Return the number of vectors, without those embedded out of turn."""
        return self._filled[0] + (self.tail.rows if self._is_mapped else 0)

    def arrays(self) -> list[VectorArrays]:
        """Return the arrays without room, those of the mapped vectors first, without vectors embedded out of turn."""
        rows, count = self._filled
        own = VectorArrays(
            self._codes[:rows], self._scales[:rows], self._keys[:rows], self._versions[:count], self._starts[:count]
        )
        return [own, *self.tail.arrays()] if self._is_mapped else [own]

    def add(self, episodes: Sequence[int], vectors: Vector, keys: Sequence[int] | None = None) -> None:
        """Add the vectors of episodes.

        Parameters:
            episodes: the version of the episode of each vector, ascending, after all versions added before; an episode
                may repeat.
            vectors: normalised, shape (len(episodes), dimensions).
            keys: the key of each vector in its file; None: it has no file.
        """
        if self._is_mapped:
            self.tail.add(episodes, vectors, keys)
            return
        versions = np.asarray(episodes, np.int64)
        if not len(versions):
            return
        rows, count = self._filled
        starts = np.flatnonzero(np.diff(versions, prepend=versions[0] - 1))
        rows_end, count_end = rows + len(versions), count + len(starts)
        self._codes = _with_room(self._codes, rows, rows_end)
        self._scales = _with_room(self._scales, rows, rows_end)
        self._keys = _with_room(self._keys, rows, rows_end)
        self._versions = _with_room(self._versions, count, count_end)
        self._starts = _with_room(self._starts, count, count_end)
        self._keys[rows:rows_end] = 0 if keys is None else keys
        self._codes[rows:rows_end], self._scales[rows:rows_end] = rounded(vectors)
        self._versions[count:count_end] = versions[starts]
        self._starts[count:count_end] = rows + starts
        self._filled = (rows_end, count_end)

    def reserve(self, vectors: int) -> None:
        """Make room for so many more vectors."""
        if self._is_mapped:
            self.tail.reserve(vectors)
            return
        rows, count = self._filled
        self._codes = _with_room(self._codes, rows, rows + vectors)
        self._scales = _with_room(self._scales, rows, rows + vectors)
        self._keys = _with_room(self._keys, rows, rows + vectors)
        self._versions = _with_room(self._versions, count, count + vectors)
        self._starts = _with_room(self._starts, count, count + vectors)

    def nearest_keys(
        self, versions: Sequence[int], query: Vector, *, limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the versions and keys of the `limit` vectors nearest to a query of each of these episodes, in order.

        Parameters:
            versions: ascending; an episode without a vector is left out.
            query: normalised, shape (dimensions,).
        """
        rows, count = self._filled
        wanted = np.asarray(versions, np.int64)
        positions = np.searchsorted(self._versions[:count], wanted)
        positions = positions[positions < count]
        positions = positions[self._versions[positions] == wanted[: len(positions)]]
        starts = self._starts[positions]
        ends = np.where(positions + 1 < count, self._starts[np.minimum(positions + 1, count - 1)], rows)
        lengths = ends - starts
        first = np.cumsum(lengths) - lengths
        chosen = np.repeat(starts - first, lengths) + np.arange(int(lengths.sum()))
        of_keys = np.repeat(self._versions[positions], lengths)
        if (lengths > limit).any():
            nearest = np.lexsort((-self._products(query, chosen), of_keys))
            kept = np.sort(nearest[np.arange(len(nearest)) - np.repeat(first, lengths) < limit])
            of_keys, chosen = of_keys[kept], chosen[kept]
        keys = self._keys[chosen]
        ahead, last = self.ahead, self._versions[count - 1] if count else 0
        if ahead is None or not len(wanted) or wanted[-1] <= last:
            return of_keys, keys
        later, later_keys = ahead.nearest_keys(wanted[wanted > last].tolist(), query, limit=limit)
        return np.concatenate([of_keys, later]), np.concatenate([keys, later_keys])

    def cosines(self, query: Vector, *, until: int | None = None) -> Cosines:
        """Return the cosine of every episode to a query.

        Parameters:
            query: normalised, shape (dimensions,).
            until: the last version to search; None searches all.
        """
        ahead, cosines = self.ahead, self._cosines(query, until)
        if ahead is None:
            return cosines
        later = ahead.cosines(query, until=until)
        # While this index is extended, it may already have some of them.
        new = later.versions > (cosines.versions[-1] if len(cosines.versions) else 0)
        if not new.any():
            return cosines
        return Cosines(
            np.concatenate([cosines.versions, later.versions[new]]), np.concatenate([cosines.values, later.values[new]])
        )

    def _cosines(self, query: Vector, until: int | None) -> Cosines:
        rows, episodes = self._filled
        versions, starts = self._versions[:episodes], self._starts[:episodes]
        if until is not None and episodes and versions[-1] > until:
            episodes = int(np.searchsorted(versions, until, side="right"))
            rows = int(starts[episodes])
            versions, starts = versions[:episodes], starts[:episodes]
        if not rows:
            return Cosines(np.empty(0, np.int64), np.empty(0, np.float32))
        values = self._products(query, slice(rows))
        return Cosines(versions, np.maximum.reduceat(values, starts) if episodes < rows else values)

    def _products(self, query: Vector, rows: slice | NDArray[np.int64]) -> Vector:
        """Return the cosines of some rows to a query, shape (rows,)."""
        code, scale = rounded(query[np.newaxis])
        products: Any = numkong.cdist(code, self._codes[rows], "dot")
        return np.asarray(products, np.float32)[0] * (self._scales[rows] * scale[0])


def _empty(dimensions: int) -> VectorArrays:
    """Return arrays with the initial room."""
    numbers = np.empty((3, _INITIAL_ROWS), np.int64)
    codes, scales = np.empty((_INITIAL_ROWS, dimensions), np.int8), np.empty(_INITIAL_ROWS, np.float32)
    return VectorArrays(codes, scales, *numbers)


def rounded(vectors: Vector) -> tuple[NDArray[np.int8], Vector]:
    """Return `vectors` rounded to int8, and the scale of each row: vector = row * scale."""
    scales: Vector = (np.maximum(np.abs(vectors).max(axis=1), 1e-12) / _INT8_MAX).astype(np.float32)
    return np.round(vectors / scales[:, np.newaxis]).astype(np.int8), scales


def _with_room(array: NDArray[Any], filled: int, rows: int) -> NDArray[Any]:
    """Return `array` when it has room for `rows` rows, else a longer copy of its first `filled` rows."""
    if rows <= len(array):
        return array
    grown = np.empty((rows + int(rows * _ROOM_SHARE), *array.shape[1:]), array.dtype)
    grown[:filled] = array[:filled]
    return grown
