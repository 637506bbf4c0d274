"""The training of the choice model computes what the product computes, and reads its labelled chats."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from recollect.api.retrieval.ranking.choice_inputs import CANDIDATE_FEATURES, QUERY_FEATURES, ChoiceInputs
from recollect.api.retrieval.ranking.choice_model import chances, stacked

_FOLDER = Path(__file__).parents[2] / "ops" / "train" / "relevance"


def _module(name: str) -> Any:
    """Return a module of the training command."""
    sys.path.insert(0, str(_FOLDER))
    try:
        return import_module(name)
    finally:
        sys.path.remove(str(_FOLDER))


def test_every_label_of_the_chats_names_a_message() -> None:
    chats = _module("labelled_chats").read_chats()
    assert len(chats) > 100
    assert all(chat.asked for chat in chats)


def test_the_lines_of_held_out_writers_are_no_lines_of_the_training() -> None:
    read_asks = _module("labelled_chats").read_asks
    trained, held_out = read_asks(held_out=False), read_asks(held_out=True)
    assert {line.writer for line in held_out} == {"held-out", "held-out-2"}
    assert not {line.text for line in trained} & {line.text for line in held_out}
    assert len(trained) > 1_000


def test_a_trained_network_gives_the_probabilities_of_the_product() -> None:
    network, samples, torch = _module("network"), _module("samples"), import_module("torch")
    chance = np.random.default_rng(2)
    made = [
        samples.Sample(
            chat=f"chat-{number}",
            set_name="chats",
            text="where is it",
            is_turn=False,
            is_foreign=False,
            is_near_general=False,
            features=chance.normal(size=(5, len(CANDIDATE_FEATURES))).astype(np.float32),
            query=chance.normal(size=len(QUERY_FEATURES)).astype(np.float32),
            embedding=np.zeros(384, np.float32),
            gold=np.arange(5) == number % 5,
            gold_count=number % 2,
        )
        for number in range(8)
    ]
    scales = network.Scales.of(made)
    trained = network.trained(made, scales, seed=1)
    stored = {f"0.{name}": value for name, value in network.weights_of(trained, scales).items()}
    batch = network.batch_of(made[:1], scales)
    with torch.no_grad():
        items, answer = trained(batch)
    of_product = chances(ChoiceInputs(np.arange(5), made[0].features, made[0].query), stacked(stored))
    assert np.allclose(of_product.items, items.sigmoid().numpy()[0], atol=1e-4)
    assert np.isclose(of_product.answer, float(answer.sigmoid()[0]), atol=1e-4)
