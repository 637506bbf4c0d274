"""The vectors of one namespace in memory: exact search, one matrix product."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from recollect.projections.embedder import Vector
from recollect.projections.passages import PARTS, Part

#: Rows that a new matrix has room for.
_ROWS_FIRST = 256


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

        One episode may have several.
        """
        self._parts[part].add(np.asarray(versions, np.int64), vectors)

    def search(
        self,
        query: Vector,
        part: Part,
        k: int,
        *,
        until: int | None = None,
        among: NDArray[np.int64] | None = None,
    ) -> list[tuple[int, float]]:
        """Return up to `k` episodes as (version, cosine), best first; equal ones by version.

        An episode counts by its best chunk.

        Parameters:
            query: a normalised vector, shape (dimensions,).
            until: the last version that may be returned; the newest when None.
            among: versions that may be returned, in rising order; all when None.
        """
        versions, vectors = self._parts[part].filled()
        if until is not None:
            # They are in the order of versions, so the first rows are those up to it, without a copy.
            end = int(np.searchsorted(versions, until, side="right"))
            versions, vectors = versions[:end], vectors[:end]
        if among is not None:
            chosen = np.isin(versions, among)
            versions, vectors = versions[chosen], vectors[chosen]
        if not len(versions):
            return []
        scores = vectors @ query
        best: dict[int, float] = {}
        # Chunks of one episode share a place, so look at more rows than k until k episodes are found.
        wanted = k
        while True:
            top = _top(scores, wanted)
            best.clear()
            for row in top:
                best.setdefault(int(versions[row]), float(scores[row]))
            if len(best) >= k or wanted >= len(scores):
                break
            wanted *= 2
        return sorted(best.items(), key=lambda item: (-item[1], item[0]))[:k]


class _Rows:
    """A matrix that doubles when it is full."""

    def __init__(self, dimensions: int) -> None:
        self._versions = np.empty(_ROWS_FIRST, np.int64)
        self._vectors = np.empty((_ROWS_FIRST, dimensions), np.float32)
        self._count = 0

    @property
    def size_bytes(self) -> int:
        return self._versions.nbytes + self._vectors.nbytes

    def add(self, versions: NDArray[np.int64], vectors: Vector) -> None:
        end = self._count + len(versions)
        if end > len(self._versions):
            room = max(end, 2 * len(self._versions))
            grown_versions = np.empty(room, np.int64)
            grown_vectors = np.empty((room, self._vectors.shape[1]), np.float32)
            grown_versions[: self._count] = self._versions[: self._count]
            grown_vectors[: self._count] = self._vectors[: self._count]
            self._versions, self._vectors = grown_versions, grown_vectors
        self._versions[self._count : end] = versions
        self._vectors[self._count : end] = vectors
        # Last, so that a search at the same time sees rows that are there as a whole.
        self._count = end

    def filled(self) -> tuple[NDArray[np.int64], Vector]:
        count = self._count
        return self._versions[:count], self._vectors[:count]


def _top(scores: Vector, k: int) -> NDArray[np.int64]:
    """Return the rows of the `k` best scores, best first; with equal scores at the edge, all of them."""
    if k >= len(scores):
        return np.argsort(-scores, kind="stable")
    edge = np.partition(scores, len(scores) - k)[len(scores) - k]
    rows = np.flatnonzero(scores >= edge)
    return rows[np.argsort(-scores[rows], kind="stable")]
