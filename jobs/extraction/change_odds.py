"""Change odds: how probable it is that a sentence changes a statement, among the others that it is compared with.

The network and the encoder of `comparison.py` learn from voices in which every other sentence changes something.
Conversations are not like that: a logit over what both say of a pair, of the other pairs of the sentence, over what the
statement reader says of the sentence, and over the features of the pair, is fitted to whole conversations whose changes
are marked (`ops/train/changes --conversations`).
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

#: Added to probabilities before their log odds, and the log odds of a pair that the encoder does not read.
_LEAST = 1e-5
_UNREAD = -8.0


def odds_inputs(network: Floats, encoder: Floats, of_sentence: Floats, of_pairs: Floats, cosines: Floats) -> Floats:
    """Return the inputs of the logit, one row for each statement that a sentence is compared with.

    Parameters:
        network: the probability of a change of each statement, oldest first, shape (n,).
        encoder: the same; NaN for a statement that the encoder does not read.
        of_sentence: what is read of the sentence alone, shape (k,).
        of_pairs: the features of the pairs, shape (n, features).
        cosines: of the vectors of sentence and statements, shape (n,); 0 without vectors.
    """
    by_network = _log_odds(network)
    by_encoder: Floats = np.nan_to_num(_log_odds(encoder), nan=_UNREAD)
    both, count = np.asarray((by_network + by_encoder) / 2, np.float32), len(network)
    place = np.argsort(np.argsort(-both, kind="stable"), kind="stable")
    columns = [
        by_network,
        by_encoder,
        both,
        np.log1p(place),
        both - _best_other(both),
        by_encoder - _best_other(by_encoder),
        np.full(count, both.max()),
        np.full(count, np.log1p(np.exp(both).sum())),
        np.full(count, count),
        np.log1p(np.arange(count - 1, -1, -1)),
        cosines,
    ]
    sentence = np.broadcast_to(of_sentence, (count, len(of_sentence)))
    return np.concatenate([np.stack(columns, axis=1), sentence, of_pairs], axis=1).astype(np.float32)


def change_probabilities(inputs: Floats) -> Floats:
    """Return the probability of a change of each statement, shape (n,)."""
    weight, bias = _weights()
    return (1 / (1 + np.exp(-(inputs @ weight + bias)))).astype(np.float32)


@cache
def _weights() -> tuple[Floats, Floats]:
    """Return the weights, shape (inputs,), and the bias."""
    arrays: dict[str, Any] = dict(np.load(BytesIO(files(__package__).joinpath("odds_weights.npz").read_bytes())))
    return arrays["weight"], arrays["bias"]


def _log_odds(probabilities: Floats) -> Floats:
    return np.log(probabilities + _LEAST) - np.log(1 - probabilities + _LEAST)


def _best_other(values: Floats) -> Floats:
    """Return for each value the greatest of the others; of a single one the least that there is."""
    if len(values) < 2:
        return np.full(len(values), _UNREAD, np.float32)
    second, first = np.partition(values, len(values) - 2)[-2:].tolist()
    return np.array([second if value == first else first for value in values.tolist()], np.float32)
