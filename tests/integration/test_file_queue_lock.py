"""Turn locks, over processes that are stopped and killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.errors import StorageError
from recollect.events.storage.file_queue_lock import FileQueueLock

_HOLD = """
import sys
from pathlib import Path
from recollect.events.storage.file_queue_lock import FileQueueLock
with FileQueueLock(Path(sys.argv[1])).locked():
    print("held", flush=True)
    sys.stdin.readline()
"""
_APPENDS = 1_000
_APPEND = f"""
import sys
from pathlib import Path
from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.validation import drafts
log = SqliteLog(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.readline()
for number in range({_APPENDS}):
    log.append(sys.argv[2], drafts([{{"type": "message.added", "payload": {{"role": "user", "text": "hello"}}}}]))
log.close()
"""


def started(program: str, *arguments: str | Path) -> subprocess.Popen[str]:
    """Start a Python program, and return it once it has printed a line."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline()
    return process


def test_a_turn_begins_when_that_of_another_process_ends(tmp_path: Path) -> None:
    turn = FileQueueLock(tmp_path / "log.lock")
    with started(_HOLD, tmp_path / "log.lock") as process:
        held = threading.Event()

        def hold() -> None:
            with turn.locked():
                held.set()

        thread = threading.Thread(target=hold)
        thread.start()
        assert not held.wait(0.2)
        process.communicate("\n")
        thread.join()
        assert held.is_set()


def test_a_killed_process_leaves_its_turn(tmp_path: Path) -> None:
    with started(_HOLD, tmp_path / "log.lock") as process:
        process.kill()
        process.wait()
        with FileQueueLock(tmp_path / "log.lock").locked():
            pass


def test_a_stopped_process_is_waited_for_no_longer_than_the_limit_and_then_left_behind(tmp_path: Path) -> None:
    turn = FileQueueLock(tmp_path / "log.lock", seconds_max=0.2)
    with started(_HOLD, tmp_path / "log.lock") as process:
        process.send_signal(signal.SIGSTOP)
        for _ in range(3):
            with pytest.raises(StorageError, match=r"log\.lock is locked by another process for over 0\.2 seconds"):
                turn.locked().__enter__()
        process.kill()
        process.wait()
        # The late wait gets the turn meanwhile, and gives it back at once.
        for _ in range(3):
            with turn.locked(), pytest.raises(StorageError):
                FileQueueLock(tmp_path / "log.lock", seconds_max=0.05).locked().__enter__()


def test_a_folder_without_a_lock_file_needs_no_turns(tmp_path: Path) -> None:
    with FileQueueLock(tmp_path / "missing" / "log.lock").locked():
        assert not (tmp_path / "missing").exists()


def test_no_process_that_appends_all_the_time_keeps_another_one_waiting(tmp_path: Path) -> None:
    names = ("a", "b")
    with started(_APPEND, tmp_path / "log.db", "a") as first, started(_APPEND, tmp_path / "log.db", "b") as second:
        for process in (first, second):
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        assert (first.wait(60), second.wait(60)) == (0, 0)
    log = SqliteLog(tmp_path / "log.db")
    times = {name: [event.recorded_at_us for event in log.read(name, after=0)] for name in names}
    log.close()
    # While both append, neither waits for half of the other's appends.
    both_from, both_until = max(of[0] for of in times.values()), min(of[-1] for of in times.values())
    order = sorted((at, name) for name in names for at in times[name] if both_from <= at <= both_until)
    longest, run, last = 0, 0, ""
    for _, name in order:
        run = run + 1 if name == last else 1
        longest, last = max(longest, run), name
    assert order
    assert longest < _APPENDS / 2, f"{longest} of {_APPENDS} appends in a row"
