"""Change odds: the probability that a sentence changes a statement, among the others that it is compared with.

Two logits. The first one reads the features of a pair and what the statement reader says of the sentence, and has other
weights for words alone; it chooses the pairs that the encoder of `comparison.py` reads. The other one also reads what the encoder says of the pair and of
the other pairs of the sentence. The encoder alone cannot: in the voices that it learns from every other sentence changes
something. The logits are fitted to whole conversations whose changes are marked (`ops/train/changes --odds`).
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]

#: Added to probabilities before their log odds, and the log odds of a pair that the encoder does not read.
_LEAST = 1e-5
_UNREAD = -8.0


def first_inputs(inputs: Floats) -> Floats:
    """Return the inputs of the first logit, one row for each statement that a sentence is compared with.

    Parameters:
        inputs: of the pairs, statements from the oldest to the latest, shape (n, k).
    """
    count = len(inputs)
    places = np.stack([np.full(count, count), np.log1p(np.arange(count - 1, -1, -1))], axis=1)
    return np.concatenate([inputs, places], axis=1).astype(np.float32)


def odds_inputs(inputs: Floats, encoder: Floats, is_plain: Bools) -> Floats:
    """Return the inputs of the second logit.

    Parameters:
        inputs: as in `first_inputs`.
        encoder: the probability of a change of each statement; NaN for a statement that the encoder does not read.
        is_plain: which statements have a predicate of their own; the encoder is right more often about these than about
            the words of a speaker.
    """
    by_encoder: Floats = np.nan_to_num(np.log(encoder + _LEAST) - np.log(1 - encoder + _LEAST), nan=_UNREAD)
    place = np.argsort(np.argsort(-by_encoder, kind="stable"), kind="stable")
    columns = [
        by_encoder,
        np.log1p(place),
        by_encoder - _best_other(by_encoder),
        np.full(len(encoder), by_encoder.max()),
        np.full(len(encoder), np.log1p(np.exp(by_encoder).sum())),
        is_plain,
        is_plain * by_encoder,
    ]
    return np.concatenate([first_inputs(inputs), np.stack(columns, axis=1)], axis=1).astype(np.float32)


def first_odds(inputs: Floats, is_rule: Bools, *, has_vectors: bool) -> Floats:
    """Return the probability of a change of each statement before the encoder has read any, shape (n,)."""
    return _probabilities("first" if has_vectors else "words", first_inputs(inputs), is_rule)


def odds(inputs: Floats, encoder: Floats, is_rule: Bools, is_plain: Bools) -> Floats:
    """Return the probability of a change of each statement; parameters as in `odds_inputs`."""
    return _probabilities("odds", odds_inputs(inputs, encoder, is_plain), is_rule)


def _probabilities(name: str, inputs: Floats, is_rule: Bools) -> Floats:
    weight, bias = _weights(name)
    scores = inputs @ weight.T + bias
    return (1 / (1 + np.exp(-np.where(is_rule, scores[:, 1], scores[:, 0])))).astype(np.float32)


@cache
def _weights(name: str) -> tuple[Floats, Floats]:
    """Return the weights of a logit, for statements and for rules, shape (2, inputs), and the biases."""
    arrays: dict[str, Any] = dict(np.load(BytesIO(files(__package__).joinpath("odds_weights.npz").read_bytes())))
    return arrays[name], arrays[f"{name}_bias"]


def _best_other(values: Floats) -> Floats:
    """Return for each value the greatest of the others; of a single one the least that there is."""
    if len(values) < 2:
        return np.full(len(values), _UNREAD, np.float32)
    second, first = np.partition(values, len(values) - 2)[-2:].tolist()
    return np.array([second if value == first else first for value in values.tolist()], np.float32)
