"""Model runtime: what runs an embedding model, and the embedding of a part of the text that it read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np

from recollect.projections.embeddings.offset_tokenizer import Reading
from recollect.projections.embeddings.stretches import Stretch, TokenEmbedding
from recollect.projections.embeddings.token_codes import Vector

RuntimeName = Literal["openvino", "torch", "static", "none"]


class RuntimeRefused(Exception):
    """The configured runtime cannot run the model; the message says why and what to do."""


class Runtime(Protocol):
    """A loaded model. One thread at a time may use it."""

    @property
    def name(self) -> RuntimeName:
        """Return the name of the runtime."""
        ...

    @property
    def tokenizer(self) -> Any:
        """Return the model's tokenizer: a tokenizer of transformers."""
        ...

    @property
    def tokens_max(self) -> int | None:
        """Return the tokens after which the model truncates a text, special tokens included; None for no limit."""
        ...

    def encode(self, stretches: Sequence[Stretch]) -> list[TokenEmbedding]:
        """Return the embedding of the part of each stretch.

        The vector of a part in a context is the mean over the part's tokens. A part is embedded without its context
        when the model cannot read both at once, or when the mean over a part's tokens has no meaning in the model's
        vector space.
        """
        ...


def normalised(vectors: Vector) -> Vector:
    """Return the rows of `vectors`, shape (n, dimensions), scaled to length 1."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def part_embedding(reading: Reading, vector: Vector, tokens: Vector) -> TokenEmbedding:
    """Return the embedding of the part of a stretch.

    Parameters:
        vector: the model's vector of the whole text, of any length.
        tokens: the vectors of all its tokens without special tokens, of any length.
    """
    # A model that puts a prompt before the text has more token vectors than the text has tokens.
    spans = reading.spans if len(reading.spans) == len(tokens) else ()
    if reading.stretch.start:
        tokens, spans = tokens[-reading.part_tokens :], spans[-reading.part_tokens :]
        vector = tokens.mean(axis=0)
    return TokenEmbedding(normalised(vector[np.newaxis])[0], normalised(tokens), spans)
