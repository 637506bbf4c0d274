from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

import apsw
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.command_line import recollect
from support.events import histories, message, message_draft
from support.postgres import new_database

from recollect.events.backends.postgres_log import PostgresLog
from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.errors import EventIdConflict, ForeignFile, StorageError
from recollect.events.integrity.backup import backup, restore
from recollect.events.integrity.verify import verify
from recollect.events.storage.archive import Archive
from recollect.events.validation import drafts
from recollect.projections.read_models.read_models import ReadModels

ODD_IDS = ["0198c5d2-7f1e-7c3a-9b7e-0123456789ab", "0198C5D2-7F1E-7C3A-9B7E-0123456789AB", "ünï 'quoted' 🙂", None]


def fill(log: SqliteLog | PostgresLog, count: int, namespace: str = "a") -> None:
    texts = ["café 東京 🙂", 'it\'s \\ "quoted"', "plain"]
    batch = [
        message_draft(
            f"{texts[number % 3]} {number}",
            id=ODD_IDS[number] if number < len(ODD_IDS) else f"e{number}",
            **({"session_id": "s", "actor": "ann"} if number % 2 else {}),
        )
        for number in range(count)
    ]
    for start in range(0, count, 1_000):
        log.append(namespace, batch[start : start + 1_000])


#: Segments of a few blocks each, so that a hundred events have many seams.
SMALL = {"block_events": 16, "segment_events_max": 64}


@pytest.fixture
def small_blocks(tmp_path: Path) -> Generator[SqliteLog]:
    log = SqliteLog(tmp_path / "log.db", block_events=16, segment_events_max=64, pruned_events=10)
    yield log
    log.close()


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_what_was_sealed_reads_like_the_log(tmp_path: Path, backend: str, request: pytest.FixtureRequest) -> None:
    if backend == "sqlite":
        log: SqliteLog | PostgresLog = SqliteLog(tmp_path / "log.db")
    else:
        log = PostgresLog(new_database(request.getfixturevalue("postgres_url")))
    fill(log, 100)
    archive = Archive(tmp_path / "archive", log.log_id, **SMALL)
    assert [(one.first_version, one.last_version) for one in archive.seal(log, "a")] == [(1, 64), (65, 100)]
    fill(log, 30, "b")
    log.append("a", [message_draft(f"later {number}") for number in range(50)])
    assert [(one.first_version, one.last_version) for one in archive.seal(log, "a")] == [(101, 128), (129, 150)]
    assert archive.seal(log, "a") == []

    assert archive.read("a", after=0, limit=1_000) == log.read("a")
    for after, limit in ((0, 1), (15, 1), (16, 1), (63, 3), (99, 2), (120, 30), (149, 9), (150, 5)):
        assert archive.read("a", after=after, limit=limit) == log.read("a", after=after, limit=limit)
    assert archive.sealed("b") == 0
    log.close()


def test_after_pruning_segments_and_tail_are_one_log(tmp_path: Path, small_blocks: SqliteLog) -> None:
    log = small_blocks
    fill(log, 100)
    fill(log, 7, "b")
    whole = log.read("a")
    models = ReadModels(tmp_path, log)
    models.replay("a")
    log.archive.seal(log, "a")
    log.append("a", [message_draft(f"later {number}") for number in range(5)])

    assert log.prune("a") == 100
    assert log.prune("a") == 0
    other = apsw.Connection(str(tmp_path / "log.db"), flags=apsw.SQLITE_OPEN_READONLY)
    assert other.execute("SELECT count(*) FROM events WHERE position >> 36 = 1").fetchall() == [(5,)]
    other.close()
    assert log.read("a")[:100] == whole
    assert [event.version for event in log.read("a", after=97, limit=5)] == [98, 99, 100, 101, 102]
    assert verify(log, "a").is_intact
    assert verify(log, "a", after=60, until=103).is_intact
    assert verify(log, "b").is_intact
    assert models.catch_up("a").behind == 0
    assert models.check("a").is_equal
    assert log.find("a", "e50") == whole[50]
    models.close()


def test_an_id_that_left_the_file_is_still_known(small_blocks: SqliteLog) -> None:
    log = small_blocks
    fill(log, 40)
    event = log.read("a")[20]
    log.archive.seal(log, "a")
    log.prune("a")

    [again] = log.append("a", [message_draft("plain 20", id="e20")])
    assert (again.version, again.duplicate, again.hash) == (21, True, event.hash)
    [again] = log.append("a", [message_draft("café 東京 🙂 0", id=ODD_IDS[0])])
    assert (again.version, again.duplicate) == (1, True)
    with pytest.raises(EventIdConflict):
        log.append("a", [message_draft("something else", id="e20")])
    assert log.head("a").version == 40


