"""What the memory says as of a moment of the past."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.embedders import HashingEmbedder
from support.events import Event, histories, message
from support.memory import comparable
from support.past import append, files, numbered, texts
from support.read_models import connection_of

from recollect.api.as_of import parse_as_of
from recollect.api.memory.recollect import Recollect
from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.api.retrieval.contract.result import RetrieveResult
from recollect.api.retrieval.retriever import Retriever
from recollect.api.settings import load_settings
from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.envelope import datetime_of, now_us
from recollect.events.errors import InvalidInput
from recollect.events.validation import drafts
from recollect.projections.embeddings.embedder import Embedder, NoEmbedder
from recollect.projections.embeddings.vectors import Vectors
from recollect.projections.read_models.history import History
from recollect.projections.read_models.read_models import ReadModels
from recollect.projections.schema.content_hash import content_hash


class Memory:
    """A log, its read models and retrieval, in a folder of its own."""

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        self.log = SqliteLog(folder / "log.db")
        self.models = ReadModels(folder, self.log)
        self.history = History(folder, self.log, self.models)
        self.vectors = Vectors(folder, self.models, embedder)
        self.retriever = Retriever(
            self.models, self.history, lambda: self.vectors, budget_ms=60_000, fence_key=b"fence"
        )

    def add(self, events: list[Event]) -> None:
        self.log.append("a", drafts(events))
        self.models.catch_up("a")
        self.vectors.embed_new("a")

    def ask(self, query: str, **options: Any) -> RetrieveResult:
        return self.retriever.retrieve("a", RetrieveRequest(query=query, **options))

    def close(self) -> None:
        for part in (self.retriever, self.history, self.vectors, self.models, self.log):
            part.close()


# -- what is seen -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("embedder", [HashingEmbedder(), NoEmbedder()])
def test_what_was_added_or_described_later_is_not_seen_as_of_before(tmp_path: Path, embedder: Embedder) -> None:
    memory = Memory(tmp_path, embedder)
    described = {"type": "entity.described", "payload": {"name": "Rex", "type": "other", "description": "a dog"}}
    corrected = {"type": "entity.described", "payload": {"name": "Rex", "type": "other", "description": "a cat"}}
    memory.add([message("the sofa is red", id="e1"), described])
    memory.add([corrected, message("Rex tore the red sofa to pieces, the sofa is gone", id="e4")])

    now, then = memory.ask("Rex and the sofa"), memory.ask("Rex and the sofa", as_of=2)
    assert [item.id for item in then.items] == ["Rex", "e1"]
    assert "a dog" in then.context
    assert then.version == 2
    assert {item.id for item in now.items} == {"Rex", "e1", "e4"}
    assert "a cat" in now.context
    memory.close()


@given(history=histories(max_size=12), data=st.data())
def test_an_answer_as_of_a_version_is_that_of_a_memory_with_nothing_after_it(
    tmp_path_factory: pytest.TempPathFactory, history: list[Event], data: st.DataObject
) -> None:
    events = [event | {"id": f"e{number}"} for number, event in enumerate(history, start=1)]
    version = data.draw(st.integers(1, len(events)))
    query = data.draw(st.sampled_from(["what did Ann say?", "Hello", "tea", "Bob and Zoë in São Paulo", "rains"]))
    whole = Memory(tmp_path_factory.mktemp("whole"), HashingEmbedder())
    until = Memory(tmp_path_factory.mktemp("until"), HashingEmbedder())
    # Embedded in two steps: of what expires before it is embedded there is no vector.
    for part in (events[:version], events[version:]):
        if part:
            whole.add(part)
    until.add(events[:version])
    past, present = whole.ask(query, as_of=version), until.ask(query)
    assert (comparable(past), past.degraded) == (comparable(present), present.degraded)
    whole.close()
    until.close()


@given(history=histories(), data=st.data())
def test_the_read_model_of_any_version_equals_a_live_one_that_was_folded_only_so_far(
    tmp_path_factory: pytest.TempPathFactory, history: list[Event], data: st.DataObject
) -> None:
    version = data.draw(st.integers(0, len(history)))
    folder = tmp_path_factory.mktemp("live")
    log = SqliteLog(folder / "log.db")
    models = ReadModels(folder, log)
    past = History(folder, log, models)
    pending = drafts(history)
    if version:
        log.append("a", pending[:version])
    models.catch_up("a")
    with models.reading("a") as snapshot:
        live = content_hash(connection_of(snapshot))
    if pending[version:]:
        log.append("a", pending[version:])
    models.catch_up("a")
    with past.reading("a", version) as snapshot:
        assert content_hash(connection_of(snapshot)) == live
    past.close()
    models.close()
    log.close()


def test_the_digest_is_that_of_a_log_that_holds_only_those_events_every_time(
    tmp_path: Path, log: SqliteLog, history: History
) -> None:
    events = [event | {"occurred_at": "2026-01-01T10:00:00Z"} for event in numbered(8)]
    append(log, *events)
    fresh = SqliteLog(tmp_path / "fresh.db")
    append(fresh, *events[:5])
    # A digest covers the log's name too.
    fresh.log_id = log.log_id
    models = ReadModels(tmp_path / "fresh", fresh)
    models.catch_up("a")
    with models.reading("a") as snapshot:
        expected = content_hash(connection_of(snapshot))
    first, second = (history.build("a", 5) for _ in range(2))
    assert first == second
    assert first[1] == expected
    models.close()
    fresh.close()


def test_the_newest_version_is_answered_by_the_live_read_model(
    tmp_path: Path, log: SqliteLog, history: History
) -> None:
    append(log, *numbered(2))
    assert texts(history, 2) == ["number 1", "number 2"]
    assert files(tmp_path) == []
    append(log, message("later"))
    assert texts(history, 2) == ["number 1", "number 2"]
    assert files(tmp_path) == [2]


# -- moments ----------------------------------------------------------------------------------------------------------


def test_a_version_and_the_time_of_its_recording_mean_the_same(tmp_path: Path) -> None:
    ticks = iter(range(1_000_000, 100_000_000, 1_000_000))
    log = SqliteLog(tmp_path / "log.db", clock=lambda: next(ticks))
    models = ReadModels(tmp_path, log)
    history = History(tmp_path, log, models)
    for event in numbered(7):
        append(log, event)
    for event in log.read("a"):
        at_us = event.recorded_at_us
        assert history.version("a", datetime_of(at_us)) == history.version("a", event.version) == event.version
        assert history.version("a", datetime_of(at_us - 1)) == event.version - 1
        assert history.version("a", datetime_of(at_us + 1)) == event.version
    assert history.version("a", datetime_of(now_us() - 1)) == 7
    history.close()
    models.close()
    log.close()


def test_of_events_that_were_recorded_at_the_same_time_the_last_counts(log: SqliteLog, history: History) -> None:
    append(log, *numbered(5))
    assert history.version("a", datetime_of(log.read("a")[0].recorded_at_us)) == 5


def test_a_namespace_without_events_is_empty_at_any_time_and_has_no_version_1(tmp_path: Path, history: History) -> None:
    assert history.version("nobody", 0) == history.version("nobody", datetime(2026, 1, 1, tzinfo=UTC)) == 0
    assert texts(history, 0, "nobody") == []
    assert not (tmp_path / "as-of").exists()
    with pytest.raises(InvalidInput, match="as_of: give a version from 0 to 0"):
        history.version("nobody", 1)


@pytest.mark.parametrize("as_of", [4, -1, datetime_of(now_us() + 3_600_000_000)])
def test_a_moment_that_is_not_there_yet_is_refused(log: SqliteLog, history: History, as_of: int | datetime) -> None:
    append(log, *numbered(3))
    with pytest.raises(InvalidInput) as refused:
        history.version("a", as_of)
    assert refused.value.field == "as_of"


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        (None, None),
        (0, 0),
        (42, 42),
        ("42", 42),
        ("2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2026-01-02t03:04:05.5+01:00", datetime(2026, 1, 2, 2, 4, 5, 500_000, tzinfo=UTC)),
        (datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)),
    ],
)
def test_a_moment_is_a_version_or_a_time_also_as_text(value: object, meant: object) -> None:
    assert parse_as_of(value) == meant
    assert RetrieveRequest.model_validate({"query": "x", "as_of": value}).as_of == meant


_NO_MOMENTS: list[object] = [
    *("", "yesterday", "-1", "1.5", "²", "9" * 5_000, "2026-01-02", "2026-01-02T03:04:05", "2026-13-02T03:04:05Z"),
    *("2026-01-02T03:04:05 01:00", -1, 1.5, True, 10**4_000, [1], datetime(2026, 1, 2)),
]


@pytest.mark.parametrize("value", _NO_MOMENTS, ids=range(len(_NO_MOMENTS)))
def test_anything_else_is_refused_by_name(tmp_path: Path, value: Any) -> None:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        asked: list[Callable[[], object]] = [
            lambda: memory.retrieve("a", "x", as_of=value),
            lambda: memory.events("a", as_of=value),
            lambda: memory.entities("a", as_of=value),
        ]
        for ask in asked:
            with pytest.raises(InvalidInput) as refused:
                ask()
            assert refused.value.field == "as_of"


def test_python_takes_a_moment_for_retrieval_and_every_list(tmp_path: Path) -> None:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        [first] = memory.append("a", message("has tea", name="Ann", session_id="s1"))
        time.sleep(0.001)
        memory.append("a", message("has tea", name="Bob", session_id="s2"))
        for as_of in (1, "1", datetime_of(first.recorded_at_us)):
            lists = (memory.events, memory.episodes, memory.sessions, memory.entities)
            assert [len(read("a", as_of=as_of)["items"]) for read in lists] == [1, 1, 1, 1]
            assert memory.events("a", as_of=as_of, after=1, limit=1) == {"items": [], "next": None}
            assert len(memory.retrieve("a", "tea", as_of=as_of).items) == 1
        assert len(memory.retrieve("a", "tea", as_of=2).items) == 2
        assert memory.retrieve("a", "tea", as_of=0).items == ()
        for as_of in (3, datetime(2999, 1, 1, tzinfo=UTC)):
            with pytest.raises(InvalidInput, match="as_of"):
                memory.retrieve("a", "tea", as_of=as_of)
