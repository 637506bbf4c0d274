"""Embedders for tests: a small deterministic one, and ones that are having a bad day."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from hashlib import sha256

import numpy as np

from recollect.projections.embedder import State, Vector


class HashingEmbedder:
    """Bag of words, hashed into 64 numbers: texts that share words are near each other."""

    dimensions = 64

    def __init__(self, tag: str = "hashing", state: State = "ready") -> None:
        self.name = tag
        self.model_tag = tag
        self.state: State = state
        self.reason = "" if state == "ready" else f"model {state}"
        #: Texts embedded so far, queries apart.
        self.embedded: list[str] = []

    def start(self) -> None:
        pass

    def wait_ready(self, timeout_seconds: float) -> bool:
        return self.state == "ready"

    def embed(self, texts: Sequence[str]) -> Vector:
        self.embedded += texts
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text: str) -> Vector:
        vector = np.full(self.dimensions, 1e-3, np.float32)
        for word in re.findall(r"\w+", text.lower()):
            vector[sha256(word.encode()).digest()[0] % self.dimensions] += 1
        return vector / np.float32(np.linalg.norm(vector))


class BrokenEmbedder(HashingEmbedder):
    """Says that it is ready, and fails."""

    def embed_query(self, text: str) -> Vector:
        raise RuntimeError("the model fell over")


class StuckEmbedder(HashingEmbedder):
    """Answers a query when it is let go, and not before."""

    def __init__(self) -> None:
        super().__init__("stuck")
        self.let_go = threading.Event()

    def embed(self, texts: Sequence[str]) -> Vector:
        return np.stack([super(StuckEmbedder, self).embed_query(text) for text in texts])

    def embed_query(self, text: str) -> Vector:
        self.let_go.wait(30)
        return super().embed_query(text)
