"""Choice model: the probabilities that a candidate belongs to the answer of a query, and that memory has one.

A transformer of two layers over the candidates, so that each is weighed against the others. Trained by
`ops/train/relevance`, whose README is the model card.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import as_file, files
from typing import NamedTuple

import numpy as np

from recollect.api.retrieval.ranking.choice_inputs import ChoiceInputs
from recollect.projections.embeddings.matrix_product import product
from recollect.projections.embeddings.token_codes import Vector

_HEADS = 4
_LAYERS = ("set.0", "set.1")
#: Standardised features are limited to this many standard deviations, as in the training.
_FEATURE_MAX = 6.0
#: The logit of places without a candidate.
_NONE = -12.0
#: The weights of all networks by name; one call of NumPy works for all networks, which is the first dimension of each
#: array. Matrices have the shape (networks, inputs, outputs), other weights (networks, 1, values).
Weights = Mapping[str, Vector]


class Chances(NamedTuple):
    """Probabilities of one query."""

    #: Of each candidate, that it belongs to the answer, shape (n,).
    items: Vector
    #: That memory has an answer.
    answer: float


@cache
def load_weights() -> Weights:
    """Return the weights of the package."""
    with as_file(files(__package__).joinpath("choice_weights.npz")) as path, np.load(path) as stored:
        return stacked({name: stored[name] for name in stored.files})


def stacked(stored: Mapping[str, Vector]) -> Weights:
    """Return weights whose names begin with the number of their network as float32 arrays over all networks."""
    networks: dict[str, list[Vector]] = {}
    for name, value in stored.items():
        networks.setdefault(name.partition(".")[2], []).append(value.T if value.ndim == 2 else value[np.newaxis])
    weights = {name: np.stack(values).astype(np.float32) for name, values in networks.items()}
    return weights | {f"{layer}.{name}": part for layer in _LAYERS for name, part in _arranged(weights, layer).items()}


def _arranged(w: Weights, layer: str) -> dict[str, Vector]:
    """Return the weights of a layer with a matrix for each head, and for each half of its wide part.

    So small products OpenBLAS computes on one thread (`matrix_product`), and no head is copied.
    """
    joined, bias = w[f"{layer}.self_attn.in_proj_weight"], w[f"{layer}.self_attn.in_proj_bias"]
    count, width, _ = joined.shape
    of_heads = (count, width, 3, _HEADS, width // _HEADS)
    return {
        # Shape (networks, 3, heads, width, width / heads): queries, keys and values.
        "heads": np.ascontiguousarray(joined.reshape(of_heads).transpose(0, 2, 3, 1, 4)),
        "heads_bias": bias.reshape(count, 3, _HEADS, 1, -1),
        "joined": w[f"{layer}.self_attn.out_proj.weight"].reshape(count, _HEADS, -1, width),
        "halves": np.ascontiguousarray(w[f"{layer}.linear1.weight"].reshape(count, width, 2, -1).transpose(0, 2, 1, 3)),
        "halves_bias": w[f"{layer}.linear1.bias"].reshape(count, 2, 1, -1),
        "narrowed": w[f"{layer}.linear2.weight"].reshape(count, 2, -1, width),
    }


def chances(inputs: ChoiceInputs, weights: Weights | None = None) -> Chances:
    """Return the probabilities of the candidates of a query and of an answer: the mean of those of the networks."""
    w = load_weights() if weights is None else weights
    candidates = _two_layers(w, "cf", _standardised(inputs.features, w["feature_mean"], w["feature_spread"]))
    query = _two_layers(w, "qf", _standardised(inputs.query, w["query_mean"], w["query_spread"]))
    of_each = np.broadcast_to(query, (*candidates.shape[:2], query.shape[2]))
    hidden = _gelu(_linear(w, "mix.0", np.concatenate([candidates, of_each], axis=2)))
    for layer in _LAYERS:
        hidden = _compared(w, layer, hidden)
    hidden = _normalised(w, "ln", hidden)
    logits = _linear(w, "out", hidden)[:, :, 0]
    pooled = _softmax(_linear(w, "pool", hidden)[:, :, 0])[:, np.newaxis] @ hidden
    with_none = np.concatenate([logits, np.full((len(logits), 1), _NONE, np.float32)], axis=1)
    best = np.sort(with_none, axis=1)[:, np.newaxis, :-3:-1]
    answer = _linear(w, "ex.2", _gelu(_linear(w, "ex.0", np.concatenate([pooled, query, best], axis=2))))
    return Chances(_logistic(logits).mean(axis=0), float(_logistic(answer).mean()))


def _compared(w: Weights, name: str, hidden: Vector) -> Vector:
    """Return the candidates after they attended to each other: a layer of a transformer with the norm first."""
    normed = _normalised(w, f"{name}.norm1", hidden)[:, np.newaxis]
    of_heads = normed[:, np.newaxis] @ w[f"{name}.heads"] + w[f"{name}.heads_bias"]
    queries, keys, values = of_heads[:, 0], of_heads[:, 1], of_heads[:, 2]
    shares = _softmax(queries @ keys.transpose(0, 1, 3, 2) / np.sqrt(np.float32(queries.shape[-1])))
    read = np.add.reduce((shares @ values) @ w[f"{name}.joined"], axis=1)
    hidden = hidden + read + w[f"{name}.self_attn.out_proj.bias"]
    normed = _normalised(w, f"{name}.norm2", hidden)[:, np.newaxis]
    widened = np.maximum(normed @ w[f"{name}.halves"] + w[f"{name}.halves_bias"], 0)
    return hidden + np.add.reduce(widened @ w[f"{name}.narrowed"], axis=1) + w[f"{name}.linear2.bias"]


def _standardised(values: Vector, mean: Vector, spread: Vector) -> Vector:
    return np.clip((values - mean) / spread, -_FEATURE_MAX, _FEATURE_MAX)


def _two_layers(w: Weights, name: str, values: Vector) -> Vector:
    """Return two linear layers with a GELU between them."""
    return _linear(w, f"{name}.3", _gelu(_linear(w, f"{name}.0", values)))


def _linear(w: Weights, name: str, values: Vector) -> Vector:
    return product(values, w[f"{name}.weight"]) + w[f"{name}.bias"]


def _normalised(w: Weights, name: str, values: Vector) -> Vector:
    # Twice as fast as `ndarray.mean`, which takes longer to call than to add so few numbers.
    centred: Vector = values - np.add.reduce(values, axis=2, keepdims=True) / values.shape[2]
    variance: Vector = np.add.reduce(np.square(centred), axis=2, keepdims=True) / values.shape[2]
    spread: Vector = np.sqrt(variance + np.float32(1e-5))
    return centred / spread * w[f"{name}.weight"] + w[f"{name}.bias"]


def _gelu(values: Vector) -> Vector:
    """Return the GELU by its tanh approximation, with which the model is trained."""
    return (
        0.5
        * values
        * (1 + np.tanh(np.float32(0.7978845608) * (values + np.float32(0.044715) * values * values * values)))
    )


def _softmax(values: Vector) -> Vector:
    powers = np.exp(values - values.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _logistic(values: Vector) -> Vector:
    return (1 / (1 + np.exp(-np.clip(values, -30, 30)))).astype(np.float32)
