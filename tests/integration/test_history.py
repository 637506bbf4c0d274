"""What the memory says as of a moment of the past."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.embedders import HashingEmbedder
from support.events import Event, histories, message

from recollect.api.moment import moment
from recollect.api.recollect import Recollect
from recollect.api.retrieval.request import RetrieveRequest
from recollect.api.retrieval.result import RetrieveResult
from recollect.api.retrieval.retriever import Retriever
from recollect.api.settings import Settings
from recollect.events.envelope import RecordedEvent, instant, now_us
from recollect.events.errors import InvalidInput, ProjectionFailed, StillBuilding
from recollect.events.sqlite import SqliteLog
from recollect.events.validation import drafts
from recollect.projections import handlers, replay
from recollect.projections import history as history_module
from recollect.projections.changes import Changes
from recollect.projections.digest import digest
from recollect.projections.embedder import Embedder, NoEmbedder
from recollect.projections.history import History
from recollect.projections.layout import namespace_folder
from recollect.projections.models import ReadModels
from recollect.projections.vectors import Vectors


def append(log: SqliteLog, *events: Event, namespace: str = "a") -> None:
    log.append(namespace, drafts(events))


def numbered(count: int) -> list[Event]:
    return [message(f"number {number}", id=f"e{number}") for number in range(1, count + 1)]


def texts(history: History, version: int, namespace: str = "a") -> list[str]:
    with history.reading(namespace, version) as snapshot:
        assert snapshot.version == version
        return [row[0] for row in snapshot.connection.execute("SELECT text FROM episodes ORDER BY version")]


def files(folder: Path) -> list[int]:
    """The versions that are kept, over all namespaces; each has its marker."""
    kept = sorted(file.name for file in folder.glob("namespaces/*/*/as-of/*"))
    assert sorted(marker.name.partition("-")[2] for marker in folder.glob("as-of/*")) == kept
    return sorted(int(name.partition("-")[0]) for name in kept)


class Memory:
    """A log, its read models and retrieval, in a folder of its own."""

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        self.log = SqliteLog(folder / "log.db")
        self.models = ReadModels(folder, self.log)
        self.history = History(folder, self.log, self.models)
        self.vectors = Vectors(folder, self.models, embedder)
        self.retriever = Retriever(self.models, self.history, lambda: self.vectors, budget_ms=60_000)

    def add(self, events: list[Event]) -> None:
        self.log.append("a", drafts(events))
        self.models.catch_up("a")
        self.vectors.embed_news("a")

    def ask(self, query: str, **options: Any) -> RetrieveResult:
        return self.retriever.retrieve("a", RetrieveRequest(query=query, **options))

    def close(self) -> None:
        for part in (self.retriever, self.history, self.vectors, self.models, self.log):
            part.close()


def comparable(result: RetrieveResult) -> Any:
    """Everything but the time it took and the trace's id."""
    answer = result.as_json()
    return {name: answer[name] for name in ("context", "items", "tokens", "version", "degraded")}


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


@settings(max_examples=25, deadline=None)
@given(history=histories(max_size=12), data=st.data())
def test_an_answer_as_of_a_version_is_that_of_a_memory_with_nothing_after_it(
    tmp_path_factory: pytest.TempPathFactory, history: list[Event], data: st.DataObject
) -> None:
    events = [event | {"id": f"e{number}"} for number, event in enumerate(history, start=1)]
    version = data.draw(st.integers(1, len(events)))
    query = data.draw(st.sampled_from(["what did Ann say?", "Hello", "tea", "Bob and Zoë in São Paulo", "rains"]))
    whole = Memory(tmp_path_factory.mktemp("whole"), HashingEmbedder())
    until = Memory(tmp_path_factory.mktemp("until"), HashingEmbedder())
    whole.add(events)
    until.add(events[:version])
    assert comparable(whole.ask(query, as_of=version)) == comparable(until.ask(query))
    whole.close()
    until.close()


