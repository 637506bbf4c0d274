"""Network: the choice model as PyTorch trains it; `choice_model.chances` computes the same from its weights."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from samples import Sample

from recollect.projections.embeddings.token_codes import Vector

# PyTorch comes with sentence-transformers, and its types are incomplete.
torch: Any = import_module("torch")
nn: Any = torch.nn
losses: Any = torch.nn.functional
Tensor = Any

#: Widths of the layers; the heads are those of `choice_model`.
_FEATURES, _CANDIDATE, _QUERY, _HIDDEN, _POOLED = 96, 64, 32, 96, 48
_HEADS, _LAYERS = 4, 2
_DROPOUT = 0.15
_BATCH, _EPOCHS, _RATE, _DECAY = 32, 5, 1.5e-3, 0.02
_FEATURE_MAX = 6.0
#: The logit of places without a candidate.
_NONE = -12.0
#: The weight of a sample by set: FriendsQA is another kind of talk, with many questions.
_SET_WEIGHTS = {"friendsqa": 0.5, "beam": 1.5, "crops": 1.2}
#: Shares of the losses: of the order of the candidates, and of an answer; that of each candidate alone is 1.
_ORDER_SHARE, _ANSWER_SHARE = 0.3, 0.7
#: The share of the questions of each set, and of turns, that have an answer, as the loss of an answer weighs them: how
#: many unanswerable questions a set has is chance, and must not be learned with the size of its memories.
_ANSWERED_SHARE = 0.7
#: Candidates by which the loss of single candidates is divided.
_CANDIDATES = 3


class Scales(NamedTuple):
    """Means and spreads of the features in the training."""

    feature_mean: Vector
    feature_spread: Vector
    query_mean: Vector
    query_spread: Vector

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> Scales:
        """Return those of some samples."""
        features = np.concatenate([sample.features for sample in samples])
        queries = np.stack([sample.query for sample in samples])
        return cls(features.mean(axis=0), features.std(axis=0) + 1e-3, queries.mean(axis=0), queries.std(axis=0) + 1e-3)


class Batch(NamedTuple):
    """Samples of one step, padded."""

    features: Tensor
    query: Tensor
    mask: Tensor
    gold: Tensor
    answered: Tensor
    weights: Tensor
    #: Weights of the loss of an answer.
    answer_weights: Tensor


class Network(nn.Module):
    """Two layers of a transformer over the candidates of a query. The names are keys of the stored weights."""

    def __init__(self, features: int, query: int) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self.cf = _two_layers(features, _FEATURES, _CANDIDATE)
        self.qf = _two_layers(query, _CANDIDATE, _QUERY)
        self.mix = nn.Sequential(nn.Linear(_CANDIDATE + _QUERY, _HIDDEN), _gelu())
        self.set = nn.ModuleList(
            nn.TransformerEncoderLayer(
                _HIDDEN, _HEADS, 2 * _HIDDEN, dropout=_DROPOUT, batch_first=True, norm_first=True
            )
            for _ in range(_LAYERS)
        )
        self.ln = nn.LayerNorm(_HIDDEN)
        self.out, self.pool = nn.Linear(_HIDDEN, 1), nn.Linear(_HIDDEN, 1)
        self.ex = nn.Sequential(nn.Linear(_HIDDEN + _QUERY + 2, _POOLED), _gelu(), nn.Linear(_POOLED, 1))
        self.left_out = nn.Dropout(_DROPOUT)

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the logits of the candidates, and of an answer."""
        query = self.qf(self.left_out(batch.query))
        repeated = query[:, None].expand(-1, batch.features.shape[1], -1)
        hidden = self.mix(torch.cat([self.cf(self.left_out(batch.features)), repeated], -1))
        for layer in self.set:
            hidden = layer(hidden, src_key_padding_mask=~batch.mask)
        hidden = self.ln(hidden)
        items = self.out(hidden)[..., 0].masked_fill(~batch.mask, _NONE)
        shares = self.pool(hidden)[..., 0].masked_fill(~batch.mask, -1e4).softmax(-1)
        pooled = (hidden * shares[..., None]).sum(1)
        return items, self.ex(torch.cat([pooled, query, items.topk(2, -1).values], -1))[:, 0]


def _gelu() -> Any:
    return nn.GELU(approximate="tanh")


