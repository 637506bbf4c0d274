"""Network: the comparison of a request with earlier sentences, as PyTorch trains it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from label_files import Scene
from numpy.typing import NDArray

from recollect.jobs.forgetting.forget_model import FEATURES, SIMILARITY_BIAS, TOKENS_MAX, pair_features

Floats = NDArray[np.float32]
# PyTorch comes with sentence-transformers, and its types are incomplete.
torch: Any = import_module("torch")
nn: Any = torch.nn
Tensor = Any
_SCENES, _HIDDEN = 32, 24
_DROPOUT = 0.1
_ALIGNED = torch.nn.functional.normalize


class Batch(NamedTuple):
    """Scenes of one step, padded."""

    asked: Tensor
    asked_mask: Tensor
    stated: Tensor
    stated_mask: Tensor
    features: Tensor
    #: Which sentences a scene has, and which of them its request names.
    mask: Tensor
    named: Tensor


class Network(nn.Module):
    """The network; `forget_model._Network` computes the same from its weights."""

    def __init__(self, dimensions: int, table: Any) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self.table = None if table is None else nn.Parameter(table)
        self.asked_projection = nn.Parameter(torch.eye(dimensions))
        self.stated_projection = nn.Parameter(torch.eye(dimensions))
        self.asked_gate = nn.Parameter(torch.zeros(dimensions))
        self.stated_gate = nn.Parameter(torch.zeros(dimensions))
        self.hidden = nn.Linear(FEATURES + 8, _HIDDEN)
        self.output = nn.Linear(_HIDDEN, 1)

    def forward(self, batch: Batch) -> Tensor:
        """Return the scores of the sentences."""
        asked, stated = batch.asked, batch.stated
        if self.table is not None:
            asked, stated = self.table[asked], self.table[stated]
        shares = torch.softmax((asked @ self.asked_gate).masked_fill(~batch.asked_mask, -1e4), -1)
        weights = torch.softmax((stated @ self.stated_gate).masked_fill(~batch.stated_mask, -1e4), -1)
        left = _ALIGNED(asked @ self.asked_projection, dim=-1)
        right = _ALIGNED(stated @ self.stated_projection, dim=-1)
        left, right = (nn.functional.dropout(it, _DROPOUT, self.training) for it in (left, right))
        whole = _ALIGNED((shares[..., None] * left).sum(1), dim=-1)
        pooled = _ALIGNED((weights[..., None] * right).sum(2), dim=-1)
        raw = _ALIGNED((shares[..., None] * asked).sum(1), dim=-1)
        raw_pooled = _ALIGNED((weights[..., None] * stated).sum(2), dim=-1)
        each = torch.einsum("bnd,bcmd->bcnm", left, right).masked_fill(~batch.stated_mask[:, :, None], -1)
        similarities = torch.stack(
            [
                torch.einsum("bd,bcd->bc", whole, pooled),
                (shares[:, None] * each.amax(-1)).sum(-1),
                torch.einsum("bd,bcd->bc", raw, raw_pooled),
                torch.einsum("bd,bcd->bc", asked[:, 0], stated[:, :, 0]),
            ],
            -1,
        )
        rows = torch.cat([batch.features, 3 * similarities, 3 * _gaps(similarities, batch.mask)], -1)
        scores = self.output(torch.tanh(self.hidden(rows))).squeeze(-1)
        return scores + 6 * (similarities[..., 0] + similarities[..., 1] - SIMILARITY_BIAS)


def _gaps(similarities: Tensor, mask: Tensor) -> Tensor:
    known = similarities.masked_fill(~mask[..., None], -0.2)
    best = known.topk(2, 1).values
    others = torch.where(known == best[:, :1], best[:, 1:2], best[:, :1]).clamp(min=-0.2)
    return similarities - others


class Examples:
    """Scenes with the rows of their texts."""

    def __init__(self, scenes: Sequence[Scene], rows: Mapping[str, Any], asking: frozenset[str]) -> None:
        self.scenes = scenes
        self._rows = rows
        self._features = [pair_features(it.request, it.said, asking) for it in scenes]

    def batch(self, places: Sequence[int]) -> Batch:
        """Return some scenes."""
        scenes = [self.scenes[place] for place in places]
        count = max(2, *(len(it.said) for it in scenes))
        first = next(iter(self._rows.values()))
        shape = (len(scenes), count, TOKENS_MAX, *first.shape[1:])
        stated, stated_mask = np.zeros(shape, first.dtype), np.zeros(shape[:3], bool)
        asked, asked_mask = np.zeros((shape[0], *shape[2:]), first.dtype), np.zeros((shape[0], TOKENS_MAX), bool)
        features = np.zeros((len(scenes), count, FEATURES), np.float32)
        mask, named = np.zeros(shape[:2], bool), np.zeros(shape[:2], np.float32)
        stated_mask[:, :, 0] = True
        for row, (place, scene) in enumerate(zip(places, scenes, strict=True)):
            self._put(scene.request, asked[row], asked_mask[row])
            for column, text in enumerate(scene.said):
                self._put(text, stated[row, column], stated_mask[row, column])
            mask[row, : len(scene.said)] = True
            named[row, [*scene.named]] = 1
            features[row, : len(scene.said)] = self._features[place]
        arrays = (asked, asked_mask, stated, stated_mask, features, mask, named)
        return Batch(*(torch.from_numpy(it) for it in arrays))

    def _put(self, text: str, rows: NDArray[Any], mask: NDArray[Any]) -> None:
        of_text = self._rows[text]
        rows[: len(of_text)] = of_text
        mask[: len(of_text)] = True


def fitted(
    examples: Examples, dimensions: int, *, table: Tensor | None, epochs: int, rate: float, pull: float
) -> Network:
    """Return a network that is fitted to scenes.

    Parameters:
        pull: how strongly the projections stay near the vectors as they are.
    """
    torch.manual_seed(1)
    network = Network(dimensions, table)
    optimizer = torch.optim.Adam(network.parameters(), lr=rate)
    chance = random.Random(1)
    steps = epochs * (len(examples.scenes) // _SCENES)
    step = 0
    for _ in range(epochs):
        order = [*range(len(examples.scenes))]
        chance.shuffle(order)
        for start in range(0, len(order) - _SCENES + 1, _SCENES):
            optimizer.param_groups[0]["lr"] = rate * (1 - step / steps)
            batch = examples.batch(order[start : start + _SCENES])
            loss = _loss(network(batch), batch)
            for projection in (network.asked_projection, network.stated_projection):
                loss = loss + pull * ((projection - torch.eye(dimensions)) ** 2).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
    return network.eval()


def _loss(scores: Tensor, batch: Batch) -> Tensor:
    """Return the loss of each sentence alone, and of the list with its sentence "nothing of these"."""
    alone = nn.functional.binary_cross_entropy_with_logits(scores, batch.named, reduction="none")
    listed = torch.cat([torch.zeros(len(scores), 1), scores.masked_fill(~batch.mask, -1e4)], 1)
    right = torch.cat([(batch.named.sum(1, keepdim=True) == 0).float(), batch.named], 1)
    best = torch.logsumexp(listed.masked_fill(right == 0, -1e4), 1) - torch.logsumexp(listed, 1)
    return 4 * (alone * batch.mask).sum() / batch.mask.sum() - best.mean()


def probabilities(network: Network, examples: Examples) -> list[Floats]:
    """Return the probabilities of the sentences of each scene."""
    found: list[Floats] = []
    for start in range(0, len(examples.scenes), _SCENES):
        places = [*range(start, min(start + _SCENES, len(examples.scenes)))]
        scores = torch.sigmoid(network(examples.batch(places))).detach().numpy()
        found += [row[: len(examples.scenes[place].said)] for row, place in zip(scores, places, strict=True)]
    return found
