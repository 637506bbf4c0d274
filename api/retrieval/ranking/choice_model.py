"""Choice model: the probabilities that a candidate belongs to the answer of a query, and that memory has one.

A transformer of two layers over the candidates, so that each is weighed against the others. Trained by
`ops/train/relevance`, whose README is the model card.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import as_file, files
from typing import NamedTuple

import numpy as np

from recollect.api.retrieval.ranking.choice_inputs import ChoiceInputs
from recollect.projections.embeddings.token_codes import Vector

_HEADS = 4
#: Standardised features are limited to this many standard deviations, as in the training.
_FEATURE_MAX = 6.0
#: The logit of places without a candidate.
_NONE = -12.0
Weights = Mapping[str, Vector]


class Chances(NamedTuple):
    """Probabilities of one query."""

    #: Of each candidate, that it belongs to the answer, shape (n,).
    items: Vector
    #: That memory has an answer.
    answer: float


@cache
def load_weights() -> Sequence[Weights]:
    """Return the weights of each network of the package by name, as float32."""
    with as_file(files(__package__).joinpath("choice_weights.npz")) as path, np.load(path) as stored:
        return parts({name: stored[name] for name in stored.files})


def parts(stored: Weights) -> Sequence[Weights]:
    """Return the weights of each network from names that begin with its number."""
    networks: dict[str, dict[str, Vector]] = {}
    for name, value in stored.items():
        number, _, rest = name.partition(".")
        networks.setdefault(number, {})[rest] = value.astype(np.float32)
    return [*networks.values()]


def chances(inputs: ChoiceInputs, weights: Sequence[Weights] | None = None) -> Chances:
    """Return the probabilities of the candidates of a query and of an answer: the mean of those of each network."""
    networks = [_chances(inputs, network) for network in (load_weights() if weights is None else weights)]
    items = np.mean([part.items for part in networks], axis=0).astype(np.float32)
    return Chances(items, float(np.mean([part.answer for part in networks])))


def _chances(inputs: ChoiceInputs, w: Weights) -> Chances:
    """Return the probabilities of one network."""
    candidates = _two_layers(w, "cf", _standardised(inputs.features, w["feature_mean"], w["feature_spread"]))
    query = _two_layers(w, "qf", _standardised(inputs.query, w["query_mean"], w["query_spread"]))
    joined = np.concatenate([candidates, np.repeat(query[np.newaxis], len(candidates), axis=0)], axis=1)
    hidden = _gelu(_linear(w, "mix.0", joined))
    for layer in ("set.0", "set.1"):
        hidden = _compared(w, layer, hidden)
    hidden = _normalised(w, "ln", hidden)
    logits = _linear(w, "out", hidden)[:, 0]
    pooled = _softmax(_linear(w, "pool", hidden)[:, 0]) @ hidden
    best = np.sort(np.append(logits, np.float32(_NONE)))[::-1][:2]
    answer = _linear(w, "ex.2", _gelu(_linear(w, "ex.0", np.concatenate([pooled, query, best]))))
    return Chances(_logistic(logits), float(_logistic(answer)[0]))


def _compared(w: Weights, name: str, hidden: Vector) -> Vector:
    """Return the candidates after they attended to each other: a layer of a transformer with the norm first."""
    normed = _normalised(w, f"{name}.norm1", hidden)
    joined = normed @ w[f"{name}.self_attn.in_proj_weight"].T + w[f"{name}.self_attn.in_proj_bias"]
    queries, keys, values = (_heads(part[np.newaxis]) for part in np.split(joined, 3, axis=1))
    shares = _softmax(queries @ keys.transpose(0, 1, 3, 2) / np.sqrt(np.float32(queries.shape[-1])))
    read = (shares @ values).transpose(0, 2, 1, 3).reshape(hidden.shape)
    hidden = hidden + _linear(w, f"{name}.self_attn.out_proj", read)
    widened = np.maximum(_linear(w, f"{name}.linear1", _normalised(w, f"{name}.norm2", hidden)), 0)
    return hidden + _linear(w, f"{name}.linear2", widened)


def _standardised(values: Vector, mean: Vector, spread: Vector) -> Vector:
    return np.clip((values - mean) / spread, -_FEATURE_MAX, _FEATURE_MAX)


def _two_layers(w: Weights, name: str, values: Vector) -> Vector:
    """Return two linear layers with a GELU between them."""
    return _linear(w, f"{name}.3", _gelu(_linear(w, f"{name}.0", values)))


def _heads(values: Vector) -> Vector:
    """Return values of shape (n, t, d) as (n, heads, t, d / heads)."""
    count, length, width = values.shape
    return values.reshape(count, length, _HEADS, width // _HEADS).transpose(0, 2, 1, 3)


def _linear(w: Weights, name: str, values: Vector) -> Vector:
    return values @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def _normalised(w: Weights, name: str, values: Vector) -> Vector:
    centred = values - values.mean(axis=-1, keepdims=True)
    spread = np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + np.float32(1e-5))
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
