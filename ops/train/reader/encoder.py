"""Encoder of the reader: trains what the default embedding model needs so that its vectors show what a clause does.

An adapter of the model (`adapters.py`) is learned together with the heads of the reader: a linear layer over the mean
of the clause's token vectors and the vector of its sentence.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from label_files import BARRED, LabelledSentence
from msgspec import Struct
from numpy.typing import NDArray

from recollect.jobs.extraction.clauses import clauses
from recollect.jobs.extraction.statement_reader import DIMENSIONS, HEADS

sys.path.append(str(Path(__file__).parents[1]))
from adapters import VECTOR_LENGTH, AdaptedEncoder, tokenizer

# PyTorch has no types.
torch: Any = import_module("torch")

_EPOCHS = 2
#: The greatest step of the heads.
_HEAD_RATE = 2e-3
#: Share of the vectors that the heads do not see in a step.
_HEAD_DROPPED = 0.1
_TOKENS_MAX, _CHARS_MAX = 80, 400
_SEED = 5


class _Clause(Struct, frozen=True):
    """The tokens of a sentence, those of a clause in it, and the classes that its labels allow."""

    tokens: list[int]
    inside: list[bool]
    allowed: list[bool]


def trained(sentences: Sequence[LabelledSentence]) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
    """Return the arrays of the adapter, and `vectors` and `bias` of the heads."""
    tokens = tokenizer()
    examples = [clause for sentence in sentences for clause in _clauses(tokens, sentence)]
    encoder = AdaptedEncoder(_SEED)
    heads = torch.nn.Linear(2 * DIMENSIONS, sum(map(len, HEADS.values())))
    _fit(encoder, heads, examples)
    vectors = (heads.weight.detach().numpy().T * VECTOR_LENGTH).astype(np.float32)
    return encoder.arrays(), {"vectors": vectors, "bias": heads.bias.detach().numpy()}


def _clauses(tokenizer: Any, sentence: LabelledSentence) -> Iterator[_Clause]:
    """Yield the clauses of a sentence that have labels."""
    encoded: Any = None
    for clause in clauses(sentence.text):
        shared = [min(clause.end, part.end) - max(clause.start, part.start) for part in sentence.parts]
        best = int(np.argmax(shared))
        if shared[best] <= 0:
            continue
        encoded = encoded or tokenizer(
            sentence.text[:_CHARS_MAX], truncation=True, max_length=_TOKENS_MAX, return_offsets_mapping=True
        )
        spans = encoded["offset_mapping"]
        inside = [first < after and first < clause.end and clause.start < after for first, after in spans]
        yield _Clause(encoded["input_ids"], inside, [*allowed(sentence.parts[best].labels)])


def allowed(labels: dict[str, str]) -> Iterator[bool]:
    """Yield for each class of each head whether the labels of a clause allow it."""
    for head, classes in HEADS.items():
        label = labels.get(head, "")
        barred = BARRED.get(label, ())
        yield from (label == name if label in classes else name not in barred for name in classes)


def _fit(encoder: AdaptedEncoder, heads: Any, examples: Sequence[_Clause]) -> None:
    """Fit the adapter and the heads to the clauses."""
    of_heads = {"params": heads.parameters(), "lr": _HEAD_RATE, "weight_decay": 0.01}
    dropped = torch.nn.Dropout(_HEAD_DROPPED)

    def loss(batch: Sequence[_Clause]) -> Any:
        scores = heads(dropped(encoder.vectors(batch) * VECTOR_LENGTH))
        return _loss(scores, torch.tensor([it.allowed for it in batch]))

    encoder.fit([of_heads], examples, _EPOCHS, loss)


def _loss(scores: Any, allowed: Any) -> Any:
    """Return the sum over the heads of the logistic loss; any class that the labels allow is right."""
    widths = [len(classes) for classes in HEADS.values()]
    total = 0
    for part, of_head in zip(scores.split(widths, dim=1), allowed.split(widths, dim=1), strict=True):
        logs = torch.log_softmax(part, -1).masked_fill(~of_head, -torch.inf)
        total = total - torch.logsumexp(logs, -1).mean()
    return total
