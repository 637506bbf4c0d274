from __future__ import annotations

import logging
import threading
import time
from collections.abc import Container
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.events import Event, histories, message
from support.poisoned_events import poison_versions
from support.read_models import connection_of, rows

from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.errors import ForeignFile, ProjectionFailed, StorageError
from recollect.events.validation import drafts
from recollect.projections.projector import write_batch
from recollect.projections.read_models import replay
from recollect.projections.read_models.generations import built
from recollect.projections.read_models.layout import generation_path, generations, namespace_folder
from recollect.projections.read_models.read_models import ReadModels
from recollect.projections.read_models.replay import build_read_model
from recollect.projections.schema.schema import empty_read_model


def append(log: SqliteLog, namespace: str, *events: Event) -> None:
    log.append(namespace, drafts(events))


def live_file(folder: Path, namespace: str) -> Path:
    home = namespace_folder(folder, namespace)
    return generation_path(home, generations(home)[-1])


# -- what events become -----------------------------------------------------------------------------------------------


def test_a_message_becomes_an_episode_with_its_speaker_and_the_one_before_it(
    log: SqliteLog, models: ReadModels
) -> None:
    append(log, "a", message("Hi", name="Ann", session_id="s"), message("other", session_id="t"))
    append(log, "a", message("Hello Ann", name="Bob", role="assistant", session_id="s"))
    assert rows(models, "SELECT version, session_id, previous, role, speaker, text FROM episodes") == [
        (1, "s", None, "user", "Ann", "Hi"),
        (2, "t", None, "user", "user", "other"),
        (3, "s", 1, "assistant", "Bob", "Hello Ann"),
    ]


def test_turns_data_and_captions_become_text(log: SqliteLog, models: ReadModels) -> None:
    turns = {
        "role": "user",
        "turns": [{"role": "user", "name": "Ann", "text": "a"}, {"role": "assistant", "text": "b"}],
    }
    picture = {"role": "user", "text": "look", "attachments": [{"media_type": "image/png", "caption": "a cat"}]}
    data = {"role": "tool:search", "data": {"hits": [1]}}
    append(log, "a", *({"type": "message.added", "payload": payload} for payload in (turns, picture, data)))
    assert rows(models, "SELECT text, caption FROM episodes") == [
        ("Ann: a\nassistant: b", None),
        ("look", "a cat"),
        ('{"hits":[1]}', None),
    ]


def test_sessions_keep_what_was_said_about_them(log: SqliteLog, models: ReadModels) -> None:
    append(log, "a", {"type": "session.started", "session_id": "s", "payload": {"channel": "cli", "user_id": "u"}})
    append(log, "a", message("x", session_id="s"))
    append(log, "a", {"type": "session.ended", "session_id": "s", "payload": {"summary": "Short."}})
    query = "SELECT id, channel, user_id, episode_count, summary, ended_at_us IS NOT NULL FROM sessions"
    assert rows(models, query) == [("s", "cli", "u", 1, "Short.", 1)]


def test_a_described_entity_is_found_by_its_aliases(log: SqliteLog, models: ReadModels) -> None:
    described = {"name": "Ann Lee", "type": "person", "description": "a friend", "aliases": ["Annie"]}
    append(log, "a", {"type": "entity.described", "payload": described}, message("Then Annie and Ann Lee met Bob"))
    assert rows(models, "SELECT name, type, aliases, mention_count FROM entities ORDER BY id") == [
        ("Ann Lee", "person", '["Annie"]', 1),
        # A name of its own, so that the merge can be undone.
        ("Annie", "other", "[]", 1),
        ("Bob", "other", "[]", 1),
    ]
    with models.reading("a") as snapshot:
        assert snapshot.entities.ids_by_name(["annie"]) == snapshot.entities.ids_by_name(["ann lee"]) == {1}


def test_what_recollect_injected_is_not_remembered_again(log: SqliteLog, models: ReadModels) -> None:
    append(log, "a", message('<recalled-memory note="x">\n- old\n</recalled-memory>\nnew'))
    assert rows(models, "SELECT text FROM episodes") == [("new",)]


# -- catching up ------------------------------------------------------------------------------------------------------


def test_an_unknown_namespace_is_empty_and_leaves_no_file(tmp_path: Path, models: ReadModels) -> None:
    assert models.catch_up("nobody").version == 0
    with models.reading("nobody") as snapshot:
        assert connection_of(snapshot).execute("SELECT count(*) FROM episodes").fetchall() == [(0,)]
    assert not (tmp_path / "namespaces").exists()


