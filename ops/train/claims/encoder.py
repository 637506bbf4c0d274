"""Encoder of claims: trains the adapter and the network of `jobs/llm_reading/claim_reader.py`."""

from __future__ import annotations

import sys
from bisect import bisect
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from labels import Claim
from numpy.typing import NDArray

from recollect.jobs.extraction.statement_reader import DIMENSIONS
from recollect.jobs.llm_reading.claim_reader import claim_text, tokens_inside

sys.path.append(str(Path(__file__).parents[1]))
# A module beside this folder, and a library that has no types.
adapters: Any = import_module("adapters")
torch: Any = import_module("torch")

_SEED, _EPOCHS, _RATE, _DECAY, _DROPPED = 5, 2, 2e-3, 0.02, 0.1
_HIDDEN = 64
_TOKENS_MAX = 256
_READ_AT_ONCE = 64
#: Words of a sentence from which on it is a longer one, and the greatest weight of a claim.
_LENGTHS, _WEIGHT_MAX = (6, 8, 10, 12, 15), 3.0
#: The vectors, their differences and their products are longer by these factors beside the weights that read them.
_SCALES = (6.0, 6.0, 6.0, 12.0, 100.0)


class _Example(NamedTuple):
    """A claim as tokens; which are those of the quoted words and of the sentence."""

    tokens: list[int]
    quoted: list[bool]
    claim: list[bool]
    is_right: float
    #: In the loss.
    weight: float = 1.0


class ClaimEncoder:
    """The encoder with its network."""

    def __init__(self) -> None:
        self._tokenize = adapters.tokenizer()
        self._encoder = adapters.AdaptedEncoder(_SEED)
        torch.manual_seed(1)
        nn = torch.nn
        inputs = len(_SCALES) * DIMENSIONS
        self._network = nn.Sequential(
            nn.Linear(inputs, _HIDDEN), nn.ReLU(), nn.Dropout(_DROPPED), nn.Linear(_HIDDEN, 1)
        )

    def fit(self, claims: Sequence[Claim]) -> None:
        """Fit encoder and network to claims; the same ones give the same encoder."""
        weights = _weights(claims)
        examples = [self._example(it)._replace(weight=weight) for it, weight in zip(claims, weights, strict=True)]
        layers = {"params": [*self._network.parameters()], "lr": _RATE, "weight_decay": _DECAY}

        def loss(batch: Sequence[_Example]) -> Any:
            labels, weight = torch.tensor([it.is_right for it in batch]), torch.tensor([it.weight for it in batch])
            return torch.nn.functional.binary_cross_entropy_with_logits(self._scores(batch), labels, weight)

        self._network.train()
        self._encoder.fit([layers], examples, _EPOCHS, loss)
        self._network.eval()

    def probabilities(self, claims: Sequence[Claim]) -> NDArray[np.float32]:
        """Return the probability that each claim is right."""
        examples = [self._example(it) for it in claims]
        order = sorted(range(len(examples)), key=lambda place: len(examples[place].tokens))
        read = np.zeros(len(examples), np.float32)
        for start in range(0, len(order), _READ_AT_ONCE):
            places = order[start : start + _READ_AT_ONCE]
            with torch.no_grad():
                read[places] = torch.sigmoid(self._scores([examples[place] for place in places])).numpy()
        return read

    def adapter(self) -> dict[str, Any]:
        """Return the arrays of the file of the adapter."""
        return self._encoder.arrays()

    def weights(self) -> dict[str, Any]:
        """Return the arrays of the file of the network."""
        hidden, output = self._network[0], self._network[-1]
        scales = torch.tensor(_SCALES).repeat_interleave(DIMENSIONS)
        arrays = {"hidden.weight": hidden.weight * scales, "hidden.bias": hidden.bias}
        arrays |= {"output.weight": output.weight, "output.bias": output.bias}
        return {name: array.detach().numpy().astype(np.float16) for name, array in arrays.items()}

    def _scores(self, batch: Sequence[_Example]) -> Any:
        masks = ([it.quoted for it in batch], [it.claim for it in batch])
        quoted, claim, whole = self._encoder.means([it.tokens for it in batch], *masks)
        parts = (quoted, claim, whole, (quoted - claim).abs(), quoted * claim)
        inputs = torch.cat([part * scale for part, scale in zip(parts, _SCALES, strict=True)], -1)
        return self._network(inputs)[:, 0]

    def _example(self, claim: Claim) -> _Example:
        read = claim_text(claim.statement, claim.conversation)
        encoded = self._tokenize(read.text, truncation=True, max_length=_TOKENS_MAX, return_offsets_mapping=True)
        quoted, of_claim = (tokens_inside(encoded["offset_mapping"], *place) for place in (read.quoted, read.claim))
        return _Example(encoded["input_ids"], quoted, of_claim, float(claim.is_right))


def _weights(claims: Sequence[Claim]) -> list[float]:
    """Return the weights by which right and wrong claims of one length count alike: wrong ones are often shorter."""
    lengths = [bisect(_LENGTHS, len(claim.statement.text.split())) for claim in claims]
    counts = Counter((length, claim.is_right) for length, claim in zip(lengths, claims, strict=True))
    of_length = Counter(lengths)
    return [
        min(_WEIGHT_MAX, of_length[length] / (2 * counts[length, claim.is_right]))
        for length, claim in zip(lengths, claims, strict=True)
    ]
