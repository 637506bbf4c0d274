"""A cross-encoder that looks at the first episodes again: a real one, random and small."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from support.events import message
from support.tiny_model import make_tiny_reranker

from recollect.api.memory.recollect import Recollect
from recollect.api.retrieval.contract.time_budget import TimeBudget
from recollect.api.retrieval.ranking.reranker import Reranker
from recollect.api.settings import load_settings

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")

_TEXTS = ["the cat likes tea", "tea and a bridge", "a kitten, a cat and tea", "tax for tea", "the number of teas"]


def memory_of(tmp_path: Path, reranker: str) -> Recollect:
    settings = load_settings(data=tmp_path / "data", embedding_model="none", reranker=reranker)
    memory = Recollect(settings=settings, workers=False)
    memory.append("a", [message(text, session_id="s") for text in _TEXTS])
    return memory


def test_the_first_items_are_in_the_order_of_the_cross_encoder(tmp_path: Path) -> None:
    path = make_tiny_reranker(tmp_path, seed=1)
    with memory_of(tmp_path, "") as memory:
        before = memory.retrieve("a", "cat tea", gate=False)
    with memory_of(tmp_path / "other", str(path)) as memory:
        memory.retrieve("a", "cat tea")
        ready: Any = memory.parts.reranker
        assert ready.wait_ready(60)
        after = memory.retrieve("a", "cat tea", gate=False)
    sentence_transformers: Any = import_module("sentence_transformers")
    encoder: Any = sentence_transformers.CrossEncoder(str(path))
    texts = [item.text for item in before.items]
    scores = dict(zip(texts, encoder.predict([("cat tea", text) for text in texts]).tolist(), strict=True))
    assert after.degraded == before.degraded
    assert [item.text for item in after.items] == sorted(texts, key=lambda text: -scores[text])
    assert [item.ranks["reranker"] for item in after.items] == list(range(1, len(texts) + 1))
    # How likely the best one is does not change with which one it is.
    # Nearly: the messages of the other memory are a moment younger.
    assert [item.score for item in after.items] == pytest.approx([item.score for item in before.items], rel=1e-3)


def test_a_model_that_is_not_there_is_left_out_and_named(tmp_path: Path) -> None:
    with memory_of(tmp_path, "") as memory:
        before = memory.retrieve("a", "cat tea")
    with memory_of(tmp_path / "other", str(tmp_path / "nowhere")) as memory:
        memory.retrieve("a", "cat tea")
        ready: Any = memory.parts.reranker
        assert not ready.wait_ready(60)
        after = memory.retrieve("a", "cat tea")
    assert [item.text for item in after.items] == [item.text for item in before.items]
    assert any("RECOLLECT_RERANKER" in part for part in after.degraded)


def test_one_that_is_late_is_not_waited_for(tmp_path: Path) -> None:
    reranker = Reranker(str(make_tiny_reranker(tmp_path, seed=2)))
    reranker.start()
    assert reranker.wait_ready(60)
    with memory_of(tmp_path, "") as memory:
        items = memory.retrieve("a", "cat tea").items
    budget = TimeBudget(0)
    assert reranker.rerank("cat tea", items, budget) == list(items)
    assert budget.degraded == ["reranker: out of time"]
    reranker.close()