def test_what_was_appended_is_there_after_catching_up(log: SqliteLog, models: ReadModels) -> None:
    for number in range(3):
        append(log, "a", message(f"number {number}"))
        progress = models.catch_up("a")
        assert (progress.version, progress.behind) == (number + 1, 0)
        match = f"SELECT rowid FROM episodes_fts WHERE episodes_fts MATCH '{number}'"
        assert rows(models, match) == [(number + 1,)]


def test_a_passed_deadline_stops_after_a_batch_and_the_next_call_goes_on(log: SqliteLog, models: ReadModels) -> None:
    append(log, "a", *(message(str(number)) for number in range(500)))
    progress = models.catch_up("a", deadline=time.monotonic() - 1)
    assert 0 < progress.version < 500
    assert models.catch_up("a").version == 500


def test_a_catch_up_pauses_after_each_batch_and_lets_other_threads_project_meanwhile(
    log: SqliteLog, models: ReadModels
) -> None:
    append(log, "a", *(message(str(number)) for number in range(1_000)))
    versions: list[int] = []

    def pause() -> None:
        # It would wait for ever for a lock that the paused catch-up holds.
        versions.append(models.catch_up("a", deadline=0.0).version)

    progress = models.catch_up("a", pause=pause)
    assert (progress.version, progress.behind) == (1_000, 0)
    assert versions == sorted(set(versions))
    assert len(versions) > 1


def test_a_reader_sees_one_moment_while_folding_goes_on(log: SqliteLog, models: ReadModels) -> None:
    append(log, "a", message("x"))
    models.catch_up("a")
    with models.reading("a") as snapshot:
        append(log, "a", message("y"))
        models.catch_up("a")
        assert connection_of(snapshot).execute("SELECT count(*) FROM episodes").fetchall() == [(1,)]
    assert rows(models, "SELECT count(*) FROM episodes") == [(2,)]


def test_two_processes_fold_the_same_namespace_once(tmp_path: Path, log: SqliteLog, models: ReadModels) -> None:
    other = ReadModels(tmp_path, log)
    for start in range(0, 3_000, 1_000):
        append(log, "a", *(message(f"Ann {start + number}", session_id="s") for number in range(1_000)))
    threads = [threading.Thread(target=each.catch_up, args=("a",)) for each in (models, other) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert models.catch_up("a").version == 3_000
    assert models.check("a").is_equal
    other.close()


def test_more_namespaces_than_open_files_are_served(tmp_path: Path, log: SqliteLog) -> None:
    models = ReadModels(tmp_path, log, open_files_max=2)
    for number in range(6):
        append(log, f"n{number}", message("x"))
    for _ in range(2):
        assert [models.catch_up(f"n{number}").version for number in range(6)] == [1] * 6
    models.close()


def test_the_end_of_a_search_leaves_the_statements_of_the_next_one_compiled(log: SqliteLog, models: ReadModels) -> None:
    append(log, "a", message("The kettle is red"))
    models.catch_up("a")
    with models.reading("a") as snapshot:
        assert snapshot.keywords.occurrences("kettl")
        connection = connection_of(snapshot)
    schema_bytes, _ = connection.status(apsw.SQLITE_DBSTATUS_SCHEMA_USED)
    assert schema_bytes, "SQLite has forgotten the schema, and with it all compiled statements"


# -- failures ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def poison(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Versions whose projection fails; the test fills it."""
    return poison_versions(monkeypatch)


def test_a_failing_event_parks_its_namespace_and_no_other(log: SqliteLog, models: ReadModels, poison: set[int]) -> None:
    poison.add(3)
    append(log, "a", *(message(str(number)) for number in range(5)))
    append(log, "b", message("fine"))

    progress = models.catch_up("a")
    assert progress.parked is not None
    assert (progress.version, progress.parked.version, progress.parked.error) == (2, 3, "ValueError: poisoned")
    assert models.catch_up("b").version == 1
    assert [one.namespace for one in models.live.parked()] == ["a"]
    # What is before it stays readable, and what comes after it waits.
    append(log, "a", message("later"))
    assert rows(models, "SELECT count(*) FROM episodes") == [(2,)]


def test_a_parked_namespace_goes_on_after_a_replay(log: SqliteLog, models: ReadModels, poison: set[int]) -> None:
    poison.add(2)
    append(log, "a", message("x"), message("y"))
    models.catch_up("a")
    poison.clear()
    assert models.replay("a") == 2
    assert models.catch_up("a").parked is None
    assert models.live.parked() == []


def test_replay_is_strict_names_the_event_and_leaves_the_live_model(
    log: SqliteLog, models: ReadModels, poison: set[int]
) -> None:
    append(log, "a", message("x"), message("y"))
    models.catch_up("a")
    poison.add(2)
    with pytest.raises(ProjectionFailed) as failed:
        models.replay("a")
    assert failed.value.version == 2
    assert rows(models, "SELECT count(*) FROM episodes") == [(2,)]


def test_a_text_that_cannot_be_searched_for_names_is_named_by_a_replay_and_parked_live(
    log: SqliteLog, models: ReadModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    names_by_key = write_batch.names_by_key

    def fail(text: str, names: Container[str]) -> dict[str, str]:
        if text == "1":
            raise ValueError("poisoned")
        return names_by_key(text, names)

    monkeypatch.setattr(write_batch, "names_by_key", fail)
    append(log, "a", *(message(str(number)) for number in range(4)))
    with pytest.raises(ProjectionFailed) as failed:
        models.replay("a")
    assert failed.value.version == 2
    parked = models.catch_up("a").parked
    assert parked is not None
    assert parked.version == 2


def test_an_event_that_kills_its_worker_is_parked_after_some_attempts(
    tmp_path: Path, log: SqliteLog, models: ReadModels
) -> None:
    append(log, "a", message("x"), message("y"))
    models.catch_up("a")
    append(log, "a", message("z"))
    # What a killed worker leaves behind: attempts that were counted and never finished.
    file = apsw.Connection(str(live_file(tmp_path, "a")))
    file.execute("UPDATE read_model SET attempts = 4")
    file.close()

    progress = models.catch_up("a")
    assert progress.parked is not None
    assert progress.parked.version == 3
    assert "died" in progress.parked.error


# -- files that are not what they should be ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE read_model SET schema_version = 0",
        "UPDATE read_model SET log_id = 'another'",
        "DELETE FROM read_model",
        "DROP TABLE read_model",
    ],
)
def test_a_model_of_another_schema_or_log_is_built_anew_by_itself(
    tmp_path: Path, log: SqliteLog, models: ReadModels, harm: str, caplog: pytest.LogCaptureFixture
) -> None:
    append(log, "a", message("x"))
    models.catch_up("a")
    models.close()
    file = apsw.Connection(str(live_file(tmp_path, "a")))
    file.execute(harm)
    file.close()

    with caplog.at_level(logging.WARNING):
        assert rows(models, "SELECT text FROM episodes") == [("x",)]
    assert "built again" in caplog.text


