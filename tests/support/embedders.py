"""Embedders for tests: a small deterministic one, and ones that are having a bad day."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from hashlib import sha256

import numpy as np

from recollect.projections.embeddings.embedder import State
from recollect.projections.embeddings.model_runtime import RuntimeName
from recollect.projections.embeddings.stretches import Stretch, TokenEmbedding
from recollect.projections.embeddings.token_codes import Vector


def hashed(text: str, dimensions: int) -> TokenEmbedding:
    words = [(match.span(), sha256(match.group().encode()).digest()[0]) for match in re.finditer(r"\w+", text.lower())]
    vector = np.full(dimensions, 1e-3, np.float32)
    tokens = np.full((len(words), dimensions), 1e-3, np.float32)
    for at, (_, number) in enumerate(words):
        vector[number % dimensions] += 1
        tokens[at, number % dimensions] += 1
    return TokenEmbedding(
        vector / np.float32(np.linalg.norm(vector)),
        tokens / np.maximum(np.linalg.norm(tokens, axis=1, keepdims=True), 1e-12).astype(np.float32),
        tuple(span for span, _ in words),
    )


class HashingEmbedder:
    """Bag of words, hashed into 64 numbers: texts that share words are near each other."""

    dimensions = 64
    runtime: RuntimeName = "none"

    def __init__(self, tag: str = "hashing", state: State = "ready") -> None:
        self.name = tag
        self.fingerprint = tag
        self.state: State = state
        self.reason = "" if state == "ready" else f"model {state}"
        #: Texts read so far, with their contexts, queries apart.
        self.embedded: list[str] = []

    def start(self) -> None:
        pass

    def wait_ready(self, timeout_seconds: float) -> bool:
        return self.state == "ready"

    def embed(self, texts: Sequence[str]) -> Vector:
        return np.stack([embedding.vector for embedding in self.embed_tokens([Stretch(text) for text in texts])])

    def embed_tokens(self, stretches: Sequence[Stretch]) -> list[TokenEmbedding]:
        self.embedded += [stretch.text for stretch in stretches]
        return [hashed(stretch.part, self.dimensions) for stretch in stretches]

    def embed_query(self, text: str) -> TokenEmbedding:
        return hashed(text, self.dimensions)

    def start_query(self, text: str) -> None:
        pass

    def basis(self) -> Vector:
        return np.eye(self.dimensions, dtype=np.float32)


class BrokenEmbedder(HashingEmbedder):
    """Says that it is ready, and fails."""

    def embed_query(self, text: str) -> TokenEmbedding:
        raise RuntimeError("the model fell over")


class StuckEmbedder(HashingEmbedder):
    """Answers a query when it is let go, and not before."""

    def __init__(self) -> None:
        super().__init__("stuck")
        self.let_go = threading.Event()

    def embed_query(self, text: str) -> TokenEmbedding:
        self.let_go.wait(30)
        return super().embed_query(text)
