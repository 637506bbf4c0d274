"""Adapters: the default embedding model with narrow matrices that can be trained, which the readers are trained with.

Each matrix of the upper layers gets the product of two narrow ones (LoRA, https://arxiv.org/abs/2106.09685). They are
learned together with what reads the vectors: the mean of the token vectors of a part of a text, and that of the text.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from recollect.projections.embeddings.model_files import model_source
from recollect.projections.projection_settings import DEFAULT_MODEL

# These libraries have no types.
torch: Any = import_module("torch")
transformers: Any = import_module("transformers")

#: Columns of the narrow matrices, and the factor of their product.
_RANK, _SCALE = 16, 2.0
#: The first layer that is adapted: those below know words, not what a sentence does.
_FIRST_LAYER = 2
#: The greatest step of the narrow matrices; it rises for this share of the training and falls after it.
_RATE, _RISING = 1e-3, 0.1
_BATCH = 32
#: Batches whose texts are sorted by length together.
_SORTED_BATCHES = 20
#: A vector has this length beside the weights that read it.
VECTOR_LENGTH = 6.0
_MATRICES = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)


class Tokenized(Protocol):
    """A text with its tokens."""

    @property
    def tokens(self) -> list[int]:
        """Return the tokens."""
        ...


class Marked(Tokenized, Protocol):
    """A text with its tokens, and which of them are those of its part."""

    @property
    def inside(self) -> list[bool]:
        """Return whether each is in the part."""
        ...


Example = TypeVar("Example", bound=Tokenized)


def tokenizer() -> Any:
    """Return the tokenizer of the default model."""
    return transformers.AutoTokenizer.from_pretrained(model_source(DEFAULT_MODEL))


class AdaptedEncoder:
    """The default model with an adapter, ready to be trained.

    Parameters:
        seed: of the narrow matrices, and of the order of examples.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        torch.manual_seed(seed)
        # Numbers next to zero take a processor a hundred times as long.
        torch.set_flush_denormal(True)
        self._encoder = transformers.AutoModel.from_pretrained(model_source(DEFAULT_MODEL))
        self._encoder.pooler = None
        self._encoder.eval()
        for weight in self._encoder.parameters():
            weight.requires_grad = False
        self._narrow = {
            f"encoder.layer.{number}.{path}": _adapted(layer, path)
            for number, layer in enumerate(self._encoder.encoder.layer)
            if number >= _FIRST_LAYER
            for path in _MATRICES
        }

    def fit(
        self,
        groups: Sequence[Mapping[str, Any]],
        examples: Sequence[Example],
        epochs: int,
        loss: Callable[[Sequence[Example]], Any],
    ) -> None:
        """Fit the adapter and other parameters to examples; the same ones give the same encoder.

        Parameters:
            groups: the other parameters, as groups of an optimizer.
            loss: returns the loss of a batch.
        """
        chance = random.Random(self._seed)
        adapter = {"params": self._matrices(), "lr": _RATE, "weight_decay": 0.01}
        optimizer = torch.optim.AdamW([adapter, *groups])
        rates = _schedule(optimizer, len(examples), epochs)
        # Activations are left out by chance, as the model was trained.
        for layer in self._encoder.encoder.layer[_FIRST_LAYER:]:
            layer.train()
        for epoch in range(epochs):
            for done, batch in enumerate(_batches(examples, chance)):
                of_batch = loss(batch)
                optimizer.zero_grad()
                of_batch.backward()
                torch.nn.utils.clip_grad_norm_(self._matrices(), 1.0)
                optimizer.step()
                rates.step()
                if done % 100 == 0:
                    print(f"epoch {epoch + 1}, step {done}: loss {of_batch.item():.2f}", file=sys.stderr, flush=True)
        self._encoder.eval()

    def vectors(self, batch: Sequence[Marked]) -> Any:
        """Return the vectors of the parts and texts, as `statement_reader.clause_vector` makes them."""
        return torch.cat(self.means([it.tokens for it in batch], [it.inside for it in batch]), -1)

    def means(self, texts: Sequence[Sequence[int]], *parts: Sequence[Sequence[bool]]) -> list[Any]:
        """Return the mean vectors of the tokens of each part of texts, and at last those of the whole texts."""
        pad: Any = torch.nn.utils.rnn.pad_sequence
        normalize = torch.nn.functional.normalize
        tokens = pad([torch.tensor(it) for it in texts], batch_first=True)
        mask = pad([torch.ones(len(it)) for it in texts], batch_first=True)
        hidden = self._encoder(input_ids=tokens, attention_mask=mask).last_hidden_state
        means: list[Any] = []
        for part in parts:
            inside = pad([torch.tensor(it, dtype=torch.float32) for it in part], batch_first=True)[:, :, None]
            means.append((normalize(hidden, dim=-1) * inside).sum(1) / inside.sum(1).clamp(min=1))
        return [*means, normalize((hidden * mask[:, :, None]).sum(1), dim=-1)]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the file of the adapter."""
        return {
            f"{name}.{part}": weight.detach().numpy().astype(np.float16)
            for name, (wide, tall) in self._narrow.items()
            for part, weight in (("in", wide), ("out", tall * _SCALE))
        }

    def _matrices(self) -> list[Any]:
        return [it for pair in self._narrow.values() for it in pair]


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


def _batches(examples: Sequence[Example], chance: random.Random) -> Iterator[list[Example]]:
    """Yield all examples in batches of about the same length, in a new order."""
    order = [*examples]
    chance.shuffle(order)
    size = _BATCH * _SORTED_BATCHES
    runs = [sorted(order[at : at + size], key=lambda it: len(it.tokens)) for at in range(0, len(order), size)]
    parts = [run[at : at + _BATCH] for run in runs for at in range(0, len(run), _BATCH)]
    chance.shuffle(parts)
    yield from parts


def _schedule(optimizer: Any, examples: int, epochs: int) -> Any:
    """Return the schedule by which the steps rise and fall."""
    rates = [group["lr"] for group in optimizer.param_groups]
    steps = epochs * -(-examples // _BATCH)
    return torch.optim.lr_scheduler.OneCycleLR(optimizer, rates, total_steps=steps + 1, pct_start=_RISING)
