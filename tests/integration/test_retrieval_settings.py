"""The settings and the limits of retrieval: what each number does, and that a wrong one is refused by name."""

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
from recollect.api.settings import RetrievalSettings, load_settings, unknown_variables
from recollect.events.errors import InvalidInput
from recollect.projections.schema.time_to_live import TTL_DAYS

_NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


@contextmanager
def memory_with(folder: Path, **settings: Any) -> Generator[Recollect]:
    chosen = load_settings(data=folder, embedding_model="none", **settings)
    with Recollect(settings=chosen, workers=False, clock=lambda: _NOW) as memory:
        yield memory


def asked(folder: Path, query: str, settings: RetrievalSettings | None = None, **options: Any) -> RetrieveResult:
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
    """Append and embed `texts`, one a day up to now."""
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
    with memory_with(tmp_path, recall_limit=2, context_tokens=160) as memory:
        memory.append("a", [message(f"swordfish number {number}") for number in range(15)])
        result = memory.retrieve("a", "swordfish")
        assert len(result.items) == 2
        assert result.tokens <= 160
        assert len(memory.retrieve("a", "swordfish", limit=15).items) < 15
        assert len(memory.retrieve("a", "swordfish", limit=15, budget_tokens=2_000).items) == 15
        assert memory.trace("a", result.trace_id)["query"] == "swordfish"
        # An answer of several parts has them in several messages.
        several = "how many swordfish numbers are there?"
        assert len(memory.retrieve("a", several, budget_tokens=2_000).items) == 4
        assert len(memory.retrieve("a", several, budget_tokens=2_000, limit=3).items) == 3
        _, turn = memory.append_and_retrieve("a", message("swordfish?", session_id="now"))
        assert turn is not None
        assert turn.tokens <= 160


def test_a_larger_limit_extends_the_same_order(tmp_path: Path) -> None:
    told(tmp_path, *(f"swordfish number {number}" for number in range(120)))
    few, many = (asked(tmp_path, "swordfish", ranking="keyword", limit=limit).items for limit in (10, 100))
    assert (len(few), len(many)) == (10, 100)
    assert [item.id for item in few] == [item.id for item in many[:10]]


def test_every_episode_may_be_a_candidate_by_meaning(tmp_path: Path) -> None:
    told(tmp_path, "one two three", "four five six", "seven eight nine")
    items = asked(tmp_path, "one two three", ranking="semantic", gate=False).items
    assert items[0].id == "e0"
    assert {item.id for item in items} == {"e0", "e1", "e2"}


def test_reciprocal_ranks_are_damped_by_sixty(tmp_path: Path) -> None:
    told(tmp_path, "the red sofa is here", "rain", "more rain")
    [item] = asked(tmp_path, "red sofa", ranking="keyword").items
    assert item.score == pytest.approx(1 / 61)


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
    # 32 words are searched, and "sofa" is the one that most episodes have.
    for other_words, ids in ((30, {"e0", "e1", "e2"}), (31, {"e1"})):
        query = " ".join(["sofa lamp", *(f"b{chr(ord('a') + at % 26)}{at}" for at in range(other_words))])
        items = asked(tmp_path, query, ranking="keyword", gate=False).items
        assert {item.id for item in items} == ids


def test_a_message_far_from_the_turns_before_begins_a_new_topic(tmp_path: Path) -> None:
    told(tmp_path, *(f"one two three {number}" for number in range(9)), session_id="now")
    options: dict[str, Any] = {"mode": "passive", "session_id": "now"}
    far = "completely different words about another subject entirely"
    assert asked(tmp_path, far, **options).trigger == "topic change"
    assert asked(tmp_path, "one two three once again please", **options).trigger == "message"


def _old_sessions() -> list[Event]:
    return [message(f"the garden needs rain on day {day}", session_id=f"old {day}") for day in range(5)]


def test_a_new_session_gets_recent_memories_and_the_last_three_sessions(tmp_path: Path) -> None:
    fact = {"type": "fact.stated", "payload": {"subject": "Ann", "predicate": "lives in", "object": "Porto"}}
    with memory_with(tmp_path) as memory:
        memory.append("a", [fact, *_old_sessions()])
        result = memory.retrieve("a", "hello there", mode="passive", session_id="now")
        lists = [name for item in result.items for name in item.ranks]
        assert (lists.count("recent"), lists.count("session")) == (1, 3)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("recall_limit", 0),
        ("context_tokens", -1),
        ("recency_half_life_days", 0),
        ("ttl_days", {"fact": 0}),
        ("ttl_days", {"moods": 30}),
        ("model_wait_seconds", -1),
    ],
)
def test_a_value_that_a_setting_cannot_have_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(InvalidInput, match=f"RECOLLECT_{name.upper()}"):
        load_settings(**{name: value})


def test_the_times_to_live_are_one_variable_that_changes_the_types_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_TTL_DAYS", '{"fact": 365, "task": 36500}')
    assert load_settings().compaction.ttl_days == TTL_DAYS | {"fact": 365, "task": 36_500}
    monkeypatch.setenv("RECOLLECT_TTL_DAYS", '{"moods": 30}')
    with pytest.raises(InvalidInput, match=r"RECOLLECT_TTL_DAYS: moods is not a type; give fact, event, decision"):
        load_settings()
    monkeypatch.setenv("RECOLLECT_TTL_DAYS", "{fact: 365}")
    with pytest.raises(InvalidInput, match="RECOLLECT_TTL_DAYS: is not JSON"):
        load_settings()


def test_the_variable_of_a_setting_that_was_removed_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_FACT_TTL_DAYS", "30")
    monkeypatch.setenv("RECOLLECT_LIST_DEPTH", "30")
    assert unknown_variables() == {
        "RECOLLECT_FACT_TTL_DAYS": "RECOLLECT_FACT_TTL_DAYS is not a setting and has no effect; "
        "did you mean RECOLLECT_TTL_DAYS?",
        "RECOLLECT_LIST_DEPTH": "RECOLLECT_LIST_DEPTH is not a setting and has no effect; "
        "docs/reference/settings.md lists the settings",
    }
