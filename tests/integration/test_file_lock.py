"""File locks, over processes that are killed too."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from recollect.events.errors import StorageError
from recollect.events.storage.file_lock import file_lock

_HOLD = """
import sys
from pathlib import Path
from recollect.events.storage.file_lock import file_lock
with file_lock(Path(sys.argv[1]), shared=sys.argv[2] == "shared") as descriptor:
    print("held", flush=True)
    sys.stdin.read()
"""


def held_elsewhere(path: Path, kind: str) -> subprocess.Popen[str]:
    """Return another process that holds the lock of `path`."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(path), kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


@pytest.mark.parametrize("shared", [True, False])
def test_an_exclusive_lock_excludes_every_other_until_its_process_is_killed(tmp_path: Path, shared: bool) -> None:
    path = tmp_path / "new" / "some.lock"
    with held_elsewhere(path, "exclusive") as process:
        with file_lock(path, shared=shared, wait=False) as descriptor:
            assert descriptor is None
        process.kill()
        process.wait()
        with file_lock(path, shared=shared, wait=False) as descriptor:
            assert descriptor is not None


def test_shared_locks_stand_together_and_exclude_an_exclusive_one(tmp_path: Path) -> None:
    path = tmp_path / "some.lock"
    with held_elsewhere(path, "shared") as process:
        with file_lock(path, shared=True, wait=False) as descriptor:
            assert descriptor is not None
        with file_lock(path, wait=False) as descriptor:
            assert descriptor is None
        process.kill()
        process.wait()
        with file_lock(path, wait=False) as descriptor:
            assert descriptor is not None


def test_a_thread_waits_for_the_lock_of_another_thread(tmp_path: Path) -> None:
    path = tmp_path / "some.lock"
    order: list[str] = []

    def second() -> None:
        with file_lock(path):
            order.append("second")

    waiting = threading.Thread(target=second)
    with file_lock(path):
        waiting.start()
        waiting.join(0.1)
        order.append("first")
    waiting.join()
    assert order == ["first", "second"]


def test_a_lock_that_cannot_be_created_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match=r"some\.lock"), file_lock(tmp_path / "file" / "some.lock"):
        pass
