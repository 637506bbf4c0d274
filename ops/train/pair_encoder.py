"""Pair encoder: trains what the default embedding model needs to say what a later sentence does to an earlier one.

An adapter (`adapters.py`) is learned together with a linear layer over the mean vector of the earlier sentence's tokens
and the vector of the whole text, in which the later sentence follows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from adapters import VECTOR_LENGTH, AdaptedEncoder, tokenizer
from msgspec import Struct
from numpy.typing import NDArray

from recollect.jobs.extraction.statement_reader import DIMENSIONS
from recollect.projections.embeddings.reading_encoder import pair_window

# PyTorch has no types.
torch: Any = import_module("torch")

_EPOCHS, _RATE, _DROPPED = 2, 3e-3, 0.1
_TOKENS_MAX = 256
_SEED = 5
_READ_AT_ONCE = 64


class Pair(Struct, frozen=True):
    """An earlier and a later sentence, and the class of what the later one does to it."""

    earlier: str
    later: str
    label: int = 0
    #: Place of the layer whose classes it has.
    layer: int = 0


class _Example(Struct, frozen=True):
    """A pair with its tokens, and which of them are the earlier sentence's."""

    tokens: list[int]
    inside: list[bool]
    label: int
    layer: int


class PairEncoder:
    """The encoder with the weights of the classes.

    Parameters:
        classes: numbers of classes, of each layer that reads the vectors.
    """

    def __init__(self, *classes: int) -> None:
        self._tokenize = tokenizer()
        self._encoder = AdaptedEncoder(_SEED)
        torch.manual_seed(1)
        self._layers = [torch.nn.Linear(2 * DIMENSIONS, count) for count in classes]

    def fit(self, pairs: Sequence[Pair]) -> None:
        """Fit encoder and weights to pairs; the same ones give the same encoder."""
        parameters = [it for layer in self._layers for it in layer.parameters()]
        layers = {"params": parameters, "lr": _RATE, "weight_decay": 0.01}
        drop = torch.nn.Dropout(_DROPPED)

        def loss(batch: Sequence[_Example]) -> Any:
            vectors = drop(self._encoder.vectors(batch) * VECTOR_LENGTH)
            losses: list[Any] = []
            for place, layer in enumerate(self._layers):
                rows = [row for row, it in enumerate(batch) if it.layer == place]
                labels = torch.tensor([batch[row].label for row in rows], dtype=torch.int64)
                losses.append(torch.nn.functional.cross_entropy(layer(vectors[rows]), labels, reduction="sum"))
            return sum(losses) / len(batch)

        self._encoder.fit([layers], [self._example(it) for it in pairs], _EPOCHS, loss)

    def probabilities(self, pairs: Sequence[Pair], place: int = 0) -> NDArray[np.float32]:
        """Return the probabilities of the classes of the layer at `place`, one row a pair."""
        layer = self._layers[place]
        examples = [self._example(it) for it in pairs]
        order = sorted(range(len(examples)), key=lambda place: len(examples[place].tokens))
        rows = np.zeros((len(examples), layer.out_features), np.float32)
        for start in range(0, len(order), _READ_AT_ONCE):
            places = order[start : start + _READ_AT_ONCE]
            with torch.no_grad():
                scores = layer(self._encoder.vectors([examples[place] for place in places]) * VECTOR_LENGTH)
            rows[places] = scores.softmax(1).numpy()
        return rows

    def adapter(self) -> dict[str, Any]:
        """Return the arrays of the file of the adapter."""
        return self._encoder.arrays()

    def weights(self, place: int = 0) -> dict[str, Any]:
        """Return the arrays of the file of the weights of the layer at `place`."""
        layer = self._layers[place]
        weight, bias = (it.detach().numpy() for it in (layer.weight * VECTOR_LENGTH, layer.bias))
        return {"weight": weight.astype(np.float16), "bias": bias.astype(np.float16)}

    def _example(self, pair: Pair) -> _Example:
        window = pair_window(pair.earlier, pair.later)
        encoded = self._tokenize(window.text, truncation=True, max_length=_TOKENS_MAX, return_offsets_mapping=True)
        spans = encoded["offset_mapping"]
        inside = [first < after <= window.end for first, after in spans]
        if not any(inside):
            inside = [first < after for first, after in spans]
        return _Example(encoded["input_ids"], inside, pair.label, pair.layer)
