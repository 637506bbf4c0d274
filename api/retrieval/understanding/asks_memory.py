"""Asks memory: a logit of whether a message asks for what is remembered, or for general knowledge.

`when did i last change the oil` does, `how often should you change engine oil` does not. By words and by embedding.
Trained by `ops/train/relevance`, whose README is the model card.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from io import BytesIO
from math import fsum, sqrt
from typing import NamedTuple

import numpy as np

from recollect.events.late_pattern import late_pattern
from recollect.projections.embeddings.token_codes import Vector

_WORD = late_pattern(r"\w+|[^\w\s]")
#: Characters of a message that are read; a longer one says more than it asks.
_CHARS_MAX = 1_000


class AsksLogit(NamedTuple):
    """The weights of the logit."""

    #: By word; a word without one is not read.
    words: Mapping[str, float]
    #: Of the embedding, shape (dimensions,).
    embedding: Vector
    bias: float

    def of(self, text: str, embedding: Vector) -> float:
        """Return the logit of a message: positive where it asks for what is remembered.

        The weights of its words are divided by the square root of how many there are, so that long messages have no
        greater logits.
        """
        # `fsum` does not depend on the order of a set.
        weights = [self.words[word] for word in words_of(text) if word in self.words]
        return fsum(weights) / sqrt(len(weights) or 1) + float(embedding @ self.embedding) + self.bias


def words_of(text: str) -> frozenset[str]:
    """Return the distinct words and signs of a message, in lower case."""
    return frozenset(_WORD.findall(text[:_CHARS_MAX].lower()))


@cache
def asks_logit() -> AsksLogit:
    """Return the logit of the package."""
    with np.load(BytesIO(files(__package__).joinpath("asks_weights.npz").read_bytes())) as arrays:
        words: list[str] = bytes(arrays["words"]).decode().split("\n")
        weights: list[float] = arrays["word_weights"].astype(float).tolist()
        embedding: Vector = arrays["embedding"].astype(np.float32)
        return AsksLogit(dict(zip(words, weights, strict=True)), embedding, float(arrays["bias"]))
