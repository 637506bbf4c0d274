"""Read models as a cache: those used least recently leave the disk, and are built again when they are asked for."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest
from support.embedders import HashingEmbedder
from support.events import message
from support.waiting import eventually

from recollect import Recollect
from recollect.api.settings import load_settings
from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.envelope import RecordedEvent
from recollect.events.errors import StorageError
from recollect.events.validation import drafts
from recollect.jobs.queue.backlog import BacklogMonitor
from recollect.jobs.queue.sqlite_run_store import SqliteRunStore
from recollect.projections.embeddings.embedder import NoEmbedder
from recollect.projections.embeddings.vectors import Vectors
from recollect.projections.read_models.layout import generations, namespace_folder
from recollect.projections.read_models.read_models import ReadModels

NAMES = ("a", "b", "c", "d")


@pytest.fixture
def cache(tmp_path: Path, log: SqliteLog) -> Generator[ReadModels]:
    """Read models with a limit that every one of them is over, of which one may be open."""
    models = ReadModels(tmp_path, log, open_files_max=1, disk_bytes_max=1)
    # No look in the background: these tests decide when.
    models.disk_limit._next_scan = float("inf")  # pyright: ignore[reportPrivateUsage]
    yield models
    models.close()


def build(models: ReadModels, *names: str) -> None:
    for name in names:
        models.log.append(name, drafts([message(f"I live in Porto, says {name}.")]))
        models.catch_up(name)


def files_of(folder: Path, namespace: str) -> set[str]:
    home = namespace_folder(folder, namespace)
    return {path.name for path in home.iterdir()} if home.exists() else set()


def test_the_namespaces_used_least_recently_leave_first_and_those_in_use_stay(tmp_path: Path, log: SqliteLog) -> None:
    models = ReadModels(tmp_path, log, open_files_max=1)
    build(models, *NAMES)
    models.close()
    size = sum(path.stat().st_size for path in (tmp_path / "namespaces").rglob("*.db"))
    limited = ReadModels(tmp_path, log, open_files_max=1, disk_bytes_max=size - 1)
    limited.disk_limit._next_scan = float("inf")  # pyright: ignore[reportPrivateUsage]
    for name in ("c", "a", "d", "b"):
        limited.catch_up(name)
    assert limited.disk_limit.trim() == 1
    assert [name for name in NAMES if generations(namespace_folder(tmp_path, name))] == ["a", "b", "d"]
    with limited.reading("a"):
        limited.close()
        strict = ReadModels(tmp_path, log, disk_bytes_max=1)
        assert strict.disk_limit.trim() == 2
        assert generations(namespace_folder(tmp_path, "a"))
    assert strict.disk_limit.trim() == 1


def test_what_was_removed_is_built_again_to_the_same_rows_under_another_name(tmp_path: Path, cache: ReadModels) -> None:
    build(cache, "a")
    with closing(Vectors(tmp_path, cache, HashingEmbedder())) as vectors:
        vectors.embed_new("a")
    with cache.reading("a") as snapshot:
        before = snapshot.content_hash()
    cache.close()
    (namespace_folder(tmp_path, "a") / "vectors.db-int8").write_bytes(b"codes")
    assert {"000001.db", "vectors.db"} <= files_of(tmp_path, "a")
    cache.disk_limit.trim()
    assert files_of(tmp_path, "a") == {"evicted", "in-use.lock"}
    cache.catch_up("a")
    with cache.reading("a") as snapshot:
        assert snapshot.content_hash() == before
    assert "000002.db" in files_of(tmp_path, "a")


def test_nothing_else_is_removed(tmp_path: Path, cache: ReadModels) -> None:
    kept = [tmp_path / name for name in ("keys.db", "tokens.json", "jobs.db", "archive/a/x.parquet")]
    home = namespace_folder(tmp_path, "a")
    kept += [home / name for name in ("erasure", "erasure.lock", "000001.db.replaced-1", "as-of/1-x.db", "note.txt")]
    build(cache, "a")
    for path in kept:
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text("x")
    cache.close()
    assert cache.disk_limit.trim() == 1
    assert all(path.exists() for path in kept)


def test_a_read_model_that_may_be_the_last_copy_stays(tmp_path: Path, cache: ReadModels, log: SqliteLog) -> None:
    build(cache, "a")
    cache.close()
    (tmp_path / "other").mkdir()
    with closing(SqliteLog(tmp_path / "other" / "log.db")) as other:
        for case in ("another log", "the same id, without the events"):
            if case != "another log":
                other.log_id = log.log_id
            assert ReadModels(tmp_path, other, disk_bytes_max=1).disk_limit.trim() == 0
    assert generations(namespace_folder(tmp_path, "a"))
    (namespace_folder(tmp_path, "a") / "000001.db").write_bytes(b"x" * 9_000)
    assert cache.disk_limit.trim() == 0


def test_a_sweep_opens_no_namespace_that_was_removed_or_done_elsewhere(
    tmp_path: Path, cache: ReadModels, log: SqliteLog
) -> None:
    build(cache, "a", "b")
    with (
        closing(Vectors(tmp_path, cache, NoEmbedder())) as vectors,
        closing(SqliteRunStore(tmp_path / "jobs.db")) as runs,
    ):
        cache.close()
        cache.disk_limit.trim()
        monitor = BacklogMonitor(log, cache, lambda: vectors, runs)
        log.append("b", drafts([message("new")]))
        log.append("c", drafts([message("new"), message("newer")]))
        assert [(work.namespace, work.events) for work in monitor.scan(unread=False).behind] == [("b", 2), ("c", 2)]
        assert not generations(namespace_folder(tmp_path, "c"))
        # Workers, of this machine or another, have done the rest.
        runs.note_read(namespace_folder(tmp_path, "b").name, 2)
        runs.note_read(namespace_folder(tmp_path, "c").name, 2)
        assert monitor.scan(unread=False).behind == []


def test_a_cold_namespace_is_answered_within_the_budget_and_the_rest_is_built_in_the_background(tmp_path: Path) -> None:
    settings = load_settings(
        data=tmp_path, embedding_model="none", read_models_bytes_max=1, open_models_max=1, retrieval_budget_ms=1
    )
    with Recollect(settings=settings, workers=False) as memory:
        memory.append("a", [message(f"Tram number {number} goes to Porto.") for number in range(900)])
        assert "not folded yet" in str(memory.retrieve("a", "Where does tram number 899 go?").degraded)
        eventually(lambda: memory.parts.read_models.progress("a").behind == 0)
        memory.append("b", message("Hello"))
        memory.retrieve("b", "Hello?")
        assert memory.parts.read_models.disk_limit.trim() == 1
        assert not generations(namespace_folder(tmp_path, "a"))


def test_without_a_limit_no_lock_is_made_and_nothing_is_removed(tmp_path: Path, models: ReadModels) -> None:
    build(models, "a")
    models.close()
    assert models.disk_limit.trim() == 0
    assert files_of(tmp_path, "a") == {"000001.db"}


def test_a_namespace_whose_events_are_damaged_keeps_its_files_and_the_others_are_removed(tmp_path: Path) -> None:
    class OneDamaged(SqliteLog):
        def read(self, namespace: str, *, after: int = 0, limit: int = 1_000) -> list[RecordedEvent]:
            if namespace == "a" and damaged:
                raise StorageError("an event is missing")
            return super().read(namespace, after=after, limit=limit)

    damaged: list[str] = []
    with closing(OneDamaged(tmp_path / "log.db")) as log:
        models = ReadModels(tmp_path, log)
        build(models, "a", "b")
        models.close()
        damaged.append("a")
        assert ReadModels(tmp_path, log, disk_bytes_max=1).disk_limit.trim() == 1
    assert generations(namespace_folder(tmp_path, "a"))
    assert not generations(namespace_folder(tmp_path, "b"))
