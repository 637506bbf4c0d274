"""The vectors of a long passage are added up to 40."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.projections.embeddings.content_tokens import CONTENT_TOKENS_MAX, content_tokens
from recollect.projections.embeddings.stretches import TokenEmbedding
from recollect.projections.embeddings.token_codes import Vector


def _embedding(tokens: Vector) -> TokenEmbedding:
    return TokenEmbedding(np.zeros(tokens.shape[1], np.float32), tokens)


def _directions(count: int) -> Vector:
    """Return vectors that are orthogonal to each other."""
    return np.eye(count, dtype=np.float32)


@pytest.mark.parametrize("count", [1, CONTENT_TOKENS_MAX])
def test_the_tokens_of_a_short_passage_stay_as_they_are(count: int) -> None:
    assert (content_tokens("", _embedding(_directions(count))) == _directions(count)).all()


def test_of_a_long_passage_equal_neighbours_are_added_up_and_the_others_stay() -> None:
    directions = _directions(CONTENT_TOKENS_MAX)
    repeated = np.repeat(directions, [3, *[1] * (CONTENT_TOKENS_MAX - 1)], axis=0)
    expected = directions.copy()
    expected[0] *= 3
    assert (content_tokens("", _embedding(repeated)) == expected).all()


@given(st.integers(1, 300), st.integers(0, 2**32 - 1))
def test_a_passage_has_40_vectors_at_most_and_loses_no_token(count: int, seed: int) -> None:
    tokens = np.random.default_rng(seed).normal(size=(count, 8)).astype(np.float32)
    kept = content_tokens("", _embedding(tokens))
    assert len(kept) == min(count, CONTENT_TOKENS_MAX)
    assert np.allclose(kept.sum(axis=0), tokens.sum(axis=0), atol=1e-3)
