"""A full disk is called full by every command, and never damage: on a real file system of a few MiB."""

from __future__ import annotations

import itertools
import os
import subprocess
from pathlib import Path
from random import Random

import apsw
import orjson
import pytest
from support.command_line import recollect
from support.events import message
from support.server import recollect_process

from recollect import Recollect
from recollect.api.settings import load_settings
from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.errors import DiskFull
from recollect.events.storage import database
from recollect.events.storage.database import storage_errors
from recollect.events.validation import drafts
from recollect.projections.projector import projector
from recollect.projections.read_models.read_models import ReadModels

#: Commands that read. What they need for it may be there already.
_READING = (
    ("stats",),
    ("verify",),
    ("retrieve", "full", "where do I live?"),
    ("list", "full", "facts"),
    ("get", "full", "f1"),
    ("export", "--namespace", "full"),
    ("jobs",),
    ("context", "--namespace", "full", "where do I live?"),
)
_WRITING = (
    ("append", "full", "-"),
    ("settle", "full"),
    ("replay",),
    ("compact",),
    ("forget", "full", "f1"),
    ("backup", "{folder}/backup"),
)
#: What people took for damage.
_MISLEADING = ("damaged", "transaction", "check the disk", "I/O error", "no such table", "Traceback")


@pytest.fixture
def disk(small_disk: Path) -> Path:
    """The folder of a file system of 6 MiB."""
    subprocess.run(["mount", "-o", "remount,size=6m", str(small_disk)], check=True)
    return small_disk


def fill(disk: Path, *, left_bytes: int) -> int:
    """Append until the disk is full, use up what is left but `left_bytes`; return the number of recorded events."""
    random = Random(1)
    settings = load_settings(data=disk / "data", embedding_model="none")
    with Recollect(settings=settings, workers=False) as memory:
        memory.append("full", message("I live in Porto", id="f0"))
        memory.retrieve("full", "where do I live?")
        recorded = 1
        with pytest.raises(DiskFull):
            for number in itertools.count(1):
                text = f"Number {number}: {random.randbytes(3_000).hex()}"
                memory.append("full", message(text, id=f"f{number}"))
                recorded += 1
    state = os.statvfs(disk)
    (disk / "other").write_bytes(b"x" * max(0, state.f_bavail * state.f_frsize - left_bytes))
    return recorded


@pytest.mark.parametrize("left_bytes", [0, 4_096, 65_536])
def test_every_command_on_a_full_disk_works_or_says_that_it_is_full(disk: Path, left_bytes: int) -> None:
    recorded = fill(disk, left_bytes=left_bytes)
    event = orjson.dumps(message("one more"))
    for command in (*_READING, *_WRITING):
        arguments = [argument.format(folder=disk) for argument in command]
        done = recollect(*arguments, data=disk / "data", stdin=event if command[0] == "append" else b"")
        said = done.stdout + done.stderr
        assert not [words for words in _MISLEADING if words in said], (command, said[-500:])
        assert done.returncode == 0 or "the disk is full; free some space" in said, (command, said[-500:])
    doctor = recollect("doctor", "--no-model", data=disk / "data")
    assert "is full" in doctor.stdout
    assert doctor.returncode == 1

    (disk / "other").unlink()
    subprocess.run(["mount", "-o", "remount,size=60m", str(disk)], check=True)
    assert recollect("append", "full", "-", data=disk / "data", stdin=event).returncode == 0
    verified = recollect("verify", data=disk / "data")
    assert verified.returncode == 0
    assert "intact" in verified.stdout
    with Recollect(settings=load_settings(data=disk / "data", embedding_model="none"), workers=False) as memory:
        ids = {event.id for event in memory.parts.log.read("full", limit=1_000)}
    assert {f"f{number}" for number in range(recorded)} <= ids


def test_a_server_does_not_start_on_a_full_disk_and_says_why(disk: Path) -> None:
    fill(disk, left_bytes=4_096)
    done = recollect_process("serve", "--port", "0", data=disk / "data")
    assert done.returncode == 2
    assert "the disk is full; free some space" in done.stderr
    assert not [words for words in _MISLEADING if words in done.stderr]


def test_a_transaction_that_the_full_disk_ended_is_an_error_of_the_disk(disk: Path) -> None:
    connection = apsw.Connection(str(disk / "a.db"))
    connection.execute("CREATE TABLE texts (text)")
    with pytest.raises(DiskFull, match="free some space"), storage_errors(disk / "a.db"), connection:
        for _ in range(1_000):
            connection.execute("INSERT INTO texts VALUES (randomblob(20000))")
    connection.close()


def test_a_full_disk_is_no_attempt_at_an_event_that_kills_its_worker(
    log: SqliteLog, models: ReadModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fills_the_disk(*_: object) -> None:
        raise apsw.FullError("database or disk is full")

    log.append("full", drafts([message("I live in Porto")]))
    with monkeypatch.context() as patched:
        patched.setattr(projector, "apply_event", fills_the_disk)
        for _ in range(projector.ATTEMPTS_MAX + 2):
            with pytest.raises(DiskFull):
                models.catch_up("full")
    progress = models.catch_up("full")
    assert (progress.parked, progress.behind) == (None, 0)


def test_an_error_of_the_input_on_a_disk_with_room_is_not_called_a_full_disk(tmp_path: Path) -> None:
    assert not database.is_full(tmp_path / "missing" / "folder")
    with pytest.raises(apsw.SQLError), storage_errors(tmp_path / "a.db"):
        apsw.Connection(":memory:").execute("SELECT * FROM missing")
