"""The settings of retrieval: each number changes what a retrieval does, and one that cannot be is refused by name."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.embedders import HashingEmbedder
from support.events import Event, message
from support.memory import Memory

from recollect import Recollect
from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.api.retrieval.contract.result import RetrieveResult
from recollect.api.retrieval.retriever import Retriever
from recollect.api.settings import RetrievalSettings, load_settings
from recollect.events.errors import InvalidInput

_NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


@contextmanager
def memory_with(folder: Path, **settings: Any) -> Generator[Recollect]:
    chosen = load_settings(data=folder, embedding_model="none", **settings)
    with Recollect(settings=chosen, workers=False, clock=lambda: _NOW) as memory:
        yield memory


def asked(folder: Path, query: str, settings: RetrievalSettings, **options: Any) -> RetrieveResult:
    """Ask a memory that has vectors, with `settings`."""
    with Memory(folder, clock=lambda: _NOW) as memory:
        vectors = memory.vectors(HashingEmbedder())
        retriever = Retriever(
            memory.models, memory.history, lambda: vectors, settings=settings, budget_ms=30_000, clock=lambda: _NOW
        )
        result = retriever.retrieve("a", RetrieveRequest(query=query, **options))
        retriever.close()
        return result


def told(folder: Path, *texts: str, session_id: str = "s") -> None:
    """Tell and embed `texts`, one a day up to now."""
    with Memory(folder) as memory:
        first = _NOW - timedelta(days=len(texts))
        memory.add(
            [
                message(text, id=f"e{day}", session_id=session_id, occurred_at=first + timedelta(days=day))
                for day, text in enumerate(texts)
            ]
        )
        memory.embed()


def test_the_default_limits_are_settings_and_a_request_may_give_its_own(tmp_path: Path) -> None:
    with memory_with(tmp_path, recall_limit=2, context_tokens=120) as memory:
        memory.append("a", [message(f"swordfish number {number}") for number in range(15)])
        result = memory.retrieve("a", "swordfish")
        assert len(result.items) == 2
        assert result.tokens <= 120
        assert len(memory.retrieve("a", "swordfish", limit=15).items) < 15
        assert len(memory.retrieve("a", "swordfish", limit=15, budget_tokens=2_000).items) == 15
        assert memory.trace("a", result.trace_id)["query"] == "swordfish"
        # An answer of several parts has them in several messages.
        several = "how many swordfish numbers are there?"
        assert len(memory.retrieve("a", several, budget_tokens=2_000).items) == 4
        assert len(memory.retrieve("a", several, budget_tokens=2_000, limit=3).items) == 3
        _, turn = memory.append_and_retrieve("a", message("swordfish?", session_id="now"))
        assert turn is not None
        assert turn.tokens <= 120


def test_the_depth_of_the_lists_limits_the_candidates(tmp_path: Path) -> None:
    told(tmp_path, *(f"swordfish number {number}" for number in range(40)))
    for depth in (10, 30):
        result = asked(tmp_path, "swordfish", RetrievalSettings(list_depth=depth), ranking="keyword", limit=100)
        assert len(result.items) == depth


def test_an_episode_is_no_candidate_by_meaning_under_the_recall_threshold(tmp_path: Path) -> None:
    told(tmp_path, "one two three", "four five six", "seven eight nine")
    for cosine_min, ids in ((0.6, {"e0"}), (-1.0, {"e0", "e1", "e2"})):
        settings = RetrievalSettings(recall_cosine_min=cosine_min)
        items = asked(tmp_path, "one two three", settings, ranking="semantic", gate=False).items
        assert {item.id for item in items} == ids


def test_reciprocal_ranks_are_damped_by_k(tmp_path: Path) -> None:
    told(tmp_path, "the red sofa is here", "rain", "more rain")
    for k in (1, 60):
        [item] = asked(tmp_path, "red sofa", RetrievalSettings(reciprocal_rank_k=k), ranking="keyword").items
        assert item.score == pytest.approx(1 / (k + 1))


@pytest.mark.parametrize("ranking", ["keyword", "weighted"])
def test_a_half_life_puts_new_episodes_before_better_ones_that_are_old(tmp_path: Path, ranking: str) -> None:
    told(tmp_path, "the red sofa of velvet", *(f"it rains on day {day}" for day in range(60)), "a sofa")
    options = {"ranking": ranking, "gate": False, "limit": 100}
    items = asked(tmp_path, "red sofa velvet", RetrievalSettings(), **options).items
    assert items[0].id == "e0"
    items = asked(tmp_path, "red sofa velvet", RetrievalSettings(recency_half_life_days=1), **options).items
    assert [item.id for item in items].index("e61") < [item.id for item in items].index("e0")


def test_only_so_many_words_are_searched_the_rarest_first(tmp_path: Path) -> None:
    told(tmp_path, "sofa sofa", "sofa lamp", "sofa chair")
    for words_max, ids in ((32, {"e0", "e1", "e2"}), (1, {"e1"})):
        settings = RetrievalSettings(query_words_max=words_max)
        items = asked(tmp_path, "sofa lamp", settings, ranking="keyword", gate=False).items
        assert {item.id for item in items} == ids


def test_the_distance_of_a_new_topic_is_a_setting(tmp_path: Path) -> None:
    told(tmp_path, *(f"one two three {number}" for number in range(9)), session_id="now")
    options = {"mode": "passive", "session_id": "now"}
    far = "completely different words about another subject entirely"
    assert asked(tmp_path, far, RetrievalSettings(topic_cosine_min=1), **options).trigger == "topic change"
    assert asked(tmp_path, far, RetrievalSettings(topic_cosine_min=-1), **options).trigger == "message"


def _old_sessions() -> list[Event]:
    return [message(f"the garden needs rain on day {day}", session_id=f"old {day}") for day in range(5)]


def test_a_new_session_gets_as_many_recent_memories_as_set(tmp_path: Path) -> None:
    fact = {"type": "fact.stated", "payload": {"subject": "Ann", "predicate": "lives in", "object": "Porto"}}
    for number, recent in enumerate((0, 3)):
        folder = tmp_path / str(number)
        with memory_with(folder, recent_memories_max=recent, recent_sessions_max=recent) as memory:
            memory.append("a", [fact, *_old_sessions()])
            result = memory.retrieve("a", "hello there", mode="passive", session_id="now")
            lists = [name for item in result.items for name in item.ranks]
            assert (lists.count("recent"), lists.count("session")) == (min(recent, 1), recent)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("recall_limit", 0),
        ("context_tokens", -1),
        ("context_history_share", 1.5),
        ("list_depth", 5),
        ("recall_cosine_min", 2),
        ("reciprocal_rank_k", 0),
        ("recency_half_life_days", 0),
        ("graph_depth", 6),
        ("graph_confidence_min", -0.1),
        ("topic_cosine_min", -2),
        ("fact_ttl_days", 0),
        ("window_kept_share", 0),
        ("model_wait_seconds", -1),
    ],
)
def test_a_value_that_a_setting_cannot_have_is_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(InvalidInput, match=f"RECOLLECT_{name.upper()}"):
        load_settings(**{name: value})
