from __future__ import annotations

import numpy as np
import pytest

from recollect.projections.embeddings.matrix_product import product
from recollect.projections.embeddings.token_codes import (
    CODE_BYTES,
    CODE_DIMENSIONS,
    CodedPassages,
    TokenCodeCache,
    TokenCodes,
    coded_passages,
    decoded,
    encoded,
    late_interaction,
    reduced,
)


def passages(tokens: dict[int, int]) -> CodedPassages:
    """Return passages by their keys, with as many codes, whose numbers are the key."""
    lengths = np.array([*tokens.values()])
    numbers = np.repeat(np.array([*tokens], np.int8), lengths)
    levels = np.broadcast_to(numbers[:, np.newaxis], (len(numbers), CODE_DIMENSIONS))
    codes = TokenCodes(levels, numbers.astype(np.float32))
    return CodedPassages(np.array([*tokens], np.int64), codes, np.cumsum(lengths) - lengths)


def cached(cache: TokenCodeCache, keys: list[int], generation: int = 1) -> dict[int, list[int]]:
    found = cache.get(generation, np.array(keys, np.int64))
    spans = zip(found.keys.tolist(), found.starts.tolist(), found.ends.tolist(), strict=True)
    assert found.codes.levels[:, 0].tolist() == found.codes.scales.tolist()
    return {key: found.codes.levels[start:end, 0].tolist() for key, start, end in spans}


def test_passages_are_found_by_generation_and_key() -> None:
    cache = TokenCodeCache(100)
    cache.put(1, passages({1: 3, 2: 2}))
    assert cached(cache, [2, 1, 3, 9]) == {2: [2, 2], 1: [1, 1, 1]}
    assert cached(cache, [1], generation=2) == {}
    cache.clear()
    assert cached(cache, [1]) == {}
    assert cache.size_bytes == 0


def test_the_passages_written_first_are_overwritten_and_no_others_are_damaged() -> None:
    cache = TokenCodeCache(10)
    for key in range(1, 60):
        cache.put(1, passages({key: 1 + key % 4}))
        found = cached(cache, list(range(1, 60)))
        assert found[key] == [key] * (1 + key % 4)
        assert all(codes == [other] * (1 + other % 4) for other, codes in found.items())
        assert sum(map(len, found.values())) <= 10


def test_a_passage_that_does_not_fit_is_not_cached() -> None:
    cache = TokenCodeCache(10)
    cache.put(1, passages({1: 11, 2: 4}))
    assert cached(cache, [1, 2]) == {2: [2] * 4}


def test_stored_codes_of_passages_are_decoded_and_passages_without_codes_are_left_out() -> None:
    tokens = np.random.default_rng(0).standard_normal((5, CODE_DIMENSIONS), np.float32)
    codes = encoded(tokens, np.eye(CODE_DIMENSIONS, dtype=np.float32))
    read = coded_passages({7: codes[:2].tobytes(), 8: b"", 9: codes[2:].tobytes()})
    assert (read.keys.tolist(), read.starts.tolist(), read.ends.tolist()) == ([7, 9], [0, 2], [2, 5])
    assert np.array_equal(read.codes.levels, decoded(codes).levels)
    vectors = read.codes.levels * read.codes.scales[:, np.newaxis]
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)


@pytest.mark.parametrize(("directions", "error_max"), [(1, 0.17), (7, 0.05), (32, 0.04), (64, 0.04)])
def test_late_interaction_over_codes_is_near_that_over_vectors(directions: int, error_max: float) -> None:
    generator = np.random.default_rng(0)
    basis = np.linalg.qr(generator.standard_normal((96, directions)))[0].astype(np.float32)
    tokens, query = (generator.standard_normal((count, 96), np.float32) for count in (3_000, 5))
    starts = np.arange(0, 3_000, 30)
    weights = np.array([0.5, 0, 0.25, 0.25, 0], np.float32)
    cosines = reduced(tokens, basis) @ reduced(query, basis).T
    exact = np.maximum.reduceat(cosines, starts, axis=0) @ weights
    codes = encoded(tokens, basis)
    assert codes.nbytes == len(tokens) * CODE_BYTES
    coded = late_interaction(reduced(query, basis), weights, decoded(codes), starts)
    np.testing.assert_allclose(coded, exact, rtol=0, atol=error_max)


@pytest.mark.parametrize("shape", [(0, 8), (3, 384), (3_000, 384)])
def test_a_product_in_blocks_is_the_product(shape: tuple[int, int]) -> None:
    left = np.random.default_rng(0).standard_normal(shape, np.float32)
    vector, matrix = left[:1].sum(axis=0), left[: shape[1]].T.copy()
    np.testing.assert_allclose(product(left, vector), left @ vector, rtol=0, atol=1e-3)
    np.testing.assert_allclose(product(left, matrix), left @ matrix, rtol=0, atol=1e-3)