@settings(max_examples=25, deadline=None)
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
        live = digest(snapshot.connection)
    if pending[version:]:
        log.append("a", pending[version:])
    models.catch_up("a")
    with past.reading("a", version) as snapshot:
        assert digest(snapshot.connection) == live
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
        expected = digest(snapshot.connection)
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
        assert history.version("a", instant(at_us)) == history.version("a", event.version) == event.version
        assert history.version("a", instant(at_us - 1)) == event.version - 1
        assert history.version("a", instant(at_us + 1)) == event.version
    assert history.version("a", instant(now_us() - 1)) == 7
    history.close()
    models.close()
    log.close()


def test_of_events_that_were_recorded_at_the_same_time_the_last_counts(log: SqliteLog, history: History) -> None:
    append(log, *numbered(5))
    assert history.version("a", instant(log.read("a")[0].recorded_at_us)) == 5


def test_a_namespace_without_events_is_empty_at_any_time_and_has_no_version_1(tmp_path: Path, history: History) -> None:
    assert history.version("nobody", 0) == history.version("nobody", datetime(2026, 1, 1, tzinfo=UTC)) == 0
    assert texts(history, 0, "nobody") == []
    assert not (tmp_path / "as-of").exists()
    with pytest.raises(InvalidInput, match="as_of: give a version from 0 to 0"):
        history.version("nobody", 1)


@pytest.mark.parametrize("as_of", [4, -1, instant(now_us() + 3_600_000_000)])
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
    assert moment(value) == meant
    assert RetrieveRequest.model_validate({"query": "x", "as_of": value}).as_of == meant


_NO_MOMENTS: list[object] = [
    *("", "yesterday", "-1", "1.5", "²", "9" * 5_000, "2026-01-02", "2026-01-02T03:04:05", "2026-13-02T03:04:05Z"),
    *("2026-01-02T03:04:05 01:00", -1, 1.5, True, 10**4_000, [1], datetime(2026, 1, 2)),
]