@pytest.mark.parametrize("content", [b"", b"not a database at all" * 500])
def test_a_foreign_file_in_place_of_a_model_is_replaced(
    tmp_path: Path, log: SqliteLog, models: ReadModels, content: bytes
) -> None:
    append(log, "a", message("x"))
    models.catch_up("a")
    models.close()
    live_file(tmp_path, "a").write_bytes(content)
    assert rows(models, "SELECT text FROM episodes") == [("x",)]


def test_a_model_that_is_damaged_while_it_is_open_is_built_anew(
    tmp_path: Path, log: SqliteLog, models: ReadModels
) -> None:
    append(log, "a", *(message(f"word{number} " * 50) for number in range(500)))
    models.catch_up("a")
    models.close()
    path = live_file(tmp_path, "a")
    content = bytearray(path.read_bytes())
    half = len(content) // 2
    content[half:] = bytes(len(content) - half)
    path.write_bytes(content)

    with pytest.raises((apsw.CorruptError, ForeignFile)):
        rows(models, "SELECT sum(length(text)) FROM episodes")
    assert rows(models, "SELECT count(*) FROM episodes") == [(500,)]


def test_a_damaged_log_does_not_cost_the_read_model(tmp_path: Path, models: ReadModels, log: SqliteLog) -> None:
    append(log, "a", *(message("x" * 500) for _ in range(300)))
    models.catch_up("a")
    append(log, "a", *(message("y" * 500) for _ in range(300)))
    log.close()
    content = bytearray((tmp_path / "log.db").read_bytes())
    content[200_000:] = bytes(len(content) - 200_000)
    (tmp_path / "log.db").write_bytes(content)

    damaged = SqliteLog(tmp_path / "log.db")
    again = ReadModels(tmp_path, damaged)
    with pytest.raises(ForeignFile, match="log.db"):
        again.catch_up("a")
    with again.reading("a") as snapshot:
        assert snapshot.version == 300
    again.close()
    damaged.close()


# -- replay -----------------------------------------------------------------------------------------------------------


