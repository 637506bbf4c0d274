from __future__ import annotations

import numpy as np
import pytest

from recollect.projections.embeddings.matrix_product import product
from recollect.projections.embeddings.token_codes import TokenCodeCache, coded_passages

WIDTH = 64


def stored(key: int, tokens: int) -> dict[int, bytes]:
    return {key: np.full((tokens, WIDTH), key, np.int8).tobytes()}


def cached(cache: TokenCodeCache, keys: list[int], generation: int = 1) -> dict[int, list[int]]:
    found = cache.get(generation, np.array(keys, np.int64), WIDTH)
    spans = zip(found.keys.tolist(), found.starts.tolist(), found.ends.tolist(), strict=True)
    return {key: found.codes[start:end, 0].tolist() for key, start, end in spans}


def test_passages_are_found_by_generation_and_key() -> None:
    cache = TokenCodeCache(100)
    cache.put(1, coded_passages(stored(1, 3) | stored(2, 2) | {9: b""}, WIDTH))
    assert cached(cache, [2, 1, 3, 9]) == {2: [2, 2], 1: [1, 1, 1]}
    assert cached(cache, [1], generation=2) == {}
    cache.clear()
    assert cached(cache, [1]) == {}
    assert cache.size_bytes == 0


def test_the_passages_written_first_are_overwritten_and_no_others_are_damaged() -> None:
    cache = TokenCodeCache(10)
    for key in range(1, 60):
        cache.put(1, coded_passages(stored(key, 1 + key % 4), WIDTH))
        found = cached(cache, list(range(1, 60)))
        assert found[key] == [key] * (1 + key % 4)
        assert all(codes == [other] * (1 + other % 4) for other, codes in found.items())
        assert sum(map(len, found.values())) <= 10


def test_a_passage_that_does_not_fit_is_not_cached() -> None:
    cache = TokenCodeCache(10)
    cache.put(1, coded_passages(stored(1, 11) | stored(2, 4), WIDTH))
    assert cached(cache, [1, 2]) == {2: [2] * 4}


def test_narrow_codes_are_cached_in_their_width() -> None:
    cache = TokenCodeCache(10)
    cache.put(1, coded_passages({5: bytes(range(6))}, 3))
    found = cache.get(1, np.array([5], np.int64), 3)
    assert found.codes.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("shape", [(0, 8), (3, 384), (3_000, 384)])
def test_a_product_in_blocks_is_the_product(shape: tuple[int, int]) -> None:
    left = np.random.default_rng(0).standard_normal(shape, np.float32)
    vector, matrix = left[:1].sum(axis=0), left[: shape[1]].T.copy()
    np.testing.assert_allclose(product(left, vector), left @ vector, rtol=0, atol=1e-3)
    np.testing.assert_allclose(product(left, matrix), left @ matrix, rtol=0, atol=1e-3)
