"""Summaries stand for episodes, episodes expire, and replay agrees with what was folded live."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.events import Event, message
from support.read_models import rows

from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.validation import drafts
from recollect.projections.read_models.read_models import ReadModels

_IDS = [f"e{number}" for number in range(1, 15)]


def summary(kind: str, sources: list[str], text: str = "They met.", **fields: Any) -> Event:
    return {"type": kind, "payload": {"text": text, "source_events": sources, **fields}, "session_id": "s1"}


def expired(*ids: str) -> Event:
    return {"type": "episodes.expired", "payload": {"episode_ids": list(ids)}}


@pytest.fixture
def tell(log: SqliteLog, models: ReadModels) -> Callable[..., None]:
    """Append events with the ids e1, e2 … and fold them."""
    told = iter(_IDS)

    def tell(*events: Event) -> None:
        log.append("a", drafts([event | {"id": next(told)} for event in events]))
        models.catch_up("a")

    return tell


def found(models: ReadModels, word: str) -> list[str]:
    query = (
        f"SELECT id FROM episodes_fts JOIN episodes ON version = episodes_fts.rowid WHERE episodes_fts MATCH '{word}'"
    )
    return [row[0] for row in rows(models, f"{query} ORDER BY version")]


def turns(*texts: str) -> list[Event]:
    return [message(text, session_id="s1", name="Ann") for text in texts]


def test_a_summary_stands_beside_what_it_stands_for(tell: Callable[..., None], models: ReadModels) -> None:
    tell(*turns("red apples", "green pears"), summary("episodes.compressed", ["e1", "e2"], "fruit"))
    assert rows(models, "SELECT id, tier FROM episodes") == [("e1", "raw"), ("e2", "raw"), ("e3", "compressed")]
    assert rows(models, "SELECT version, source, id FROM episode_sources") == [(3, 1, "e1"), (3, 2, "e2")]
    assert found(models, "fruit") == ["e3"]


def test_a_summary_is_found_by_the_words_of_what_it_stands_for(tell: Callable[..., None], models: ReadModels) -> None:
    tell(*turns("red apples", "12 pears"), summary("episodes.compressed", ["e1", "e2"], "fruit"), expired("e1", "e2"))
    assert found(models, "apples") == ["e3"]
    tell(summary("episode.distilled", ["e3"], "fruit"))
    assert found(models, "apples") == found(models, "12") == ["e5"]


def test_a_distilled_summary_takes_the_place_of_the_compressed_one(
    tell: Callable[..., None], models: ReadModels
) -> None:
    tell(*turns("red apples"), summary("episodes.compressed", ["e1"], "fruit"), summary("episode.distilled", ["e2"]))
    assert rows(models, "SELECT id, tier FROM episodes") == [("e1", "raw"), ("e3", "distilled")]
    assert rows(models, "SELECT version, source FROM episode_sources") == [(3, 1)]
    assert found(models, "fruit") == []


def test_what_expires_leaves_the_keyword_index_and_the_turn_after_it(
    tell: Callable[..., None], models: ReadModels
) -> None:
    tell(*turns("red apples", "green pears"))
    assert found(models, "apples") == ["e1", "e2"]
    tell(expired("e1"))
    assert found(models, "apples") == []
    assert found(models, "pears") == ["e2"]
    assert models.check("a").is_equal


def test_an_invalidated_episode_is_not_found_but_kept(tell: Callable[..., None], models: ReadModels) -> None:
    tell(*turns("red apples"), {"type": "memory.invalidated", "payload": {"memory_id": "e1"}})
    assert found(models, "apples") == []
    assert rows(models, "SELECT status FROM episodes") == [("invalidated",)]


def test_what_a_source_mentions_stays_as_long_as_its_summary(tell: Callable[..., None], models: ReadModels) -> None:
    names = "SELECT name, version FROM mentions JOIN entities ON id = entity_id"
    tell(*turns("yesterday I met Robert"), summary("episodes.compressed", ["e1"], "a meeting"), expired("e1"))
    assert rows(models, names) == [("Robert", 1)]
    tell(summary("episode.distilled", ["e2"], "a meeting"))
    assert rows(models, names) == [("Robert", 1)]
    tell(expired("e4"))
    assert rows(models, names) == []


def test_a_summary_keeps_the_status_of_its_sources(tell: Callable[..., None], models: ReadModels) -> None:
    statuses = "SELECT source, status FROM episode_sources ORDER BY source"
    invalidated = {"type": "memory.invalidated", "payload": {"memory_id": "e1"}}
    tell(*turns("red apples", "green pears"), summary("episodes.compressed", ["e1", "e2"], "fruit"))
    tell(expired("e1", "e2"), invalidated)
    assert rows(models, statuses) == [(1, "invalidated"), (2, "active")]
    tell(summary("episode.distilled", ["e3"], "fruit"))
    assert rows(models, statuses) == [(1, "invalidated"), (2, "active")]
    assert models.check("a").is_equal


_TEXTS = ["red apples", "green pears", "I met Robert", "Zoë knows Robert"]


@st.composite
def _events(draw: st.DrawFn) -> Event:
    """A message, or what happens to episodes that may be there, may come later or may never come."""
    ids = draw(st.lists(st.sampled_from(_IDS), min_size=1, max_size=4))
    kinds = ["message.added"] * 4 + ["episodes.compressed", "conversation.compacted", "episode.distilled"]
    kinds += ["episodes.expired", "memory.pinned", "memory.invalidated", "memory.status_changed", "memories.merged"]
    match draw(st.sampled_from([*kinds, "turns.summarised"])):
        case "message.added":
            session = draw(st.sampled_from(["s1", "s2", None]))
            return message(draw(st.sampled_from(_TEXTS)), session_id=session, name="Ann")
        case "episodes.expired":
            return expired(*ids)
        case "memory.pinned" | "memory.invalidated" as kind:
            return {"type": kind, "payload": {"memory_id": ids[0]}}
        case "memory.status_changed" as kind:
            status = draw(st.sampled_from(["active", "stale", "superseded"]))
            return {"type": kind, "payload": {"memory_id": ids[0], "status": status}}
        case "memories.merged" as kind:
            return {"type": kind, "payload": {"kept_id": ids[0], "merged_ids": ids}}
        case "turns.summarised" as kind:
            return {"type": kind, "payload": {"summaries": [{"event_id": ids[0], "text": "short"}]}}
        case kind:
            return summary(kind, ids, draw(st.sampled_from(_TEXTS)))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    history=st.lists(_events(), min_size=1, max_size=len(_IDS)),
    batch=st.integers(1, 6),
    bulk=st.integers(1, 6),
)
def test_any_history_of_summaries_and_expiry_replays_to_what_was_folded_live(
    history: list[Event],
    batch: int,
    bulk: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder: Path = tmp_path_factory.mktemp("tiers")
    log = SqliteLog(folder / "log.db")
    read_models = ReadModels(folder, log, first_batch_events=batch, batch_events=batch, replay_batch_events=bulk)
    try:
        log.append("a", drafts([event | {"id": id} for id, event in zip(_IDS, history, strict=False)]))
        check = read_models.check("a")
        assert check.is_equal, check
    finally:
        read_models.close()
        log.close()