def _two_layers(width: int, hidden: int, result: int) -> Any:
    return nn.Sequential(nn.Linear(width, hidden), _gelu(), nn.Dropout(_DROPOUT), nn.Linear(hidden, result))


def trained(samples: Sequence[Sample], scales: Scales, seed: int) -> Network:
    """Return a network trained on samples; the same ones give the same network."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    chance = random.Random(seed)
    network = Network(len(scales.feature_mean), len(scales.query_mean))
    optimizer = torch.optim.AdamW(network.parameters(), lr=_RATE, weight_decay=_DECAY)
    steps = _EPOCHS * math.ceil(len(samples) / _BATCH) + 1
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, _RATE, total_steps=steps, pct_start=0.1)
    order, shares = [*samples], _answered_shares(samples)
    for _ in range(_EPOCHS):
        network.train()
        chance.shuffle(order)
        for start in range(0, len(order), _BATCH):
            optimizer.zero_grad()
            _loss(network, batch_of(order[start : start + _BATCH], scales, shares)).backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    return network.eval()


def _loss(network: Network, batch: Batch) -> Tensor:
    """Return the loss of a batch: of each candidate, of their order, and of an answer."""
    items, answers = network(batch)
    single = losses.binary_cross_entropy_with_logits(items, batch.gold, reduction="none") * batch.mask
    gold = batch.gold.sum(1)
    order = -((items - items.logsumexp(1, keepdim=True)) * batch.gold).sum(1) / gold.clamp(min=1)
    answer = losses.binary_cross_entropy_with_logits(answers, batch.answered, reduction="none") * batch.answer_weights
    total = single.sum(1) / _CANDIDATES + _ORDER_SHARE * order * (gold > 0) + _ANSWER_SHARE * answer
    return (total * batch.weights).mean()


def _answered_shares(samples: Sequence[Sample]) -> Mapping[tuple[str, bool], float]:
    """Return the share of the questions, and of the turns, of each set that have an answer."""
    answered: dict[tuple[str, bool], list[bool]] = {}
    for sample in samples:
        answered.setdefault((sample.set_name, sample.is_turn), []).append(sample.gold_count > 0)
    return {key: sum(values) / len(values) for key, values in answered.items()}


def _answer_weight(sample: Sample, shares: Mapping[tuple[str, bool], float] | None) -> float:
    """Return the weight by which a set has `_ANSWERED_SHARE` questions with an answer; 1 where shares do not matter."""
    share = _ANSWERED_SHARE if shares is None else shares[sample.set_name, sample.is_turn]
    return _ANSWERED_SHARE / share if sample.gold_count else (1 - _ANSWERED_SHARE) / (1 - share)


def batch_of(
    samples: Sequence[Sample], scales: Scales, shares: Mapping[tuple[str, bool], float] | None = None
) -> Batch:
    """Return samples as tensors."""
    width = max(len(sample.gold) for sample in samples)
    features = np.zeros((len(samples), width, len(scales.feature_mean)), np.float32)
    gold, mask = np.zeros((len(samples), width), np.float32), np.zeros((len(samples), width), np.bool_)
    for row, sample in enumerate(samples):
        count = len(sample.gold)
        features[row, :count] = (sample.features - scales.feature_mean) / scales.feature_spread
        gold[row, :count], mask[row, :count] = sample.gold, True
    query = (np.stack([sample.query for sample in samples]) - scales.query_mean) / scales.query_spread
    return Batch(
        features=torch.from_numpy(np.clip(features, -_FEATURE_MAX, _FEATURE_MAX)),
        query=torch.from_numpy(np.clip(query, -_FEATURE_MAX, _FEATURE_MAX)),
        mask=torch.from_numpy(mask),
        gold=torch.from_numpy(gold),
        answered=torch.tensor([float(sample.gold_count > 0) for sample in samples]),
        weights=torch.tensor([_SET_WEIGHTS.get(sample.set_name, 1.0) for sample in samples]),
        answer_weights=torch.tensor([_answer_weight(sample, shares) for sample in samples]),
    )


def weights_of(network: Network, scales: Scales) -> Mapping[str, Vector]:
    """Return the weights as `choice_model` reads them."""
    state: Mapping[str, Any] = network.state_dict()
    return {name: value.numpy() for name, value in state.items()} | scales._asdict()
