"""Token vectors as codes of 64 bytes: small enough to keep one for every word that was ever said.

A vector is turned to the directions in which token vectors differ most (principal components), cut to the first 64 and
rounded to int8. Late interaction over codes ranks almost as over whole vectors (`RETRIEVAL.md`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from recollect.events.storage.bounded_cache import BoundedCache

Vector = NDArray[np.float32]
TokenCodes = NDArray[np.int8]

#: Numbers in a code.
CODE_DIMENSIONS = 64
#: Codes kept in memory, over all namespaces: those of 30,000 turns of 35 pieces.
_CACHED_BYTES_MAX = 64 << 20
_ROWS_AT_ONCE = 2_048
#: A code's numbers are those of a vector of this length.
_SCALE = 127.0


def principal_directions(vectors: Vector) -> Vector:
    """Return the `CODE_DIMENSIONS` directions with most of `vectors` in them, shape (dimensions, at most those)."""
    _, turned = np.linalg.eigh((vectors.T @ vectors).astype(np.float64))
    return np.ascontiguousarray(turned[:, ::-1][:, :CODE_DIMENSIONS], np.float32)


def reduced(tokens: Vector, basis: Vector) -> Vector:
    """Return `tokens` in the directions of `basis`, at length 1."""
    turned = tokens @ basis
    return turned / np.maximum(np.linalg.norm(turned, axis=1, keepdims=True), 1e-12)


def encoded(tokens: Vector, basis: Vector) -> TokenCodes:
    """Return the codes of token vectors, shape (pieces, at most `CODE_DIMENSIONS`)."""
    return np.round(reduced(tokens, basis) * _SCALE).astype(np.int8)


def late_interaction(query: Vector, weights: Vector, codes: TokenCodes, starts: NDArray[np.int64]) -> Vector:
    """Return how well each text answers the query, piece by piece: the weighted mean of its best cosines.

    Parameters:
        query: reduced token vectors of the query, shape (pieces, CODE_DIMENSIONS).
        weights: what each piece counts; they add up to 1.
        codes: the pieces of all texts, one text after the other.
        starts: the row of `codes` that each text begins at; none is empty.

    Source: Khattab and Zaharia 2020 (ColBERT); weighting by rarity as in `RETRIEVAL.md`.
    """
    counted = np.flatnonzero(weights)
    turned = np.ascontiguousarray((query[counted] / _SCALE).T)
    cosines = np.empty((len(codes), len(counted)), np.float32)
    # A part that stays in the processor's cache after the other: more than twice as fast as all at once.
    for start in range(0, len(codes), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        np.matmul(codes[part].astype(np.float32), turned, out=cosines[part])
    return np.maximum.reduceat(cosines, starts, axis=0) @ weights[counted]


class TokenCodeCache:
    """The stored codes of turns, of each chunk, that were looked at last. Safe to use from many threads.

    Reading them from the file takes longer than all else in a retrieval but the model.
    """

    def __init__(self) -> None:
        self._kept: BoundedCache[tuple[int, int], Sequence[bytes]] = BoundedCache(_CACHED_BYTES_MAX, _size)

    def of(self, era: int, versions: Iterable[int]) -> dict[int, Sequence[bytes]]:
        """Return what is here of `versions`, whose vectors are of `era`."""
        found = self._kept.get_all((era, version) for version in versions)
        return {version: codes for (_, version), codes in found.items()}

    def keep(self, era: int, codes: Mapping[int, Sequence[bytes]]) -> None:
        """Remember `codes`, by version, and forget those that were not asked for longest."""
        self._kept.put_all({(era, version): chunks for version, chunks in codes.items()})


def _size(chunks: Sequence[bytes]) -> int:
    """Return about how many bytes of memory the codes of one turn take."""
    return 300 + sum(map(len, chunks))
