"""Encoder of the reader: trains what the default embedding model needs so that its vectors tell what a clause does.

Each matrix of the upper layers gets the product of two narrow ones (LoRA), which are learned together with the heads of
the reader: a linear layer over the mean of the clause's token vectors and the vector of its sentence.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from label_files import BARRED, LabelledSentence
from numpy.typing import NDArray

from recollect.jobs.extraction.clauses import clauses
from recollect.jobs.extraction.statement_reader import DIMENSIONS, HEADS
from recollect.projections.embeddings.model_files import model_source
from recollect.projections.projection_settings import DEFAULT_MODEL

# These libraries have no types.
torch: Any = import_module("torch")
transformers: Any = import_module("transformers")

#: Columns of the narrow matrices, and the factor of their product.
_RANK, _SCALE = 16, 2.0
#: The first layer that is adapted: those below know words, not what a sentence does.
_FIRST_LAYER = 2
_EPOCHS = 2
#: The greatest step of the adapter and of the heads; both rise for a tenth of the training and fall after it.
_ADAPTER_RATE, _HEAD_RATE, _RISING = 1e-3, 2e-3, 0.1
#: Share of the vectors that the heads do not see in a step.
_HEAD_DROPPED = 0.1
_BATCH = 32
#: Batches whose clauses are sorted by length together.
_SORTED_BATCHES = 20
_TOKENS_MAX, _CHARS_MAX = 80, 400
#: A vector has this length beside the weights of the heads.
_VECTOR_LENGTH = 6.0
_SEED = 5
_MATRICES = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)


@dataclass(frozen=True, slots=True)
class _Clause:
    """The tokens of a sentence, those of a clause in it, and the classes that its labels allow."""

    tokens: list[int]
    inside: list[bool]
    allowed: list[bool]


def trained(sentences: Sequence[LabelledSentence]) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
    """Return the arrays of the adapter, and `vectors` and `bias` of the heads."""
    torch.manual_seed(_SEED)
    # Numbers next to zero take a processor a hundred times as long.
    torch.set_flush_denormal(True)
    tokenizer = transformers.AutoTokenizer.from_pretrained(model_source(DEFAULT_MODEL))
    examples = [clause for sentence in sentences for clause in _clauses(tokenizer, sentence)]
    encoder = transformers.AutoModel.from_pretrained(model_source(DEFAULT_MODEL))
    encoder.pooler = None
    encoder.eval()
    for weight in encoder.parameters():
        weight.requires_grad = False
    narrow = {
        f"encoder.layer.{number}.{path}": _adapted(layer, path)
        for number, layer in enumerate(encoder.encoder.layer)
        if number >= _FIRST_LAYER
        for path in _MATRICES
    }
    heads = torch.nn.Linear(2 * DIMENSIONS, sum(map(len, HEADS.values())))
    _fit(encoder, [it for pair in narrow.values() for it in pair], heads, examples)
    arrays = {
        f"{name}.{part}": weight.detach().numpy().astype(np.float16)
        for name, (wide, tall) in narrow.items()
        for part, weight in (("in", wide), ("out", tall * _SCALE))
    }
    vectors = (heads.weight.detach().numpy().T * _VECTOR_LENGTH).astype(np.float32)
    return arrays, {"vectors": vectors, "bias": heads.bias.detach().numpy()}


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


def _adapted(layer: Any, path: str) -> tuple[Any, Any]:
    """Add two narrow matrices to a matrix of a layer, and return them."""
    parent, _, name = path.rpartition(".")
    owner = layer.get_submodule(parent)
    module = getattr(owner, name)
    wide = torch.nn.Parameter(torch.randn(_RANK, module.in_features) / module.in_features**0.5)
    tall = torch.nn.Parameter(torch.zeros(module.out_features, _RANK))
    plain = module.forward

    def forward(inputs: Any) -> Any:
        return plain(inputs) + inputs @ wide.T @ tall.T * _SCALE

    module.forward = forward
    return wide, tall


def _fit(encoder: Any, narrow: Sequence[Any], heads: Any, examples: Sequence[_Clause]) -> None:
    """Fit the adapter and the heads to the clauses."""
    chance = random.Random(_SEED)
    groups = [{"params": narrow, "lr": _ADAPTER_RATE}, {"params": heads.parameters(), "lr": _HEAD_RATE}]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
    steps = _EPOCHS * -(-len(examples) // _BATCH)
    rates = [_ADAPTER_RATE, _HEAD_RATE]
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rates, total_steps=steps + 1, pct_start=_RISING)
    dropped = torch.nn.Dropout(_HEAD_DROPPED)
    for layer in encoder.encoder.layer[_FIRST_LAYER:]:
        layer.train()
    done = 0
    for _ in range(_EPOCHS):
        for batch in _batches(examples, chance):
            scores = heads(dropped(_features(encoder, batch) * _VECTOR_LENGTH))
            loss = _loss(scores, torch.tensor([it.allowed for it in batch]))
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(narrow, 1.0)
            optimizer.step()
            schedule.step()
            done += 1
            if done % 100 == 0:
                print(f"step {done} of {steps}: loss {loss.item():.2f}", file=sys.stderr, flush=True)
    encoder.eval()


def _batches(examples: Sequence[_Clause], chance: random.Random) -> Iterator[list[_Clause]]:
    """Yield all examples in batches of about the same length, in a new order."""
    order = [*examples]
    chance.shuffle(order)
    size = _BATCH * _SORTED_BATCHES
    runs = [sorted(order[at : at + size], key=lambda it: len(it.tokens)) for at in range(0, len(order), size)]
    batches = [run[at : at + _BATCH] for run in runs for at in range(0, len(run), _BATCH)]
    chance.shuffle(batches)
    yield from batches


def _features(encoder: Any, batch: Sequence[_Clause]) -> Any:
    """Return the vectors of clauses and sentences as `statement_reader.clause_vector` makes them."""
    pad: Any = torch.nn.utils.rnn.pad_sequence
    tokens = pad([torch.tensor(it.tokens) for it in batch], batch_first=True)
    mask = pad([torch.ones(len(it.tokens)) for it in batch], batch_first=True)
    inside = pad([torch.tensor(it.inside, dtype=torch.float32) for it in batch], batch_first=True)[:, :, None]
    hidden = encoder(input_ids=tokens, attention_mask=mask).last_hidden_state
    normalize = torch.nn.functional.normalize
    clause = (normalize(hidden, dim=-1) * inside).sum(1) / inside.sum(1).clamp(min=1)
    return torch.cat([clause, normalize((hidden * mask[:, :, None]).sum(1), dim=-1)], -1)


def _loss(scores: Any, allowed: Any) -> Any:
    """Return the sum over the heads of the logistic loss; any class that the labels allow is right."""
    widths = [len(classes) for classes in HEADS.values()]
    total = 0
    for part, of_head in zip(scores.split(widths, dim=1), allowed.split(widths, dim=1), strict=True):
        logs = torch.log_softmax(part, -1).masked_fill(~of_head, -torch.inf)
        total = total - torch.logsumexp(logs, -1).mean()
    return total
