"""A program that uses the memory ends with the exit code 0, whatever runs in the background at that moment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_PROGRAM = """
import sys, time
from recollect import Recollect
memory = Recollect(sys.argv[1])
memory.append("a", {"type": "message.added", "payload": {"role": "user", "text": "We adopted a cat called Biscuit."}})
time.sleep(1)
"""


def test_a_program_ends_without_closing_the_memory_while_the_model_loads(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _PROGRAM, str(tmp_path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