def test_a_batch_of_recorded_pruned_and_new_ids_records_the_new_ones(small_blocks: SqliteLog) -> None:
    log = small_blocks
    fill(log, 40)
    log.archive.seal(log, "a")
    log.prune("a")
    pruned = log.pruned("a")
    assert pruned > len(ODD_IDS)
    fill(log, 3, namespace="b")
    uuids = [f"0198c5d2-7f1e-7c3a-9b7e-{number:012x}" for number in range(4)]
    log.append("a", [message_draft("of this file", id=uuids[0])])

    batch = [
        message_draft("of this file", id=uuids[0]),
        message_draft("café 東京 🙂 0", id=ODD_IDS[0]),
        message_draft("plain 20", id="e20"),
        *(message_draft("new", id=id) for id in (uuids[1], "x'); --", '["e20"]', uuids[1])),
    ]
    appended = log.append("a", batch)

    assert [event.duplicate for event in appended] == [True, True, True, False, False, False, True]
    assert [event.version for event in appended] == [41, 1, 21, 42, 43, 44, 42]
    assert [event.duplicate for event in log.append("b", batch[3:5])] == [False, False]


def test_the_file_is_smaller_after_pruning(tmp_path: Path, log: SqliteLog) -> None:
    fill(log, 5_000)
    log.shrink()
    before = (tmp_path / "log.db").stat().st_size
    log.archive.seal(log, "a")
    log.prune("a")
    log.shrink()
    assert (tmp_path / "log.db").stat().st_size < before / 2
    assert verify(log, "a").is_intact
    log.append("a", [message_draft("x")])
    thief = apsw.Connection(str(tmp_path / "log.db"))
    with pytest.raises(apsw.ConstraintError, match="immutable"):
        thief.execute("DELETE FROM events")
    thief.close()


@pytest.mark.parametrize("harm", ["missing", "flipped", "cut", "manifest"])
def test_a_damaged_segment_is_named_and_never_a_silent_gap(small_blocks: SqliteLog, harm: str) -> None:
    log = small_blocks
    fill(log, 100)
    log.archive.seal(log, "a")
    log.prune("a")
    path = log.archive.paths("a")[0]
    content = path.read_bytes()
    match harm:
        case "missing":
            path.unlink()
        case "flipped":
            path.write_bytes(content[:2_000] + bytes([content[2_000] ^ 1]) + content[2_001:])
        case "cut":
            path.write_bytes(content[:-100])
        case _:
            (path.parent / "manifest.json").write_bytes(b'{"segments": 3}')

    reopened = Archive(log.archive.folder, log.log_id, **SMALL)
    with pytest.raises(StorageError, match="restore it from a backup"):
        reopened.read("a", after=0, limit=100)
    if harm != "manifest":
        # The others, and the tail, go on.
        assert [event.version for event in reopened.read("a", after=64, limit=100)] == list(range(65, 101))
    assert log.append("a", [message_draft("goes on")])[0].version == 101


def test_without_its_manifest_the_log_is_missing_events_and_nothing_is_made_from_the_rest(
    tmp_path: Path, small_blocks: SqliteLog
) -> None:
    log = small_blocks
    models = ReadModels(tmp_path, log)
    fill(log, 100)
    models.replay("a")
    log.archive.seal(log, "a")
    log.prune("a")
    (log.archive.paths("a")[0].parent / "manifest.json").unlink()
    for attempt in (
        lambda: log.read("a"),
        lambda: log.read("a", after=99),
        lambda: models.replay("a"),
        lambda: log.archive.seal(log, "a"),
    ):
        with pytest.raises(ForeignFile, match=r"missing|has no version 1"):
            attempt()
    assert log.prune("a") == 0
    assert log.append("a", [message_draft("goes on")])[0].version == 101
    assert [event.version for event in log.read("a", after=100)] == [101]
    with pytest.raises(ForeignFile, match="version 1 of namespace 'a' is missing"):
        log.read("a")
    models.close()


def test_a_segment_that_was_altered_and_is_readable_is_refused_when_it_is_opened(small_blocks: SqliteLog) -> None:
    log = small_blocks
    fill(log, 100)
    log.archive.seal(log, "a")
    log.prune("a")
    path = log.archive.paths("a")[0]
    duckdb = pytest.importorskip("duckdb").connect()
    select = f"SELECT * REPLACE (if(version = 9, 'eve', actor) AS actor) FROM read_parquet('{path}')"
    duckdb.execute(f"COPY ({select}) TO '{path}.new' (FORMAT parquet)")
    duckdb.close()
    Path(f"{path}.new").rename(path)
    log.archive._blocks.clear()  # pyright: ignore[reportPrivateUsage]
    for read in (log.read, log.read_stored):
        with pytest.raises(ForeignFile, match="not what was sealed"):
            read("a")


