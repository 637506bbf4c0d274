"""Vectors for very many records: real ones of a few hundred texts, copied with noise.

Embedding 200,000 records takes most of an hour, and a search costs the same whatever the vectors say.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np
import texts

from recollect.projections.embeddings.embedder import Embedder, State, open_embedder
from recollect.projections.embeddings.model_runtime import PendingEmbedding, RuntimeName
from recollect.projections.embeddings.stretches import Stretch, TokenEmbedding
from recollect.projections.embeddings.token_codes import Vector, principal_directions
from recollect.projections.projection_settings import DEFAULT_MODEL

_POOL_TEXTS = 256
_NOISE = 0.02


class QuickEmbedder:
    """The real model for queries; for records, real vectors with noise, and the codes of as real pieces."""

    def __init__(self) -> None:
        self._real: Embedder = open_embedder(DEFAULT_MODEL)
        self._pool: list[TokenEmbedding] = []
        self._made = 0

    @property
    def name(self) -> str:
        return self._real.name

    @property
    def fingerprint(self) -> str:
        return self._real.fingerprint

    @property
    def dimensions(self) -> int:
        return self._real.dimensions

    @property
    def state(self) -> State:
        return self._real.state

    @property
    def reason(self) -> str:
        return self._real.reason

    @property
    def runtime(self) -> RuntimeName:
        return self._real.runtime

    def start(self) -> None:
        self._real.start()

    def wait_ready(self, timeout_seconds: float) -> bool:
        return self._real.wait_ready(timeout_seconds)

    def embed(self, texts: Sequence[str]) -> Vector:
        return np.stack([one.vector for one in self.embed_tokens([Stretch(text) for text in texts])])

    def embed_query(self, text: str) -> TokenEmbedding:
        return self._real.embed_query(text)

    def start_query(self, text: str) -> PendingEmbedding | None:
        return self._real.start_query(text)

    def embed_tokens(self, stretches: Sequence[Stretch]) -> list[TokenEmbedding]:
        pool = self._filled_pool()
        rng = np.random.default_rng(self._made)
        self._made += len(stretches)
        chosen: list[int] = rng.integers(0, len(pool), len(stretches)).tolist()
        vectors = np.stack([pool[at].vector for at in chosen])
        vectors += rng.standard_normal(vectors.shape, np.float32) * np.float32(_NOISE)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return [TokenEmbedding(vector, pool[at].tokens) for vector, at in zip(vectors, chosen, strict=True)]

    def basis(self) -> Vector:
        return principal_directions(np.concatenate([one.tokens for one in self._filled_pool()]))

    def _filled_pool(self) -> list[TokenEmbedding]:
        if not self._pool:
            said = islice(texts.varied(10_000), 0, None, 10_000 // _POOL_TEXTS)
            self._pool = self._real.embed_tokens([Stretch(event["payload"]["text"]) for event in said])
        return self._pool
