"""Process pools: no process outlives the one that began it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

_SECONDS_MAX = 20.0
#: One process is busy, the other waits for work. Both have begun when their ids are printed.
_PROGRAM = """
import os, threading
from recollect.events.storage.process_pool import process_pool

def process_id(state, item):
    state.wait(item)
    return os.getpid()

if __name__ == "__main__":
    with process_pool(2, threading.Event, threading.Event.set) as pool:
        print(*{pid for pid in pool.map(process_id, [0.3] * 6)}, flush=True)
        pool.submit(process_id, 600)
        threading.Event().wait()
"""


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A process that has ended and waits to be reaped still has its id.
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return True


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is of POSIX")
def test_a_killed_parent_leaves_no_processes_of_its_pool(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM)
    with subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        processes = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(processes) == 2
        assert all(_is_running(pid) for pid in processes)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        deadline = time.monotonic() + _SECONDS_MAX
        while any(_is_running(pid) for pid in processes):
            assert time.monotonic() < deadline, "a process of the pool lives on"
            time.sleep(0.02)
