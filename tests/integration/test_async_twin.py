"""`AsyncRecollect` beside `Recollect`: the same methods with the same signatures, and each one does the same."""

from __future__ import annotations

import inspect
import threading
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.events import message

from recollect import AsyncRecollect, Recollect
from recollect.api.assembly import memory_parts
from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.api.settings import load_settings
from recollect.events.errors import NotFound
from recollect.jobs.forgetting import forget_events

_START = datetime(2026, 1, 5, 9, tzinfo=UTC)


def methods(owner: type) -> dict[str, inspect.Signature]:
    """Return the public methods of a class with their signatures, annotations as they are written."""
    members = inspect.getmembers(owner, inspect.isfunction)
    found = {name: member for name, member in members if name[0] != "_"}
    assert all(member.__doc__ for member in found.values())
    return {name: inspect.signature(member) for name, member in found.items()}


#: What returns the object of an `async with` or `with` block, or an iterator.
OWN_FORMS = {"turn", "follow"}


def test_both_have_the_same_methods_with_the_same_signatures() -> None:
    ours, theirs = methods(AsyncRecollect), methods(Recollect)
    for name in OWN_FORMS:
        assert ours.pop(name).parameters.keys() == theirs.pop(name).parameters.keys()
    assert ours == theirs
    assert inspect.signature(AsyncRecollect) == inspect.signature(Recollect)


def test_every_method_of_the_async_one_is_awaited_and_no_method_of_the_other() -> None:
    assert all(
        inspect.iscoroutinefunction(getattr(AsyncRecollect, name))
        for name in methods(AsyncRecollect).keys() - OWN_FORMS
    )
    assert not any(inspect.iscoroutinefunction(getattr(Recollect, name)) for name in methods(Recollect))


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncGenerator[AsyncRecollect]:
    async with AsyncRecollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        yield memory


async def converse(memory: AsyncRecollect, turns: int) -> None:
    text = "We painted the kitchen in a light green on Saturday, and it took the two of us until late in the evening."
    await memory.append(
        "a",
        [
            message(f"{text} ({at})", id=f"t{at}", session_id="s1", occurred_at=_START + timedelta(minutes=at))
            for at in range(turns)
        ],
    )


async def test_a_retrieval_leaves_a_trace_that_is_listed_and_found(memory: AsyncRecollect) -> None:
    await memory.append("a", message("I love tea"))
    result = await memory.retrieve("a", "tea")
    assert [one["trace_id"] for one in (await memory.traces("a", limit=5))["items"]] == [result.trace_id]
    assert (await memory.trace("a", result.trace_id))["query"] == "tea"
    with pytest.raises(NotFound):
        await memory.trace("a", "nothing")


async def test_events_are_appended_and_what_belongs_to_them_is_retrieved(memory: AsyncRecollect) -> None:
    await memory.append("a", message("the red sofa is from Porto", id="e1", session_id="old"))
    question = message("where is the red sofa from?", session_id="new")
    recorded, result = await memory.append_and_retrieve("a", question, expected_version=1, limit=3)
    assert [one.version for one in recorded] == [2]
    assert result is not None
    assert [item.id for item in result.items] == ["e1"]
    request = RetrieveRequest(query="where is the red sofa from?", mode="passive")
    assert [item.id for item in (await memory.retrieve_for("a", request, recorded)).items] == ["e1"]


async def test_facts_the_graph_and_versions_are_those_of_a_moment(memory: AsyncRecollect) -> None:
    stated = {"type": "fact.stated", "payload": {"subject": "Ann", "predicate": "lives in", "object": "Porto"}}
    knows = {"type": "relationship.stated", "payload": {"source": "Ann", "type": "knows", "target": "Bob"}}
    await memory.append("a", [stated, knows])
    assert [fact["object"] for fact in (await memory.facts("a", as_of=1))["items"]] == ["Porto"]
    assert (await memory.facts("a", as_of=0))["items"] == []
    fact_id = (await memory.facts("a"))["items"][0]["id"]
    assert [fact["object"] for fact in (await memory.fact_history("a", fact_id))["items"]] == ["Porto"]
    assert (await memory.graph("a", "Ann", depth=1))["nodes"] == ["Ann", "Bob"]
    assert (await memory.graph("a", "Ann", depth=1, as_of=1))["nodes"] != ["Ann", "Bob"]
    assert (await memory.version("a", 1), await memory.version("a", None)) == (1, None)
    assert await memory.version("a", datetime(2020, 1, 1, tzinfo=UTC)) == 0


async def test_a_night_compresses_and_the_exact_words_stay(memory: AsyncRecollect) -> None:
    await converse(memory, 8)
    night = _START + timedelta(days=2)
    assert (await memory.compact("a", now=night, dry_run=True)).events["compress"] == 1
    assert (await memory.tiers("a"))["compressed"].episodes == 0
    assert (await memory.compact("a", now=night)).events["compress"] == 1
    tiers = await memory.tiers("a")
    assert (tiers["raw"].episodes, tiers["compressed"].episodes) == (8, 1)
    episodes = (await memory.episodes("a"))["items"]
    (summary,) = [one["id"] for one in episodes if one["tier"] == "compressed"]
    assert [source.id for source in await memory.sources("a", summary)] == [f"t{at}" for at in range(8)]


async def test_a_conversation_is_fitted_to_a_budget(memory: AsyncRecollect) -> None:
    await converse(memory, 40)
    window = await memory.window("a", "s1", budget_tokens=1_200)
    assert window.compacted
    assert window.tokens <= 1_200


async def test_embedding_tells_its_progress(tmp_path: Path, tiny_model: str) -> None:
    told: list[str] = []
    async with AsyncRecollect(
        settings=load_settings(data=tmp_path, embedding_model=tiny_model), workers=False
    ) as memory:
        await memory.append("a", message("I love tea"))
        assert await memory.embed(on_progress=lambda what, _done, _total: told.append(what)) == 1
    assert told[-1] == "a"


async def test_the_scheduler_can_be_left_out(tmp_path: Path) -> None:
    async with AsyncRecollect(tmp_path, settings=load_settings(embedding_model="none"), schedule=False) as memory:
        assert memory.memory.parts.workers is not None
        assert {beat.role for beat in memory.memory.parts.run_store.heartbeats()} <= {"worker"}


async def test_only_what_may_ask_to_forget_is_read_by_another_thread(
    memory: AsyncRecollect, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It is compared with all messages, which would hold up the event loop for seconds.
    threads: list[int] = []

    def with_forgettings(*arguments: Any) -> Any:
        threads.append(threading.get_ident())
        return forget_events.with_forgettings(*arguments)

    monkeypatch.setattr(memory_parts, "with_forgettings", with_forgettings)
    await memory.append("a", [message("I like green tea.", id="m1")])
    await memory.append("a", [message("Please forget that I like green tea.", id="m2")])
    assert threads[0] == threading.get_ident() != threads[1]
