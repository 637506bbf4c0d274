"""Stored vectors: the same when they were embedded just now, read from a file, or rounded for the index."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from recollect.projections.embeddings.content_tokens import content_tokens
from recollect.projections.embeddings.stored_vectors import SCALE_BYTES, as_stored, packed, restored_matrix
from recollect.projections.embeddings.stretches import TokenEmbedding
from recollect.projections.embeddings.vector_index import rounded

_DIMENSIONS = 384
_SEEDS = st.integers(0, 2**32 - 1)


def _vector(seed: int) -> NDArray[np.float32]:
    vector = np.random.default_rng(seed).standard_normal(_DIMENSIONS).astype(np.float32)
    return vector / np.float32(np.linalg.norm(vector))


@given(_SEEDS)
def test_a_restored_vector_packs_to_the_same_bytes_and_is_near_the_one_that_was_embedded(seed: int) -> None:
    vector = _vector(seed)
    stored = as_stored(vector)
    assert len(packed(vector)) == _DIMENSIONS + SCALE_BYTES
    assert packed(stored) == packed(vector)
    assert np.array_equal(as_stored(stored), stored)
    assert float(stored @ vector) > 0.9995 * float(np.linalg.norm(stored))
    assert abs(float(np.linalg.norm(stored)) - 1) < 0.002


@given(_SEEDS)
def test_the_index_has_the_numbers_that_are_stored(seed: int) -> None:
    matrix = restored_matrix([packed(_vector(seed)), packed(_vector(seed + 1))], _DIMENSIONS)
    numbers, scales = rounded(matrix)
    assert numbers.tobytes() == b"".join(packed(_vector(it))[:-SCALE_BYTES] for it in (seed, seed + 1))
    assert np.array_equal(numbers * scales[:, np.newaxis], matrix)


def test_a_vector_of_zeros_is_stored() -> None:
    assert not as_stored(np.zeros(_DIMENSIONS, np.float32)).any()


def test_tokens_of_stop_words_have_no_codes_unless_there_are_no_others() -> None:
    spans = ((0, 3), (4, 6), (7, 10), (11, 15), (15, 18), (18, 19))
    tokens = np.arange(12, dtype=np.float32).reshape(6, 2)
    said = TokenEmbedding(tokens[0], tokens, spans)
    assert content_tokens("The of not hearten!", said).tolist() == tokens[3:].tolist()
    stops = said._replace(spans=spans[:3], tokens=tokens[:3])
    assert content_tokens("The of not", stops).tolist() == tokens[:3].tolist()
    assert content_tokens("The of not", said._replace(spans=())).tolist() == tokens.tolist()
