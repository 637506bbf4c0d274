"""The read models of the past on disk: what is kept, who waits for whom."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.events import message
from support.past import append, files, numbered, texts
from support.read_models import connection_of

from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.api.retrieval.retriever import Retriever
from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.envelope import RecordedEvent
from recollect.events.errors import ProjectionFailed, StillBuilding
from recollect.projections.embeddings.embedder import NoEmbedder
from recollect.projections.embeddings.vectors import Vectors
from recollect.projections.projector import event_handlers
from recollect.projections.projector.write_batch import WriteBatch
from recollect.projections.read_models import history as history_module
from recollect.projections.read_models import replay
from recollect.projections.read_models.history import History
from recollect.projections.read_models.layout import namespace_folder
from recollect.projections.read_models.read_models import ReadModels

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
        assert len(connection_of(snapshot).execute("SELECT text FROM episodes").fetchall()) == 2
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
        # A build that is slow for as long as the test wants.
        monkeypatch.setattr(history_module, "build_read_model", self._build)

    def _build(self, *arguments: Any, **options: Any) -> int:
        self.count += 1
        assert self.let_go.wait(60)
        return replay.build_read_model(*arguments, **options)


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
from recollect.events.backends.sqlite_log import SqliteLog
from recollect.projections.read_models.history import History
from recollect.projections.read_models.read_models import ReadModels
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


_CROWD = """
import random, sys, time
from pathlib import Path
from recollect.events.backends.sqlite_log import SqliteLog
from recollect.projections.read_models.history import History
from recollect.projections.read_models.read_models import ReadModels
folder, chance = Path(sys.argv[1]), random.Random(int(sys.argv[2]))
log = SqliteLog(folder / "log.db")
models = ReadModels(folder, log)
history = History(folder, log, models, files_max=2)
for number in range(60):
    version = chance.randint(1, 6)
    deadline = time.monotonic() + 60 if number % 2 else None
    with history.reading("a", version, deadline=deadline) as snapshot:
        found = [row[0] for row in snapshot.episodes.array_rows(0, version)]
        assert found == list(range(1, version + 1)), found
history.close()
models.close()
log.close()
"""


def test_processes_that_build_read_and_remove_at_once_never_meet_half_a_read_model(
    tmp_path: Path, log: SqliteLog, models: ReadModels
) -> None:
    append(log, *numbered(7))
    crowd = [subprocess.Popen([sys.executable, "-c", _CROWD, str(tmp_path), str(seed)]) for seed in range(4)]
    assert [process.wait(120) for process in crowd] == [0] * 4
    history = History(tmp_path, log, models, files_max=2)
    history.build("a", 7)
    assert len(files(tmp_path)) == 2
    assert 7 in files(tmp_path)
    history.close()


def test_an_event_that_cannot_be_folded_is_named_and_moments_before_it_are_answered(
    tmp_path: Path, log: SqliteLog, models: ReadModels, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fold(changes: WriteBatch, event: RecordedEvent) -> None:
        if event.version == 3:
            raise ValueError("poisoned")
        event_handlers.apply_event(changes, event)

    # A handler that fails: no event that the catalogue takes makes one of today fail.
    monkeypatch.setattr(replay, "apply_event", fold)
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
    assert [file.name.partition("-")[0] for file in tmp_path.glob("namespaces/*/*/as-of/*")] == ["2"]
    retriever.close()
    vectors.close()


def test_a_build_that_fails_when_nobody_waits_any_more_is_reported_to_the_next_who_asks(
    tmp_path: Path, log: SqliteLog, models: ReadModels, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go = threading.Event()

    def fail(*_: Any, **__: Any) -> int:
        let_go.wait(60)
        raise ProjectionFailed("a", 1, "poisoned")

    # A disk without room, at a moment that the test chooses.
    monkeypatch.setattr(history_module, "build_read_model", fail)
    append(log, *numbered(5))
    with pytest.raises(StillBuilding):
        _reads_within(history, 3, 0.0)
    let_go.set()
    with pytest.raises(ProjectionFailed):
        _reads_within(history, 3, 60.0)
    # And then it is tried again: what failed for want of room, say, may succeed.
    monkeypatch.setattr(history_module, "build_read_model", replay.build_read_model)
    assert _reads_within(history, 3, 60.0) == 3