@pytest.mark.parametrize("value", _NO_MOMENTS, ids=range(len(_NO_MOMENTS)))
def test_anything_else_is_refused_by_name(tmp_path: Path, value: Any) -> None:
    with Recollect(settings=Settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
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
    with Recollect(settings=Settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        [first] = memory.append("a", message("has tea", name="Ann", session_id="s1"))
        time.sleep(0.001)
        memory.append("a", message("has tea", name="Bob", session_id="s2"))
        for as_of in (1, "1", instant(first.recorded_at_us)):
            lists = (memory.events, memory.episodes, memory.sessions, memory.entities)
            assert [len(read("a", as_of=as_of)["items"]) for read in lists] == [1, 1, 1, 1]
            assert memory.events("a", as_of=as_of, after=1, limit=1) == {"items": [], "next": None}
            assert len(memory.retrieve("a", "tea", as_of=as_of).items) == 1
        assert len(memory.retrieve("a", "tea", as_of=2).items) == 2
        assert memory.retrieve("a", "tea", as_of=0).items == ()
        for as_of in (3, datetime(2999, 1, 1, tzinfo=UTC)):
            with pytest.raises(InvalidInput, match="as_of"):
                memory.retrieve("a", "tea", as_of=as_of)


# -- what is kept -----------------------------------------------------------------------------------------------------


def test_no_more_files_are_kept_than_the_bound_over_all_namespaces(
    tmp_path: Path, log: SqliteLog, models: ReadModels
) -> None:
    history = History(tmp_path, log, models, files_max=3)
    for namespace in ("a", "b"):
        append(log, *numbered(9), namespace=namespace)
    for version in range(1, 6):
        texts(history, version, "a")
    assert files(tmp_path) == [3, 4, 5]
    # Reading is using: 3 stays, 4 is the least recently used then.
    texts(history, 3, "a")
    texts(history, 8, "b")
    assert files(tmp_path) == [3, 5, 8]
    history.close()


def test_the_newest_file_is_kept_whatever_the_bytes(tmp_path: Path, log: SqliteLog, models: ReadModels) -> None:
    history = History(tmp_path, log, models, bytes_max=0)
    append(log, *numbered(5))
    for version in (1, 2, 3):
        texts(history, version)
        assert files(tmp_path) == [version]
    history.close()


def test_a_file_in_use_is_not_removed_by_anybody(tmp_path: Path, log: SqliteLog, models: ReadModels) -> None:
    one, other = (History(tmp_path, log, models, files_max=1) for _ in range(2))
    append(log, *numbered(9))
    with one.reading("a", 2) as snapshot:
        for version in (3, 4):
            texts(one, version)
        for version in (5, 6):
            texts(other, version)
        assert files(tmp_path) == [2, 6]
        assert len(snapshot.connection.execute("SELECT text FROM episodes").fetchall()) == 2
    texts(other, 7)
    assert files(tmp_path) == [7]
    one.close()
    other.close()


def test_replays_and_a_lost_live_read_model_leave_the_past_alone(
    tmp_path: Path, log: SqliteLog, models: ReadModels, history: History
) -> None:
    append(log, *numbered(5))
    before = history.build("a", 3)
    changed_ns = before[0].stat().st_mtime_ns
    for _ in range(3):
        models.replay("a")
    models.close()
    for file in namespace_folder(tmp_path, "a").glob("*.db"):
        file.unlink()
    assert models.catch_up("a").version == 5
    assert history.build("a", 3) == before
    assert before[0].stat().st_mtime_ns == changed_ns


def test_an_erased_namespace_folder_takes_its_past_along(tmp_path: Path, log: SqliteLog, history: History) -> None:
    append(log, *numbered(5))
    texts(history, 3)
    shutil.rmtree(namespace_folder(tmp_path, "a"))
    assert texts(history, 3) == ["number 1", "number 2", "number 3"]


def test_a_log_that_went_on_differently_after_a_restore_has_another_past(tmp_path: Path) -> None:
    def opened() -> tuple[SqliteLog, ReadModels, History]:
        log = SqliteLog(tmp_path / "log.db")
        models = ReadModels(tmp_path, log)
        return log, models, History(tmp_path, log, models)

    def ask(extra: str, backup: Path | None) -> list[str]:
        log, models, history = opened()
        append(log, message(extra), message("more"))
        found = texts(history, 3)
        for part in (history, models, log):
            part.close()
        if backup is not None:
            shutil.copy(backup, tmp_path / "log.db")
        return found

    log, models, history = opened()
    append(log, *numbered(2))
    for part in (history, models, log):
        part.close()
    shutil.copy(tmp_path / "log.db", tmp_path / "backup.db")
    assert ask("one way", tmp_path / "backup.db")[-1] == "one way"
    assert ask("another way", None)[-1] == "another way"


@pytest.mark.parametrize("content", [b"", b"not a database at all" * 500, None])
def test_a_damaged_or_foreign_file_is_built_anew(
    tmp_path: Path, log: SqliteLog, history: History, content: bytes | None
) -> None:
    append(log, *numbered(5), namespace="a")
    append(log, *numbered(5), namespace="b")
    path, expected = history.build("a", 3)
    if content is None:
        shutil.copy(history.build("b", 3)[0], path)
    else:
        path.write_bytes(content)
    assert history.build("a", 3) == (path, expected)


# -- building ---------------------------------------------------------------------------------------------------------


class Builds:
    """Builds that are counted, and go on when they are let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.let_go = threading.Event()
        monkeypatch.setattr(history_module, "build", self._build)

    def _build(self, *arguments: Any, **options: Any) -> int:
        self.count += 1
        assert self.let_go.wait(60)
        return replay.build(*arguments, **options)


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> Builds:
    return Builds(monkeypatch)


def test_whoever_asks_for_the_same_moment_at_once_it_is_built_once(
    tmp_path: Path, log: SqliteLog, models: ReadModels, history: History, builds: Builds
) -> None:
    append(log, *numbered(5))
    other = History(tmp_path, log, models)
    # Opened anew in each, as in processes of their own; some in a hurry, some not.
    with ThreadPoolExecutor(12) as pool:
        patient = [pool.submit(texts, one, 3) for one in (history, other) for _ in range(3)]
        hurried = [pool.submit(_reads_within, one, 3, 60.0) for one in (history, other) for _ in range(3)]
        builds.let_go.set()
        assert all(one.result() == ["number 1", "number 2", "number 3"] for one in patient)
        assert all(one.result() == 3 for one in hurried)
    assert builds.count == 1
    other.close()


def _reads_within(history: History, version: int, seconds: float) -> int:
    with history.reading("a", version, deadline=time.monotonic() + seconds) as snapshot:
        return snapshot.version


def test_a_retrieval_does_not_wait_for_a_long_build_and_a_later_one_finds_it(
    tmp_path: Path, log: SqliteLog, models: ReadModels, history: History, builds: Builds
) -> None:
    append(log, *numbered(5))
    vectors = Vectors(tmp_path, models, NoEmbedder())
    retriever = Retriever(models, history, lambda: vectors, budget_ms=50)
    for _ in range(3):
        result = retriever.retrieve("a", RetrieveRequest(query="number", as_of=2))
        assert result.degraded == ("projection: the read model of version 2 is being built",)
        assert (result.version, result.items) == (2, ())
    builds.let_go.set()
    texts(history, 2)
    patient = Retriever(models, history, lambda: vectors, budget_ms=60_000)
    assert len(patient.retrieve("a", RetrieveRequest(query="number", as_of=2)).items) == 2
    assert builds.count == 1
    for part in (retriever, patient, vectors):
        part.close()


def test_closing_ends_a_build_and_leaves_nothing_that_is_half(
    tmp_path: Path, log: SqliteLog, models: ReadModels, builds: Builds
) -> None:
    append(log, *numbered(5))
    history = History(tmp_path, log, models)
    with pytest.raises(StillBuilding), history.reading("a", 3, deadline=time.monotonic()):
        pass
    closing = threading.Thread(target=history.close)
    closing.start()
    while not history._closed:  # pyright: ignore[reportPrivateUsage]
        time.sleep(0.001)
    builds.let_go.set()
    closing.join()
    assert list(tmp_path.glob("namespaces/*/*/as-of/*")) == []


_KILLED = """
import os, signal, sys
from pathlib import Path
from recollect.events.sqlite import SqliteLog
from recollect.projections.history import History
from recollect.projections.models import ReadModels
folder = Path(sys.argv[1])
log = SqliteLog(folder / "log.db")
history = History(folder, log, ReadModels(folder, log))
history.build("a", 6000, on_progress=lambda done, total: os.kill(os.getpid(), signal.SIGKILL))
"""


def test_a_killed_build_leaves_nothing_that_is_taken_for_whole(
    tmp_path: Path, log: SqliteLog, history: History
) -> None:
    for start in range(0, 7_000, 1_000):
        append(log, *(message(f"number {start + number}") for number in range(1_000)))
    killed = subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    folder = namespace_folder(tmp_path, "a") / "as-of"
    assert [file.suffix for file in folder.glob("6000-*")] == [".building"]
    assert len(texts(history, 6_000)) == 6_000
    assert [file.suffix for file in folder.iterdir()] == [".db"]


def test_an_event_that_cannot_be_folded_is_named_and_moments_before_it_are_answered(
    tmp_path: Path, log: SqliteLog, models: ReadModels, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fold(changes: Changes, event: RecordedEvent) -> None:
        if event.version == 3:
            raise ValueError("poisoned")
        handlers.fold(changes, event)

    monkeypatch.setattr(replay, "fold", fold)
    append(log, *numbered(5))
    vectors = Vectors(tmp_path, models, NoEmbedder())
    retriever = Retriever(models, history, lambda: vectors, budget_ms=60_000)
    for _ in range(2):
        with pytest.raises(ProjectionFailed, match="version 3"):
            texts(history, 4)
        result = retriever.retrieve("a", RetrieveRequest(query="number", as_of=4))
        assert result.items == ()
        assert result.degraded == ("projection: namespace 'a': version 3 could not be projected: ValueError: poisoned",)
    assert len(retriever.retrieve("a", RetrieveRequest(query="number", as_of=2)).items) == 2
    assert files_built(tmp_path) == [2]
    retriever.close()
    vectors.close()


def files_built(folder: Path) -> list[int]:
    return sorted(int(file.name.partition("-")[0]) for file in folder.glob("namespaces/*/*/as-of/*.db"))