def test_replay_swaps_in_a_new_generation_that_others_notice(
    tmp_path: Path, log: SqliteLog, models: ReadModels
) -> None:
    other = ReadModels(tmp_path, log)
    append(log, "a", message("x"))
    models.catch_up("a")
    with models.reading("a") as before:
        assert other.replay("a") == 1
        # Who reads the old one reads on.
        assert connection_of(before).execute("SELECT text FROM episodes").fetchall() == [("x",)]
    append(log, "a", message("y"))
    assert rows(models, "SELECT count(*) FROM episodes") == [(2,)]
    assert models.replay("a") == 2
    assert generations(namespace_folder(tmp_path, "a")) == [2, 3]
    assert [file.name for file in namespace_folder(tmp_path, "a").glob("building-*")] == []
    other.close()


def test_what_is_appended_during_a_replay_is_in_it(log: SqliteLog, models: ReadModels) -> None:
    append(log, "a", *(message(str(number)) for number in range(100)))
    models.replay("a", on_progress=lambda done, total: append(log, "a", message("late", id="late")))
    with models.reading("a") as snapshot:
        assert snapshot.version == 101


def test_a_difference_from_replay_is_found(tmp_path: Path, log: SqliteLog, models: ReadModels) -> None:
    append(log, "a", message("x"))
    assert models.check("a").is_equal
    file = apsw.Connection(str(live_file(tmp_path, "a")))
    file.execute("UPDATE episodes SET importance = 9")
    file.close()
    assert not models.check("a").is_equal


_STEPS = st.lists(st.sampled_from(["catch up", "one", "reopen", "replay"]), max_size=6)


@given(history=histories(), cuts=st.lists(st.integers(1, 8), max_size=6), steps=_STEPS)
def test_any_history_folded_in_any_way_equals_its_replay(
    tmp_path_factory: pytest.TempPathFactory, history: list[Event], cuts: list[int], steps: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("models")
    log = SqliteLog(folder / "log.db")
    models = ReadModels(folder, log)
    pending = drafts(history)
    for cut, step in zip([*cuts, len(pending)], [*steps, "catch up"], strict=False):
        batch, pending = pending[:cut], pending[cut:]
        if batch:
            log.append("a", batch)
        if step == "one":
            models.catch_up("a", deadline=0.0)
        elif step == "replay":
            models.replay("a")
        elif step == "reopen":
            models.close()
        else:
            models.catch_up("a")
    assert models.catch_up("a").parked is None
    assert models.check("a").is_equal
    models.close()
    log.close()


def test_a_build_can_stop_at_any_version(tmp_path: Path, log: SqliteLog) -> None:
    append(log, "a", *(message(str(number)) for number in range(10)))
    assert build_read_model(tmp_path / "past.db", log, "a", until=4) == 4
    past = apsw.Connection(str(tmp_path / "past.db"))
    assert past.execute("SELECT max(version) FROM episodes").fetchall() == [(4,)]
    past.close()


@pytest.mark.parametrize("indexed_events_max", [0, 10])
def test_a_build_has_all_indexes_and_a_wal_whatever_its_size(
    tmp_path: Path, log: SqliteLog, monkeypatch: pytest.MonkeyPatch, indexed_events_max: int
) -> None:
    monkeypatch.setattr(replay, "_INDEXED_EVENTS_MAX", indexed_events_max)
    append(log, "a", *(message(str(number)) for number in range(10)))
    build_read_model(tmp_path / "built.db", log, "a")
    with (
        closing(apsw.Connection(str(tmp_path / "built.db"))) as connection,
        closing(empty_read_model(log.log_id, "a")) as empty,
    ):
        assert connection.pragma("journal_mode") == "wal"
        query = "SELECT name, sql FROM sqlite_schema WHERE type = 'index' ORDER BY name"
        assert connection.execute(query).fetchall() == empty.execute(query).fetchall()


def test_a_file_that_an_erasure_removed_is_built_anew_and_other_failures_do_not(tmp_path: Path) -> None:
    paths: list[Path] = []

    def work(path: Path) -> int:
        paths.append(path)
        path.touch()
        if len(paths) == 1:
            path.unlink()
            raise StorageError("the file is gone")
        return len(paths)

    def fail(path: Path) -> int:
        paths.append(path)
        path.touch()
        raise StorageError("the disk is broken")

    assert built(tmp_path, work) == 2
    with pytest.raises(StorageError, match="broken"):
        built(tmp_path, fail)
    assert len(set(paths)) == 3
    assert [*tmp_path.glob("building-*")] == []