def test_a_broken_chain_is_not_sealed_and_what_was_not_sealed_is_not_pruned(
    tmp_path: Path, small_blocks: SqliteLog
) -> None:
    log = small_blocks
    fill(log, 100)
    log.archive.seal(log, "a")
    thief = apsw.Connection(str(tmp_path / "log.db"))
    thief.execute("DROP TRIGGER events_refuse_update; UPDATE events SET hash = zeroblob(32) WHERE position & 255 = 10")
    thief.execute("UPDATE events SET actor = 'eve' WHERE position & 255 = 99")
    thief.close()
    with pytest.raises(ForeignFile, match="version 10 .*differs from the sealed"):
        log.prune("a")
    assert len(log.read("a")) == 100
    fresh = Archive(tmp_path / "elsewhere", log.log_id, **SMALL)
    with pytest.raises(ForeignFile, match="broken at version 10"):
        fresh.seal(log, "a")


def test_an_archive_of_another_log_is_refused(tmp_path: Path, log: SqliteLog) -> None:
    fill(log, 3)
    log.archive.seal(log, "a")
    with pytest.raises(ForeignFile, match="another log"):
        Archive(log.archive.folder, "another").read("a", after=0, limit=1)


def test_a_pruned_log_is_backed_up_and_restored_with_its_archive(tmp_path: Path) -> None:
    log = SqliteLog(tmp_path / "data" / "log.db")
    fill(log, 50)
    whole = log.read("a")
    log.archive.seal(log, "a")
    log.prune("a")
    assert backup(tmp_path / "data" / "log.db", tmp_path / "backup") == 50
    log.append("a", [message_draft("x")])
    log.close()
    assert restore(tmp_path / "backup", tmp_path / "data" / "log.db") == 50
    log = SqliteLog(tmp_path / "data" / "log.db")
    assert log.read("a") == whole
    log.close()


@given(history=histories(60), steps=st.lists(st.sampled_from(["seal", "prune", "append"]), max_size=12))
def test_sealing_and_pruning_at_any_time_changes_nothing_that_is_read(
    tmp_path_factory: pytest.TempPathFactory, history: list[dict[str, object]], steps: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("log")
    plain, log = (
        SqliteLog(folder / "plain.db", clock=lambda: 1),
        SqliteLog(folder / "x" / "log.db", clock=lambda: 1, block_events=4, segment_events_max=12, pruned_events=5),
    )
    events = drafts([event | {"id": str(number)} for number, event in enumerate(history)])
    for number, step in enumerate([*steps, "append"]):
        match step:
            case "seal":
                log.archive.seal(log, "a")
            case "prune":
                log.prune("a")
            case _:
                batch = events if number == len(steps) else events[: number + 1]
                assert log.append("a", batch) == plain.append("a", batch)
    assert log.read("a") == plain.read("a")
    assert verify(log, "a") == verify(plain, "a")
    plain.close()
    log.close()


def killed_after(seconds: float, data: Path, *arguments: str) -> None:
    command = [sys.executable, "-c", "from recollect.api.cli.main import run; run()", "--data", str(data), *arguments]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)


@pytest.mark.long
def test_kill_9_while_sealing_and_pruning_loses_nothing(tmp_path: Path) -> None:
    log = SqliteLog(tmp_path / "log.db")
    for namespace in ("a", "b", "c"):
        fill(log, 6_000, namespace)
    whole = {namespace: log.read(namespace, limit=10_000) for namespace in ("a", "b", "c")}
    chance = random.Random(7)
    for _ in range(6):
        killed_after(chance.uniform(0.35, 1.1), tmp_path, "archive", "--prune")
        assert {namespace: log.read(namespace, limit=10_000) for namespace in whole} == whole
    done = recollect("archive", "--prune", data=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {namespace: log.read(namespace, limit=10_000) for namespace in whole} == whole
    assert all(verify(log, namespace).is_intact for namespace in whole)
    assert [path.name for path in log.archive.folder.rglob("*.tmp")] == []
    log.close()
    assert recollect("replay", "--check", data=tmp_path).returncode == 0


def test_the_command_says_what_it_sealed(tmp_path: Path) -> None:
    lines = b"".join(orjson.dumps(message(f"text {number}")) + b"\n" for number in range(1_200))
    recollect("import", "jsonl", "-", "--namespace", "big", data=tmp_path, stdin=lines)
    recollect("append", "small", data=tmp_path, stdin=orjson.dumps(message("x")))

    first = recollect("archive", data=tmp_path)
    assert "big: 1,200 events sealed" in first.stdout
    assert "small: nothing to seal, 1 event since the last segment" in first.stdout
    assert "small: 1 event sealed" in recollect("archive", "--min-events", "1", data=tmp_path).stdout
    assert "1,201 events left the SQLite file" in recollect("archive", "--prune", data=tmp_path).stdout
    assert "big: intact, 1,200 events" in recollect("verify", data=tmp_path).stdout
