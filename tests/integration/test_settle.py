"""`settle`: the background work of a namespace comes to its end in the caller's thread."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.events import Event, message

from recollect import AsyncRecollect, Recollect
from recollect.api.settings import load_settings
from recollect.events.errors import InvalidInput, InvalidNamespace, NotSettled, ProjectionFailed
from recollect.jobs.queue.settle import settle
from recollect.jobs.queue.settle_result import SettleResult
from recollect.projections.projector import projector

_START = datetime(2026, 1, 5, 9, tzinfo=UTC)
_LONG = "We painted the kitchen in a light green on Saturday, and it took the two of us until late in the evening."


@pytest.fixture
def memory(tmp_path: Path, tiny_model: str) -> Generator[Recollect]:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model=tiny_model), workers=False) as memory:
        yield memory


def said(text: str, minute: int = 0) -> Event:
    return message(text, name="Ann", session_id="s1", occurred_at=_START + timedelta(minutes=minute))


def test_messages_are_read_and_everything_is_embedded(memory: Recollect) -> None:
    memory.append("a", [said("I live in Porto."), said("I am allergic to nuts.", 1)])
    memory.settle("a")
    assert {fact["object"] for fact in memory.facts("a")["items"]} == {"Porto", "nuts"}
    behind = memory.parts.backlog.namespace_backlog("a")
    assert (behind.events, behind.embeddings, behind.messages) == (0, 0, 0)
    assert memory.retrieve("a", "where does Ann live?").degraded == ()
    head = memory.parts.log.head("a").version
    memory.settle("a")
    assert memory.parts.log.head("a").version == head


def test_what_the_jobs_append_is_settled_too(memory: Recollect) -> None:
    memory.append("a", [said(f"{_LONG} ({at})", at) for at in range(150)])
    memory.settle("a")
    assert memory.list("a", "observations")["items"]
    assert memory.parts.backlog.namespace_backlog("a").is_settled
    assert memory.check("a").is_equal


def test_now_is_the_time_that_jobs_work_for(memory: Recollect) -> None:
    memory.append("a", said("Did you see the storm yesterday?"))
    memory.settle("a", now=_START + timedelta(minutes=2))
    assert memory.list("a", "questions")["items"] == []
    memory.settle("a", now="2026-01-05T09:06:00Z")
    assert [one["text"] for one in memory.list("a", "questions")["items"]] == ["Did you see the storm yesterday?"]


@pytest.mark.parametrize("now", ["soon", "7", "2999-01-01T00:00:00Z", datetime(2026, 1, 5), 7])
def test_a_time_that_is_none_without_zone_or_in_the_future_is_refused(memory: Recollect, now: datetime) -> None:
    with pytest.raises(InvalidInput, match="now: "):
        memory.settle("a", now=now)


def test_a_namespace_without_events_is_settled_and_a_wrong_name_is_refused(memory: Recollect) -> None:
    memory.settle("nobody")
    assert memory.parts.log.head("nobody").version == 0
    with pytest.raises(InvalidNamespace):
        memory.settle("")


def test_without_a_model_the_rest_is_done_and_one_that_cannot_be_loaded_is_an_error(tmp_path: Path) -> None:
    for model in ("none", str(tmp_path / "no-model")):
        with Recollect(settings=load_settings(data=tmp_path / "data", embedding_model=model), workers=False) as memory:
            memory.append("a", said("I live in Porto."))
            if model == "none":
                memory.settle("a")
                assert [fact["object"] for fact in memory.facts("a")["items"]] == ["Porto"]
            else:
                with pytest.raises(InvalidInput, match="model: "):
                    memory.settle("a")


def test_a_parked_namespace_is_an_error_that_names_the_event(
    memory: Recollect, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("no such thing")

    memory.append("a", said("I live in Porto."))
    # A handler that fails on an event that the catalogue allows: no event of today's catalogue does that.
    monkeypatch.setattr(projector, "apply_event", fail)
    with pytest.raises(ProjectionFailed, match="version 1 could not be projected: .*no such thing"):
        memory.settle("a")


def test_work_that_does_not_end_is_an_error_after_a_bounded_number_of_rounds(memory: Recollect) -> None:
    memory.append("a", said("I live in Porto."))
    with pytest.raises(NotSettled, match="1 rounds done; call settle again"):
        settle(memory.parts.job_context, memory.parts.backlog, "a", 0, rounds_max=1)
    memory.parts.job_context.stop.set()
    with pytest.raises(NotSettled, match="being closed"):
        memory.settle("a")


def test_a_settlement_says_what_is_left_when_the_time_is_over(memory: Recollect) -> None:
    memory.append("a", [said("I live in Porto.", at) for at in range(3)])
    unsettled = memory.settle("a", timeout_seconds=0)
    assert (unsettled.is_settled, unsettled.version, unsettled.events) == (False, 3, 3)
    assert unsettled.missing[0] == "read model: 3 events not projected"
    settled = memory.settle("a", timeout_seconds=60)
    assert (settled.is_settled, settled.missing, settled.model) == (True, (), "ready")
    assert settled.version == memory.parts.log.head("a").version > 3
    assert SettleResult.from_json(settled.as_json()) == settled
    with pytest.raises(InvalidInput, match="timeout_seconds: "):
        memory.settle("a", timeout_seconds=-1)


def test_workers_and_settle_do_the_work_once(tmp_path: Path, tiny_model: str) -> None:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model=tiny_model)) as memory:
        for at in range(20):
            memory.append("a", said("I live in Porto.", at))
            memory.settle("a")
            assert memory.parts.backlog.namespace_backlog("a").is_settled
        (fact,) = [fact for fact in memory.facts("a")["items"] if fact["predicate"] == "lives in"]
        assert len(fact["source_events"]) == len(set(fact["source_events"])) == 20


def test_the_async_twin_settles(tmp_path: Path) -> None:
    async def run() -> None:
        async with AsyncRecollect(
            settings=load_settings(data=tmp_path, embedding_model="none"), workers=False
        ) as memory:
            await memory.append("a", said("I live in Porto."))
            await memory.settle("a", now="2026-01-06T09:00:00Z")
            assert [fact["object"] for fact in (await memory.facts("a"))["items"]] == ["Porto"]

    asyncio.run(run())
