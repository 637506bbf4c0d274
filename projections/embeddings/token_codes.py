"""Token codes: compress a token vector to 32 bytes, small enough to store one for every token of every turn.

A vector is projected on the first 64 principal components of token vectors. A file has 15 levels of each dimension, two
in a byte; memory has a byte for each. Late interaction over codes ranks almost as over vectors (`RETRIEVAL.md`).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.projections.embeddings.matrix_product import block_rows, product

Vector = NDArray[np.float32]
StoredCodes = NDArray[np.uint8]

#: Dimensions of a code, a byte each in memory.
CODE_DIMENSIONS = 64
#: Bytes of a stored code.
CODE_BYTES = CODE_DIMENSIONS // 2
#: Codes in memory, over all namespaces: 9 MB, those of 3,200 turns of 40 tokens or of 250 long answers.
CACHED_CODES_MAX = 1 << 17
#: The bits of a level: levels are 1 to 15, and the one in the middle stands for zero.
_LEVEL_BITS, _LEVEL_OF_ZERO = 0xF, 8


class TokenCodes(NamedTuple):
    """The codes of some tokens, as they are compared."""

    #: The levels less that of zero, shape (tokens, CODE_DIMENSIONS).
    levels: NDArray[np.int8]
    #: 1 / length of the levels of each token, shape (tokens,).
    scales: Vector


def principal_directions(vectors: Vector) -> Vector:
    """Return the first `CODE_DIMENSIONS` principal directions of `vectors`, shape (dimensions, at most 64)."""
    _, directions = np.linalg.eigh((vectors.T @ vectors).astype(np.float64))
    return np.ascontiguousarray(directions[:, ::-1][:, :CODE_DIMENSIONS], np.float32)


def reduced(tokens: Vector, basis: Vector) -> Vector:
    """Return `tokens` projected on the directions of `basis` and normalised, shape (tokens, at most 64)."""
    projected = product(tokens, basis)
    return projected / np.maximum(np.linalg.norm(projected, axis=1, keepdims=True), 1e-12)


def encoded(tokens: Vector, basis: Vector) -> StoredCodes:
    """Return the codes of token vectors as they are stored, shape (tokens, CODE_BYTES).

    The levels reach to the greatest number of each vector.
    """
    vectors = reduced(tokens, basis)
    scales = (_LEVEL_OF_ZERO - 1) / np.maximum(np.abs(vectors).max(axis=1, keepdims=True), 1e-12)
    levels = np.full((len(tokens), CODE_DIMENSIONS), _LEVEL_OF_ZERO, np.uint8)
    levels[:, : vectors.shape[1]] = np.round(vectors * scales + _LEVEL_OF_ZERO)
    return levels[:, :CODE_BYTES] | (levels[:, CODE_BYTES:] << np.uint8(4))


def decoded(stored: StoredCodes) -> TokenCodes:
    """Return stored codes as they are compared."""
    levels = np.empty((len(stored), CODE_DIMENSIONS), np.int8)
    # In place: a float32 copy takes more time for its new memory than for the numbers.
    unsigned = levels.view(np.uint8)
    np.bitwise_and(stored, _LEVEL_BITS, out=unsigned[:, :CODE_BYTES])
    np.right_shift(stored, 4, out=unsigned[:, CODE_BYTES:])
    levels -= _LEVEL_OF_ZERO
    # A token without a direction has no levels but that of zero. The greatest sum is 64 × 64.
    squares = np.maximum(np.einsum("ij,ij->i", levels, levels, dtype=np.int16), 1)
    return TokenCodes(levels, (1 / np.sqrt(squares)).astype(np.float32))


def late_interaction(query: Vector, weights: Vector, codes: TokenCodes, starts: NDArray[np.int64]) -> Vector:
    """Return the score of each text, shape (texts,): the weighted mean over the query's tokens of the best cosine.

    Parameters:
        query: reduced token vectors of the query, shape (query tokens, at most 64).
        weights: weight of each query token, shape (query tokens,); they add up to 1.
        codes: those of the tokens of all texts, one text after the other.
        starts: the first token of each text in `codes`, shape (texts,); no text is empty.

    Source: Khattab and Zaharia 2020 (ColBERT); weighting by IDF as in `RETRIEVAL.md`.
    """
    weighted = np.flatnonzero(weights)
    transposed = np.ascontiguousarray(query[weighted].T)
    levels = codes.levels
    cosines = np.empty((len(levels), len(weighted)), np.float32)
    # The float32 copy of a block stays in the processor's cache: more than twice as fast as one multiplication.
    rows = block_rows(*transposed.shape)
    for start in range(0, len(levels), rows):
        block = slice(start, start + rows)
        np.matmul(levels[block, : len(transposed)].astype(np.float32), transposed, out=cosines[block])
    cosines *= codes.scales[:, np.newaxis]
    return np.maximum.reduceat(cosines, starts, axis=0) @ weights[weighted]


class CodedPassages(NamedTuple):
    """The codes of some passages, one passage after the other."""

    #: Keys of the passages, shape (passages,).
    keys: NDArray[np.int64]
    codes: TokenCodes
    #: The first token of each passage in `codes`, shape (passages,).
    starts: NDArray[np.int64]

    @property
    def ends(self) -> NDArray[np.int64]:
        """Return the token after the last one of each passage in `codes`, shape (passages,)."""
        return np.append(self.starts[1:], len(self.codes.scales))[: len(self.starts)]


def coded_passages(codes_by_key: Mapping[int, bytes]) -> CodedPassages:
    """Return stored codes in one array; passages without codes are left out."""
    coded = {key: codes for key, codes in codes_by_key.items() if codes}
    ends = np.cumsum(np.fromiter(map(len, coded.values()), np.int64, len(coded))) // CODE_BYTES
    return CodedPassages(
        np.fromiter(coded, np.int64, len(coded)),
        decoded(np.frombuffer(b"".join(coded.values()), np.uint8).reshape(-1, CODE_BYTES)),
        np.concatenate([np.zeros(1, np.int64), ends[:-1]])[: len(coded)],
    )


class TokenCodeCache:
    """The codes of the passages read last, in arrays that are overwritten from the start when it is full.

    Safe to use from many threads. Reading codes from the file is the slowest step of a retrieval after the embedding
    model; an object for each passage would take longer than the file.

    Parameters:
        codes_max: codes in the array.
    """

    def __init__(self, codes_max: int = CACHED_CODES_MAX) -> None:
        self._codes_max = codes_max
        # Pages that nothing was written to take no memory.
        self._levels = np.empty((codes_max, CODE_DIMENSIONS), np.int8)
        self._scales = np.empty(codes_max, np.float32)
        #: Codes written since the start; the last `codes_max` of them are in the array.
        self._written = 0
        self._places = _NO_PLACES
        self._lock = threading.Lock()

    @property
    def size_bytes(self) -> int:
        """Return the memory of the cached codes and of their places."""
        code_bytes = CODE_DIMENSIONS + self._scales.itemsize
        return min(self._written, self._codes_max) * code_bytes + sum(array.nbytes for array in self._places)

    def get(self, generation: int, keys: NDArray[np.int64]) -> CodedPassages:
        """Return the cached codes among those of `keys`.

        Parameters:
            generation: `VectorStore.cache_generation` of the vectors.
            keys: shape (passages,).
        """
        with self._lock:
            positions, cached = self._places.find(_place_ids(generation, keys))
            first, lengths = self._places.first[positions], self._places.lengths[positions]
            starts = np.cumsum(lengths) - lengths
            rows = (np.repeat(first - starts, lengths) + np.arange(int(lengths.sum()))) % self._codes_max
            codes = TokenCodes(np.take(self._levels, rows, axis=0), np.take(self._scales, rows))
            return CodedPassages(keys[cached], codes, starts)

    def put(self, generation: int, passages: CodedPassages) -> None:
        """Add passages, as many as the array has room for; those written first are overwritten."""
        ids, lengths = _place_ids(generation, passages.keys), passages.ends - passages.starts
        with self._lock:
            _, cached = self._places.find(ids)
            added = ~cached & (lengths <= self._codes_max)
            added &= np.cumsum(np.where(added, lengths, 0)) <= self._codes_max
            levels, scales = passages.codes
            if not added.all():
                rows = np.repeat(added, lengths)
                levels, scales = levels[rows], scales[rows]
            first = self._written + np.cumsum(lengths[added]) - lengths[added]
            start = self._written % self._codes_max
            _write_around(self._levels, start, levels)
            _write_around(self._scales, start, scales)
            self._written += len(scales)
            self._places = self._places.after(self._written - self._codes_max, ids[added], first, lengths[added])

    def clear(self) -> None:
        """Drop all codes."""
        with self._lock:
            self._places = _NO_PLACES
            self._levels, self._scales = np.empty_like(self._levels), np.empty_like(self._scales)
            self._written = 0


def _write_around(array: NDArray[Any], start: int, new: NDArray[Any]) -> None:
    """Write rows from `start` on, and from the start of the array at its end."""
    until_end = len(array) - start
    array[start : start + len(new)] = new[:until_end]
    array[: max(0, len(new) - until_end)] = new[until_end:]


#: The bits of a passage's key in a place id: the keys of a file are the numbers of its rows.
_KEY_BITS = 40


def _place_ids(generation: int, keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return one number for each pair of a generation and a key."""
    return keys | (generation << _KEY_BITS)


class _Places(NamedTuple):
    """Where the cached passages are, in the order of their ids. Arrays have the shape (passages,)."""

    #: Ascending (`_place_ids`).
    ids: NDArray[np.int64]
    #: The number of codes that had been written before each passage.
    first: NDArray[np.int64]
    #: The number of its codes.
    lengths: NDArray[np.int64]

    def find(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the positions of those of `ids` that have a place, and the mask of them."""
        if not len(self.ids):
            return np.empty(0, np.int64), np.zeros(len(ids), np.bool_)
        positions = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        is_present = self.ids[positions] == ids
        return positions[is_present], is_present

    def after(
        self, oldest: int, ids: NDArray[np.int64], first: NDArray[np.int64], lengths: NDArray[np.int64]
    ) -> _Places:
        """Return the places from the code `oldest` on, and those of further passages."""
        kept = self.first >= oldest
        all_ids = np.concatenate([self.ids[kept], ids])
        order = np.argsort(all_ids)
        all_first, all_lengths = (
            np.concatenate([self.first[kept], first]),
            np.concatenate([self.lengths[kept], lengths]),
        )
        return _Places(all_ids[order], all_first[order], all_lengths[order])


_NO_PLACES = _Places(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))
