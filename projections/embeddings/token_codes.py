"""Token codes: compress a token vector to 64 bytes, small enough to store one for every token of every turn.

A vector is projected on the first 64 principal components of token vectors and rounded to int8. Late interaction over
codes ranks almost as over float32 vectors (`RETRIEVAL.md`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from recollect.events.storage.bounded_cache import BoundedCache

Vector = NDArray[np.float32]
TokenCodes = NDArray[np.int8]

#: Dimensions of a code, a byte each.
CODE_DIMENSIONS = 64
#: Bytes of codes in memory, over all namespaces: those of 3,000 turns of 35 tokens. Those of 250 candidates are read
#: from the file in 2 ms and from memory in half a millisecond.
_CACHED_BYTES_MAX = 8 << 20
#: Rows of codes multiplied at once: their float32 copy, 512 KiB, stays in the processor's cache.
_BLOCK_ROWS = 2_048
#: Length of a code as a vector: int8 holds -127 to 127.
_SCALE = 127.0


def principal_directions(vectors: Vector) -> Vector:
    """Return the first `CODE_DIMENSIONS` principal directions of `vectors`, shape (dimensions, at most 64)."""
    _, directions = np.linalg.eigh((vectors.T @ vectors).astype(np.float64))
    return np.ascontiguousarray(directions[:, ::-1][:, :CODE_DIMENSIONS], np.float32)


def reduced(tokens: Vector, basis: Vector) -> Vector:
    """Return `tokens` projected on the directions of `basis` and normalised, shape (tokens, at most 64)."""
    projected = tokens @ basis
    return projected / np.maximum(np.linalg.norm(projected, axis=1, keepdims=True), 1e-12)


def encoded(tokens: Vector, basis: Vector) -> TokenCodes:
    """Return the codes of token vectors, shape (tokens, at most 64)."""
    return np.round(reduced(tokens, basis) * _SCALE).astype(np.int8)


def late_interaction(query: Vector, weights: Vector, codes: TokenCodes, starts: NDArray[np.int64]) -> Vector:
    """Return the score of each text, shape (texts,): the weighted mean over the query's tokens of the best cosine.

    Parameters:
        query: reduced token vectors of the query, shape (query tokens, CODE_DIMENSIONS).
        weights: weight of each query token, shape (query tokens,); they add up to 1.
        codes: codes of the tokens of all texts, one text after the other, shape (tokens, CODE_DIMENSIONS).
        starts: the first row of each text in `codes`, shape (texts,); no text is empty.

    Source: Khattab and Zaharia 2020 (ColBERT); weighting by IDF as in `RETRIEVAL.md`.
    """
    weighted = np.flatnonzero(weights)
    transposed = np.ascontiguousarray((query[weighted] / _SCALE).T)
    cosines = np.empty((len(codes), len(weighted)), np.float32)
    # In blocks that fit the processor's cache: more than twice as fast as one multiplication.
    for start in range(0, len(codes), _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        np.matmul(codes[block].astype(np.float32), transposed, out=cosines[block])
    return np.maximum.reduceat(cosines, starts, axis=0) @ weights[weighted]


class TokenCodeCache:
    """The codes of the turns used last, chunk by chunk. Safe to use from many threads.

    Reading codes from the file is the slowest step of a retrieval after the embedding model.
    """

    def __init__(self) -> None:
        self._codes: BoundedCache[tuple[int, int], Sequence[bytes]] = BoundedCache(_CACHED_BYTES_MAX, _size_bytes)

    @property
    def size_bytes(self) -> int:
        """Return the memory of the cached codes."""
        return self._codes.size

    def get(self, generation: int, versions: Iterable[int]) -> dict[int, Sequence[bytes]]:
        """Return the cached codes of `versions`, by version.

        Parameters:
            generation: `VectorStore.cache_generation` of the vectors.
        """
        cached = self._codes.get_all((generation, version) for version in versions)
        return {version: codes for (_, version), codes in cached.items()}

    def put(self, generation: int, codes: Mapping[int, Sequence[bytes]]) -> None:
        """Add `codes`, by version; the least recently used ones are evicted."""
        self._codes.put_all({(generation, version): chunks for version, chunks in codes.items()})

    def clear(self) -> None:
        """Drop all codes."""
        self._codes.clear()


def _size_bytes(chunks: Sequence[bytes]) -> int:
    """Return the approximate memory of one turn's codes: 300 bytes of Python objects and the codes."""
    return 300 + sum(map(len, chunks))
