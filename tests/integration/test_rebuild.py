from __future__ import annotations

import threading
from collections.abc import Generator
from functools import partial
from pathlib import Path

import apsw
import pytest
from support.command_line import recollect
from support.events import message
from support.read_models import rows

from recollect.api.cli.session import open_models
from recollect.events.backends.log import each_head
from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.errors import ForeignFile
from recollect.events.storage.file_lock import file_lock
from recollect.events.validation import drafts
from recollect.projections.read_models.layout import generation_path, generations, namespace_folder
from recollect.projections.read_models.parallel_rebuild import RebuildResult, rebuild_all
from recollect.projections.read_models.read_models import ReadModels


def fill(log: SqliteLog, **counts: int) -> None:
    for namespace, count in counts.items():
        log.append(
            namespace, drafts([message(f"Ann met Bob {number} times", session_id="s") for number in range(count)])
        )


@pytest.mark.parametrize("processes", [1, 2])
def test_many_namespaces_are_rebuilt_side_by_side(
    tmp_path: Path, log: SqliteLog, models: ReadModels, processes: int
) -> None:
    fill(log, a=50, b=10, c=1)
    reopen = partial(open_models, tmp_path, f"sqlite:///{tmp_path / 'log.db'}")
    heads = list(each_head(log))
    progress: list[tuple[int, int]] = []

    replayed = rebuild_all(
        heads,
        models,
        open_read_models=reopen,
        processes=processes,
        on_progress=lambda done, total: progress.append((done, total)),
    )
    assert sorted((done.namespace, done.version) for done in replayed) == [("a", 50), ("b", 10), ("c", 1)]
    assert all(done <= total == 61 for done, total in progress)
    checked = list(rebuild_all(heads, models, open_read_models=reopen, mode="check", processes=processes))
    assert [done.check is not None and done.check.is_equal for done in checked] == [True] * 3


def test_an_event_that_fails_is_named_its_read_model_goes_on_and_the_others_are_rebuilt(
    tmp_path: Path, log: SqliteLog, models: ReadModels
) -> None:
    fill(log, a=3, b=2)
    models.catch_up("a")
    log.append("a", [draft._replace(schema_version=9) for draft in drafts([message("of the future")])])

    reopen = partial(open_models, tmp_path, f"sqlite:///{tmp_path / 'log.db'}")
    by_name: dict[str, RebuildResult] = {
        done.namespace: done for done in rebuild_all(list(each_head(log)), models, open_read_models=reopen, processes=2)
    }
    assert "version 4" in (by_name["a"].error or "")
    assert by_name["b"].version == 2
    with models.reading("a") as snapshot:
        assert snapshot.version == 3
    assert generations(namespace_folder(tmp_path, "a")) == [1]


def test_the_command_says_which_namespace_failed_and_exits_with_1(tmp_path: Path) -> None:
    log = SqliteLog(tmp_path / "log.db")
    fill(log, b=2)
    log.append("a", [draft._replace(schema_version=9) for draft in drafts([message("of the future")])])
    log.close()
    done = recollect("replay", data=tmp_path)
    assert done.returncode == 1
    assert "a: FAILED: namespace 'a': version 1 could not be projected" in done.stdout
    assert "b: 2 events replayed" in done.stdout


def test_what_a_killed_replay_left_is_removed_by_the_next_one(
    tmp_path: Path, log: SqliteLog, models: ReadModels
) -> None:
    fill(log, a=3)
    models.catch_up("a")
    folder = namespace_folder(tmp_path, "a")
    for name in ("building-dead.db", "building-dead.db-journal"):
        (folder / name).write_bytes(b"half of a file")

    assert models.replay("a") == 3
    assert sorted(file.name for file in folder.iterdir() if "building" in file.name) == []


def test_a_second_replay_of_a_namespace_waits_for_the_first(tmp_path: Path, log: SqliteLog, models: ReadModels) -> None:
    fill(log, a=3)
    models.catch_up("a")
    folder = namespace_folder(tmp_path, "a")
    waiting = threading.Thread(target=models.replay, args=("a",))
    with file_lock(folder / "replay.lock"):
        (folder / "building-of-the-other.db").write_bytes(b"still being written")
        waiting.start()
        waiting.join(0.3)

        assert waiting.is_alive()
        assert (folder / "building-of-the-other.db").exists()
        assert models.catch_up("a").version == 3
    waiting.join()
    assert generations(folder) == [1, 2]


@pytest.fixture
def hasty_models(tmp_path: Path, log: SqliteLog) -> Generator[ReadModels]:
    """Read models that are built in bulk from 20 events on."""
    models = ReadModels(tmp_path, log, far_behind_events=20)
    yield models
    models.close()


def test_a_read_model_far_behind_is_built_in_bulk_beside_the_live_one(
    tmp_path: Path, log: SqliteLog, hasty_models: ReadModels
) -> None:
    models = hasty_models
    fill(log, a=5)
    models.catch_up("a")
    fill(log, a=50)
    folder = namespace_folder(tmp_path, "a")

    assert models.catch_up("a").behind == 0
    assert generations(folder) == [1, 2]
    assert generation_path(folder, 1).exists()
    assert models.check("a").is_equal
    fill(log, a=25)
    models.catch_up("a")
    assert generations(folder) == [1, 2], "less than half of the log is folded live"


def test_a_far_behind_read_model_that_cannot_be_replayed_is_folded_up_to_the_bad_event(
    log: SqliteLog, hasty_models: ReadModels
) -> None:
    models = hasty_models
    fill(log, a=30)
    log.append("a", [draft._replace(schema_version=9) for draft in drafts([message("of the future")])])
    progress = models.catch_up("a")
    assert progress.version == 30
    assert progress.parked is not None
    assert progress.parked.version == 31


def test_a_flipped_bit_in_the_schema_is_damage_with_a_way_out(
    tmp_path: Path, log: SqliteLog, models: ReadModels
) -> None:
    log.append("a", drafts([message("x")]))
    models.catch_up("a")
    models.close()
    folder = namespace_folder(tmp_path, "a")
    path = generation_path(folder, generations(folder)[-1])
    path.write_bytes(path.read_bytes().replace(b"importance     INTEGER", b"imporuance     INTEGER"))

    with pytest.raises(ForeignFile, match="is damaged .*recollect replay"):
        rows(models, "SELECT importance FROM episodes")
    assert rows(models, "SELECT text FROM episodes WHERE importance > 0") == [("x",)]
    with pytest.raises(apsw.SQLError):
        rows(models, "SELECT no_such_column FROM episodes")
