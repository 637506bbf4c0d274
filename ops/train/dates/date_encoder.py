"""Encoder of dates: trains what the default embedding model needs so that its vectors show which time words mean.

An adapter of the model (`adapters.py`) is learned together with the logit of `date_reading.py`: the weights of the
cues, and those of the mean vector of the expression's tokens and of the vector of its surroundings.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from expressions import Expression, Matrix
from msgspec import Struct
from numpy.typing import NDArray

from recollect.jobs.extraction.statement_reader import DIMENSIONS
from recollect.projections.text.date_reading import FEATURES

sys.path.append(str(Path(__file__).parents[1]))
from adapters import VECTOR_LENGTH, AdaptedEncoder, tokenizer

# PyTorch has no types.
torch: Any = import_module("torch")

_EPOCHS = 3
#: The greatest steps of the weights of the cues and of the vectors, and how fast the former shrink.
_CUE_RATE, _VECTOR_RATE, _CUE_DECAY = 1e-2, 3e-3, 0.02
#: Shares of the cues and of the vectors that are left out in a step.
_CUES_DROPPED, _VECTORS_DROPPED = 0.2, 0.1
#: Cues of fewer expressions have no weights.
_COUNT_MIN = 3
_TOKENS_MAX = 110
_SEED = 5
_IMPOSSIBLE = -1e9


class _Example(Struct, frozen=True):
    """An expression with the tokens of its window."""

    tokens: list[int]
    inside: list[bool]
    expression: Expression
    #: Rows of its cues.
    cues: list[int]


class DateEncoder:
    """The encoder with the weights of cues and vectors.

    Parameters:
        cues: the cues that have weights.
    """

    def __init__(self, cues: Sequence[str]) -> None:
        self._cues = [*cues]
        self._places = {cue: place for place, cue in enumerate(cues)}
        self._tokenize = tokenizer()
        self._encoder = AdaptedEncoder(_SEED)
        self._rows = torch.nn.Parameter(torch.zeros(len(cues), len(FEATURES)))
        self._vectors = torch.nn.Parameter(torch.zeros(2 * DIMENSIONS, len(FEATURES)))

    def fit(self, expressions: Sequence[Expression]) -> None:
        """Fit encoder and weights to expressions."""
        groups = [
            {"params": [self._rows], "lr": _CUE_RATE, "weight_decay": _CUE_DECAY},
            {"params": [self._vectors], "lr": _VECTOR_RATE, "weight_decay": 0.01},
        ]
        drop_cues, drop_vectors = torch.nn.Dropout(_CUES_DROPPED), torch.nn.Dropout(_VECTORS_DROPPED)

        def loss(batch: Sequence[Any]) -> Any:
            return _loss(self._logs(batch, drop_cues, drop_vectors), [it.expression for it in batch])

        self._encoder.fit(groups, [self._example(it) for it in expressions], _EPOCHS, loss)

    def probabilities(self, expressions: Sequence[Expression]) -> list[Matrix]:
        """Return the probabilities of the candidates of each expression, no date first."""
        found: list[Matrix] = []
        for expression in expressions:
            with torch.no_grad():
                logs = self._logs([self._example(expression)], torch.nn.Identity(), torch.nn.Identity())
            found.append(logs[0].exp().numpy())
        return found

    def adapter(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the file of the adapter."""
        return self._encoder.arrays()

    def weights(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the file of the weights."""
        rows, vectors = (
            part.detach().numpy().astype(np.float16) for part in (self._rows, self._vectors * VECTOR_LENGTH)
        )
        return {"cues": np.frombuffer("\n".join(self._cues).encode(), np.uint8), "rows": rows, "vectors": vectors}

    def _example(self, expression: Expression) -> _Example:
        window = expression.window
        encoded = self._tokenize(window.text, truncation=True, max_length=_TOKENS_MAX, return_offsets_mapping=True)
        spans = encoded["offset_mapping"]
        inside = [first < after and first < window.end and window.start < after for first, after in spans]
        if not any(inside):
            inside = [first < after for first, after in spans]
        cues = [self._places[cue] for cue in expression.cues if cue in self._places]
        return _Example(encoded["input_ids"], inside, expression, cues)

    def _logs(self, batch: Sequence[_Example], drop_cues: Any, drop_vectors: Any) -> Any:
        """Return the logarithms of the probabilities, shape (expressions, most candidates)."""
        counts = torch.zeros(len(batch), len(self._cues))
        for row, example in enumerate(batch):
            for cue in example.cues:
                counts[row, cue] += 1
        vectors = self._encoder.vectors(batch) * VECTOR_LENGTH
        of_features = drop_cues(counts) @ self._rows + drop_vectors(vectors) @ self._vectors
        features, present = _candidates([it.expression for it in batch])
        scores = torch.einsum("nf,nkf->nk", of_features, features).masked_fill(~present, _IMPOSSIBLE)
        return torch.log_softmax(scores, 1)


def trained(expressions: Sequence[Expression]) -> DateEncoder:
    """Return the encoder that is fitted to expressions; the same ones give the same encoder."""
    counts = Counter(cue for it in expressions for cue in set(it.cues))
    encoder = DateEncoder(sorted(cue for cue, count in counts.items() if count >= _COUNT_MIN))
    encoder.fit(expressions)
    return encoder


def _candidates(batch: Sequence[Expression]) -> tuple[Any, Any]:
    """Return the features of the candidates, shape (expressions, most candidates, features), and which there are."""
    most = max(len(it.target) for it in batch)
    features = np.zeros((len(batch), most, len(FEATURES)), np.float32)
    present = np.zeros((len(batch), most), np.bool_)
    for row, it in enumerate(batch):
        features[row, : len(it.target)], present[row, : len(it.target)] = it.features, True
    return torch.from_numpy(features), torch.from_numpy(present)


def _loss(logs: Any, batch: Sequence[Expression]) -> Any:
    """Return the weighted mean loss; an expression with several right candidates needs their sum only."""
    targets = np.zeros(tuple(logs.shape), np.float32)
    for row, it in enumerate(batch):
        targets[row, : len(it.target)] = it.target
    is_mixed = torch.from_numpy((targets[:, 0] > 0) & (targets[:, 1:].sum(axis=1) > 0))
    wanted = torch.from_numpy(targets)
    of_one = -torch.logsumexp(logs.masked_fill(wanted <= 0, _IMPOSSIBLE), 1)
    of_mixed = -(wanted * logs.clamp(min=-100)).sum(1)
    weights = torch.tensor([it.weight for it in batch])
    return (weights * torch.where(is_mixed, of_mixed, of_one)).mean()
