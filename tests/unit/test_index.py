from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.embeddings.vector_index import VectorIndex


def unit(rng: np.random.Generator, count: int, dimensions: int = 8) -> Vector:
    vectors = rng.standard_normal((count, dimensions)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def cosines(index: VectorIndex, query: Vector, until: int | None = None) -> dict[int, float]:
    found = index.cosines(query, until=until)
    return dict(zip(found.versions.tolist(), found.values.tolist(), strict=True))


@given(st.integers(0, 600), st.integers(0, 2**32 - 1))
def test_every_episode_has_the_cosine_of_its_best_chunk(rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    versions, vectors, query = np.sort(rng.integers(1, 300, rows)), unit(rng, rows), unit(rng, 1)[0]
    index = VectorIndex(8)
    cuts = [0, *(at for at in range(1, rows) if at % 100 == 0 and versions[at] != versions[at - 1]), rows]
    for start, end in pairwise(cuts):
        index.add(versions[start:end].tolist(), vectors[start:end])

    best: dict[int, float] = {}
    for version, score in zip(versions.tolist(), (vectors @ query).tolist(), strict=True):
        best[version] = max(score, best.get(version, -2.0))
    found = cosines(index, query)
    assert list(found) == sorted(best)
    # Rounded to int8: eight numbers leave more of an error than 384 do.
    assert np.allclose(list(found.values()), [best[version] for version in sorted(best)], atol=0.02)


def test_what_comes_after_a_version_is_as_if_it_were_not_there() -> None:
    rng = np.random.default_rng(7)
    vectors = unit(rng, 40)
    versions = [1 + row // 2 for row in range(40)]
    whole, until = VectorIndex(8), VectorIndex(8)
    whole.add(versions, vectors)
    until.add(versions[:20], vectors[:20])
    assert cosines(whole, vectors[39], until=10) == cosines(until, vectors[39])
    assert cosines(whole, vectors[39], until=0) == {}
    assert cosines(whole, vectors[39], until=99) == cosines(whole, vectors[39])


def test_a_vector_is_kept_to_two_thousandths() -> None:
    rng = np.random.default_rng(3)
    vectors, query = unit(rng, 500, 384), unit(rng, 1, 384)[0]
    index = VectorIndex(384)
    index.add(list(range(500)), vectors)
    assert np.abs(np.array(list(cosines(index, query).values())) - vectors @ query).max() < 0.002


def test_the_keys_of_an_episode_are_those_of_the_vectors_nearest_to_the_query_in_their_order() -> None:
    vectors = unit(np.random.default_rng(5), 5)
    index = VectorIndex(8)
    assert [found.tolist() for found in index.nearest_keys([3], vectors[0], limit=2)] == [[], []]

    index.add([2, 2, 2, 5, 9], vectors, [20, 21, 22, 50, 90])

    for far in range(3):
        query = -vectors[far]
        near = [20 + number for number in range(3) if number != far]
        found = index.nearest_keys([1, 2, 5, 7, 9, 12], query, limit=2)
        assert [it.tolist() for it in found] == [[2, 2, 5, 9], [*near, 50, 90]]
    every = index.nearest_keys([2, 9], vectors[0], limit=3)
    assert [it.tolist() for it in every] == [[2, 2, 2, 9], [20, 21, 22, 90]]
