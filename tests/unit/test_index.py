from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.projections.embedder import Vector
from recollect.projections.index import VectorIndex


def unit(rng: np.random.Generator, count: int, dimensions: int = 8) -> Vector:
    vectors = rng.standard_normal((count, dimensions)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@settings(deadline=None)
@given(st.integers(0, 600), st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_search_gives_what_sorting_everything_gives(rows: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    versions, vectors, query = rng.integers(1, 300, rows), unit(rng, rows), unit(rng, 1)[0]
    index = VectorIndex(8)
    for start in range(0, rows, 100):
        index.add("turn", versions[start : start + 100].tolist(), vectors[start : start + 100])

    best: dict[int, float] = {}
    for version, score in zip(versions.tolist(), (vectors @ query).tolist(), strict=True):
        best[version] = max(score, best.get(version, -2.0))
    expected = sorted(best, key=lambda version: (-best[version], version))[:k]
    found = [version for version, _ in index.search(query, "turn", k)]
    assert np.allclose([best[v] for v in found], [best[v] for v in expected])
    assert len(found) == len(set(found)) == len(expected)


def test_equal_scores_come_by_version() -> None:
    index = VectorIndex(2)
    index.add("turn", [5, 3, 4], np.tile(np.array([[1, 0]], np.float32), (3, 1)))
    assert [version for version, _ in index.search(np.array([1, 0], np.float32), "turn", 2)] == [3, 4]


def test_only_what_is_allowed_is_found_and_parts_are_apart() -> None:
    index = VectorIndex(2)
    index.add("turn", [1, 2], np.array([[1, 0], [0, 1]], np.float32))
    query = np.array([1, 0], np.float32)
    assert [version for version, _ in index.search(query, "turn", 5, among=np.array([2]))] == [2]
    assert index.search(query, "window", 5) == []


def test_what_comes_after_a_version_is_as_if_it_were_not_there() -> None:
    rng = np.random.default_rng(7)
    vectors = rng.normal(size=(40, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    versions = [1 + row // 2 for row in range(40)]
    whole, until = VectorIndex(8), VectorIndex(8)
    whole.add("turn", versions, vectors)
    until.add("turn", versions[:20], vectors[:20])
    for k in (1, 5, 30):
        assert whole.search(vectors[39], "turn", k, until=10) == until.search(vectors[39], "turn", k)
    assert whole.search(vectors[39], "turn", 5, until=0) == []
    among = np.array([3, 9, 15])
    assert {version for version, _ in whole.search(vectors[39], "turn", 5, until=10, among=among)} == {3, 9}
